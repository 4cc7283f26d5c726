import fc from 'fast-check';
import { test } from 'tap';
import type { StoredRecord } from '../../src/quota/index.js';
import { RecordLog, recordKey } from '../../src/quota-controller/store/record-log.js';

/** A workload with one of a few shapes. */
function record(name: string, cores: number | null): StoredRecord {
  const shape = { signature: `s${(cores ?? 0) % 3}`, needs: [], types: {}, unspecified: [] };
  const value =
    cores === null
      ? null
      : { uid: `uid-${name}`, podSets: [['main', 1, shape, [cores]] as const], countKey: '', heldReplicas: 0 };
  return { kind: 'workload', key: `Job//${name}`, group: 'g', value };
}

const contentOf = (log: RecordLog): string =>
  JSON.stringify([...log.values()].sort((a, b) => (recordKey(a) < recordKey(b) ? -1 : 1)));

test('a log is read as it was written, in full or from an earlier state with its changes', (t) => {
  const edits = fc.array(
    fc.tuple(
      fc.nat(30).map((index) => `w${index}`),
      fc.option(fc.nat(1000)),
    ),
    { minLength: 1, maxLength: 12 },
  );
  fc.assert(
    fc.property(fc.array(edits, { maxLength: 30 }), fc.nat(29), (steps, from) => {
      const expected = new Map<string, StoredRecord>();
      let log = RecordLog.empty();
      let known = log;
      for (const [index, step] of steps.entries()) {
        if (index === from) known = log;
        const some = new Map(step.map(([name, cores]) => [recordKey(record(name, cores)), record(name, cores)]));
        for (const [key, each] of some) {
          if (each.value === null) expected.delete(key);
          else expected.set(key, each);
        }
        log = log.with(some);
      }
      const content = JSON.stringify([...expected].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each));
      if (log.text === '') return contentOf(log) === content;
      const whole = RecordLog.read(log.text).log;
      const late = RecordLog.read(log.text, known);
      // A log that was read can be extended.
      const next = new Map([[recordKey(record('next', 1)), record('next', 1)]]);
      const same =
        [contentOf(log), contentOf(whole), contentOf(late.log)].every((each) => each === content) &&
        contentOf(RecordLog.read(late.log.with(next).text).log) === contentOf(log.with(next)) &&
        late.log.with(next).text === log.with(next).text;
      const told = late.changes === null ? log : known.with(late.changes);
      return same && contentOf(told) === content;
    }),
    { numRuns: 300 },
  );
  t.end();
});

test('the cost of a change does not grow with the number of records, and the text stays in proportion to them', (t) => {
  let log = RecordLog.empty();
  let written = 0;
  let whole = 0;
  for (let index = 0; index < 4000; index++) {
    const before = log.text;
    log = log.with(new Map([[`workload Job//w${index}`, record(`w${index}`, index)]]));
    if (log.text.startsWith(before)) written += log.text.length - before.length;
    else whole++;
  }
  t.equal([...log.values()].length, 4000);
  t.ok(whole < 60, `${whole} of 4000 wrote everything`);
  t.ok(written / 4000 < 400, `${Math.round(written / 4000)} characters a change`);
  for (let index = 0; index < 4000; index++)
    log = log.with(new Map([[`workload Job//w${index}`, record(`w${index}`, null)]]));
  t.equal([...log.values()].length, 0);
  t.ok(log.text.length < 40_000, `${log.text.length} characters when all are gone`);
  t.end();
});

test('groups that change at the same pace are rewritten at different times', (t) => {
  const group = (name: string): StoredRecord => ({ ...record('any', 1), group: name, key: `Job//${name}` });
  let logs = Array.from({ length: 20 }, (_, index) => {
    const each = group(`g${index}`);
    return RecordLog.empty().with(new Map([[recordKey(each), each]]));
  });
  const rewritten: number[] = [];
  for (let index = 0; index < 260; index++) {
    const each = record(`w${index}`, index);
    const next = logs.map((log) => log.with(new Map([[recordKey(each), each]])));
    rewritten.push(next.filter((log, at) => !log.text.startsWith(logs[at]?.text ?? '')).length);
    logs = next;
  }
  const together = Math.max(...rewritten);
  t.ok(rewritten.filter((count) => count > 0).length > 40, 'rewrites are spread');
  t.ok(together <= 6, `at most ${together} of 20 groups are rewritten by the same change`);
  t.end();
});

test('a truncated log and one with missing shapes are rejected', (t) => {
  const log = RecordLog.empty()
    .with(new Map([['workload Job//a', record('a', 1)]]))
    .with(new Map([['workload Job//b', record('b', 1)]]));
  t.throws(() => RecordLog.read(log.text.slice(0, log.text.length - 20)));
  t.throws(() => RecordLog.read(log.text.split('.')[1] ?? ''), /names shape 0 of 0/);
  t.end();
});

test('a log without records is not an empty text, which some API servers store as null; an empty text is read as an empty log', (t) => {
  const { text } = RecordLog.empty();
  t.not(text, '');
  for (const written of [text, '']) t.same([...RecordLog.read(written).log.values()], []);
  const one = record('w', 1);
  t.same(
    [...RecordLog.read(RecordLog.empty().with(new Map([[recordKey(one), one]])).text).log.values()].map(recordKey),
    [recordKey(one)],
  );
  t.end();
});
