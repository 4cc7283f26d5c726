import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { test } from 'tap';
import { parseHealthPolicy } from '../../../../src/agent/gpus/health-policy-file.js';
import { XID_CLASSES, type HealthPolicy } from '../../../../src/agent/gpus/health-policy.js';

const shipped = readFileSync(new URL('../../../../../etc/xid-classes.json', import.meta.url), 'utf8');

function policy(text: string): HealthPolicy {
  const result = parseHealthPolicy(text);
  if (!result.ok) throw new Error(result.reason);
  return result.policy;
}

function refused(document: unknown): string {
  const result = parseHealthPolicy(typeof document === 'string' ? document : JSON.stringify(document));
  return result.ok ? 'read without complaint' : result.reason;
}

test('the shipped table classifies application errors as NVIDIA does, and bus errors as fatal', (t) => {
  const { xids, otherwise, uncorrectedEcc, probationMs } = policy(shipped);
  for (const xid of [13, 31, 43, 45, 68, 109]) t.equal(xids.get(xid)?.class, 'ignored', `XID ${xid}`);
  for (const xid of [48, 62, 64, 74, 95, 119, 120]) t.equal(xids.get(xid)?.class, 'reset', `XID ${xid}`);
  t.equal(xids.get(94)?.class, 'transient');
  t.equal(xids.get(79)?.class, 'fatal');
  t.equal(otherwise, 'transient');
  t.equal(uncorrectedEcc, 'reset');
  t.equal(probationMs, 60_000);
  t.same(
    [...new Set([...xids.values()].map((known) => known.class))].sort(),
    [...XID_CLASSES].sort(),
    'every class is used',
  );
  t.end();
});

test('an empty table gets every default', (t) => {
  t.match(policy('{}'), {
    otherwise: 'transient',
    uncorrectedEcc: 'reset',
    probationMs: 60_000,
    longestProbationMs: 3_600_000,
    strikes: 3,
    strikeWindowMs: 3_600_000,
  });
  t.equal(policy('{}').xids.size, 0);
  t.end();
});

test('the values of an operator are used', (t) => {
  const read = policy(
    '{"probationSeconds": 5, "strikes": 1, "otherwise": "ignored", "uncorrectedEcc": "fatal", "classes": {"fatal": {"13": "not here"}}}',
  );
  t.match(read, { probationMs: 5000, strikes: 1, otherwise: 'ignored', uncorrectedEcc: 'fatal' });
  t.same(read.xids.get(13), { class: 'fatal', meaning: 'not here' });
  t.end();
});

test('an error is one line that names the place', (t) => {
  t.match(refused('{'), /^not JSON: /);
  t.equal(refused([]), 'the document: expected an object, got []');
  t.equal(refused({ otherwise: 'bad' }), 'otherwise: expected ignored, transient, reset, fatal, got "bad"');
  t.equal(refused({ strikes: 0 }), 'strikes: expected an integer from 1 to 1000, got 0');
  t.equal(
    refused({ probationSeconds: 60, longestProbationSeconds: 30 }),
    'longestProbationSeconds: expected no less than probationSeconds, 60, got 30',
  );
  t.equal(
    refused({ classes: { harmless: {} } }),
    'classes.harmless: expected no such class; they are ignored, transient, reset, fatal, got {}',
  );
  t.equal(
    refused({ classes: { reset: { all: 'x' } } }),
    'classes.reset.all: expected the number of an XID as its name, got "x"',
  );
  t.equal(
    refused({ classes: { reset: { 48: 'x' }, fatal: { 48: 'y' } } }),
    'classes.fatal.48: expected each XID once, and 48 is reset too, got "y"',
  );
  t.equal(refused({ classes: { reset: { 48: 7 } } }), 'classes.reset.48: expected a text, got 7');
  t.end();
});

test('any document is read, or refused with an error of one line', (t) => {
  const document = fc.record({
    classes: fc.dictionary(fc.constantFrom(...XID_CLASSES, 'x'), fc.anything()),
    strikes: fc.anything(),
  });
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        document.map((value) => JSON.stringify(value)),
      ),
      (text) => {
        const result = parseHealthPolicy(text);
        return result.ok || (result.reason !== '' && !result.reason.includes('\n'));
      },
    ),
    { numRuns: 300 },
  );
  t.pass('300 documents');
  t.end();
});
