import fc from 'fast-check';
import { test } from 'tap';
import { Quota, linesOf } from '../../src/quota/internal.js';
import { replay, scriptProblem } from '../../src/quota-command/replay.js';
import { readStep } from '../../src/quota-command/script.js';

const HOUR = 3_600_000;

function step(json: unknown, previous = 0): unknown {
  const read = readStep(typeof json === 'string' ? json : JSON.stringify(json), 1, previous, {});
  return read.ok ? read.step : read.reason;
}

test('a line holds a command and its time', (t) => {
  t.same(step({ type: 'createGroup', at: 5, name: 'g', hard: { pods: 1 }, actor: 'alice' }), {
    line: 1,
    at: 5,
    ask: 'command',
    command: { type: 'createGroup', name: 'g', hard: { pods: 1 }, actor: 'alice' },
  });
  t.match(step({ type: 'tick', at: '1970-01-01T01:00:00Z' }), { at: HOUR });
  t.match(step({ type: 'tick', at: '1970-01-01T02:00+01:00' }), { at: HOUR });
  t.match(step({ type: 'tick', at: '+1.5h' }, HOUR), { at: 2.5 * HOUR });
  t.match(step({ type: 'podStopped', pod: 'p', at: '+2h', end: '+1m' }, HOUR), {
    at: 3 * HOUR,
    command: { end: 3 * HOUR + 60_000 },
  });
  t.match(step({ type: 'release', workload: 'Job/ns/w' }), {
    at: null,
    command: { workload: { kind: 'Job', namespace: 'ns', name: 'w' } },
  });
  t.match(step({ type: 'release', workload: 'Job/w' }), {
    command: { workload: { kind: 'Job', namespace: '', name: 'w' } },
  });
  t.match(step({ type: 'status' }), { ask: 'status', group: null });
  t.end();
});

test('a manifest can replace a demand', (t) => {
  const job = (status: object) => ({
    type: 'admit',
    manifest: {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'w', labels: { 'biz.group.resource.quota': 'g' } },
      spec: { template: { spec: { containers: [] } } },
      status,
    },
  });
  t.match(step(job({})), { command: { type: 'admit', group: 'g', workload: { kind: 'Job.batch', name: 'w' } } });
  t.match(step(job({ conditions: [{ type: 'Complete', status: 'True' }] })), {
    command: { type: 'release', workload: { kind: 'Job.batch', name: 'w' } },
  });
  t.match(step({ type: 'admit', manifest: { kind: 'Widget' } }), {
    ask: 'nothing',
    allowed: false,
    code: 'InvalidManifest',
  });
  t.match(step({ type: 'admit', manifest: { apiVersion: 'batch/v1', kind: 'CronJob' } }), {
    ask: 'nothing',
    allowed: true,
    code: 'NotManaged',
  });
  t.end();
});

test('a line without a command is refused', (t) => {
  t.match(step('{'), /not JSON/);
  t.match(step('7'), /expected a JSON object with a type/);
  t.match(step('null'), /expected a JSON object with a type/);
  t.match(step({ type: 'drop' }), /unknown type "drop"; expected one of createGroup/);
  t.match(step({ type: 'toString' }), /expected one of/);
  t.match(step({ type: 'createGroup', name: 'g' }), /hard/);
  t.match(step({ type: 'createGroup', name: 'g', hard: {}, colour: 'red' }), /colour/);
  t.match(step({ type: 'scale', workload: 'Job/w', replicas: 'many' }), /replicas/);
  t.match(step({ type: 'tick', at: 'yesterday' }), /"yesterday" is not a time/);
  t.match(step({ type: 'tick', at: '+1 day' }), /is not a time/);
  t.match(step({ type: 'podStopped', pod: 'p', end: '12' }), /end: "12" is not a time/);
  t.match(step(`{"type":"tick","actor":"${'x'.repeat(1 << 20)}"}`), /longer than/);
  t.end();
});

test('no text causes more than a refusal', (t) => {
  const line = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record(
        {
          type: fc.constantFrom('admit', 'createGroup', 'scale', 'loan', 'grant', 'podStarted'),
          name: fc.string(),
          workload: fc.jsonValue(),
          hard: fc.jsonValue(),
          podSets: fc.jsonValue(),
          at: fc.jsonValue(),
          manifest: fc.jsonValue(),
        },
        { requiredKeys: ['type'] },
      )
      .map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(line, (text) => {
      const quota = new Quota();
      const read = readStep(text, 1, 0, {});
      if (read.ok && read.step.ask === 'command') quota.execute(read.step.command, read.step.at ?? 0);
      return true;
    }),
    { numRuns: 2000 },
  );
  t.end();
});

const SCRIPT = [
  '# groups',
  '',
  '{"type":"createGroup","at":0,"name":"g","hard":{"limits.cpu":4}}',
  '{"type":"admit","at":"+1h","workload":"Job/a","group":"g","podSets":[{"count":3,"limits":{"cpu":1}}]}',
  '{"type":"admit","workload":"Job/b","group":"g","podSets":[{"count":3,"limits":{"cpu":1}}]}',
  '{"type":"status","group":"g"}',
];

test('replay runs a script line by line and reports each decision', async (t) => {
  const told: string[] = [];
  const refused = await replay(SCRIPT, new Quota(), 'json', {}, (text) => told.push(text));
  t.equal(refused, 1);
  t.match(
    told.map((text) => JSON.parse(text) as unknown),
    [
      { line: 3, at: '1970-01-01T00:00:00.000Z', type: 'createGroup', subject: 'g', allowed: true },
      { line: 4, at: '1970-01-01T01:00:00.000Z', subject: 'Job//a', allowed: true, charged: { 'limits.cpu': '3' } },
      {
        line: 5,
        code: 'QuotaExceeded',
        violations: [{ key: 'limits.cpu', hard: '4', used: '3', requested: '3', short: '2' }],
        hints: { maxReplicas: 1 },
      },
      { line: 6, type: 'status', groups: [{ name: 'g', used: { 'limits.cpu': '3' }, room: { 'limits.cpu': '1' } }] },
    ],
  );
  const rows: string[] = [];
  await replay(SCRIPT, new Quota(), 'table', {}, (text) => rows.push(text));
  t.match(rows[3], /^5 +1970-01-01T01:00:00.000Z +admit +Job\/\/b +REFUSED +QuotaExceeded: .*at most 1 replica fits/);
});

test('replay does not start a script with an unreadable line', async (t) => {
  t.equal(await scriptProblem(SCRIPT, {}), null);
  t.match(await scriptProblem([...SCRIPT, '{"type":"oops"}'], {}), /^line 7: unknown type "oops"/);
});

test('lines are found wherever the stream is split', async (t) => {
  const text = fc.array(fc.stringMatching(/^[a-zäöü☃ ]*$/), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(text, fc.integer({ min: 1, max: 7 }), async (lines, size) => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      async function* chunks() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
      }
      const read: string[] = [];
      for await (const line of linesOf(chunks())) read.push(line);
      return read.join('\n') === lines.join('\n') && read.length === lines.length;
    }),
  );
  async function* endless() {
    for (let count = 0; count < 100; count++) yield Buffer.alloc(1 << 20, 'x');
    yield 'y\nz';
  }
  const lengths: number[] = [];
  for await (const line of linesOf(endless())) lengths.push(line.length);
  t.same(
    lengths.map((length) => length > 1 << 20 && length < 2 << 20),
    [true, false],
    'a hundred megabytes without a line end are not kept',
  );
});
