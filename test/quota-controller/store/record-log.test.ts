import { inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { test } from 'tap';
import type { ShapeRecord, StoredRecord } from '../../../src/quota/index.js';
import { RecordLog } from '../../../src/quota-controller/store/record-log.js';
import { readPiece, writePiece } from '../../../src/quota-controller/store/record-text.js';
import { recordKey } from '../../../src/quota-controller/store/tail.js';
import { cases } from '../../cases.js';

/** A workload with one of a few shapes. */
function record(name: string, cores: number | null): StoredRecord {
  const shape = { signature: `s${(cores ?? 0) % 3}`, needs: [], types: {}, unspecified: [] };
  const value =
    cores === null
      ? null
      : { uid: `uid-${name}`, podSets: [['main', 1, shape, [cores]] as const], countKey: '', heldReplicas: 0 };
  return { kind: 'workload', key: `Job//${name}`, group: 'g', value };
}

const editsOf = (step: readonly (readonly [string, number | null])[]): ReadonlyMap<string, StoredRecord> =>
  new Map(step.map(([name, cores]) => [recordKey(record(name, cores)), record(name, cores)]));

const contentOf = (records: Iterable<StoredRecord>): string =>
  JSON.stringify([...records].map((each) => [recordKey(each), each] as const).sort(([a], [b]) => (a < b ? -1 : 1)));

/** A ledger object with its segments, as the API server has them. */
class Stored {
  text = RecordLog.empty().text;
  readonly segments = new Map<number, string>();
  writes = 0;
  longest = 0;

  /** Writes a log as the store does; `always` moves every tail into segments. */
  write(log: RecordLog, always = false): RecordLog {
    const { log: written, created } = log.isLong() || always ? log.sealed() : { log, created: [] };
    for (const { id, text } of created) this.#wrote(text, () => this.segments.set(id, text));
    this.#wrote(written.text, () => (this.text = written.text));
    for (const id of this.segments.keys()) if (!written.list.ids.includes(id)) this.segments.delete(id);
    return written;
  }

  #wrote(text: string, store: () => void): void {
    store();
    this.writes++;
    this.longest = Math.max(this.longest, text.length);
  }

  read(known?: RecordLog): ReturnType<typeof RecordLog.read> {
    return RecordLog.read(this.text, this.segments, known);
  }

  /** Writes the tail as another version does: in one piece, or in several of which one repeats all records. */
  rewrite(pieces: 1 | 3): void {
    const at = this.text.startsWith('//') ? this.text.indexOf('.') + 1 : 0;
    const [list, tail] = [this.text.slice(0, at), this.text.slice(at)];
    const shapes: ShapeRecord[] = [];
    const all = tail.split('.').flatMap((piece) => readPiece(piece, shapes));
    const records = [...new Map(all.map((each) => [recordKey(each), each])).values()];
    const again = pieces === 1 ? [] : [tail, writePiece([], shapes)];
    this.text = `${list}${[...again, writePiece(records, pieces === 1 ? [] : shapes)].join('.')}`;
  }
}

test('a log is read as it was written, in full or from an earlier state with its changes', (t) => {
  const names = [...Array(31).keys()].map((index) => `w${index}`);
  // After 26 times, segments hold nearly as many replaced records as it takes to clean the oldest one, which has ten
  // records that count.
  const rewritten = fc.constantFrom(0, 26);
  const edits = fc.array(fc.tuple(fc.constantFrom(...names), fc.option(fc.nat(1000))), { minLength: 1, maxLength: 12 });
  // The writer of a step is the last one, a process that has just started, or one that read what another version wrote.
  const writers = fc.constantFrom<'last' | 'new' | 1 | 3>('last', 'last', 'new', 1, 3);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(edits, fc.boolean(), writers), { maxLength: 40 }),
      fc.nat(39),
      rewritten,
      (steps, from, rewrites) => {
        const expected = new Map<string, StoredRecord>();
        const stored = new Stored();
        let log = RecordLog.empty();
        const write = (some: ReadonlyMap<string, StoredRecord>, isSealed: boolean): void => {
          for (const [key, each] of some) {
            if (each.value === null) expected.delete(key);
            else expected.set(key, each);
          }
          log = stored.write(log.with(some), isSealed);
        };
        for (let cores = 1; cores <= rewrites; cores++)
          write(editsOf(names.slice(cores === 1 ? 0 : 10).map((name) => [name, cores])), true);
        let known = log;
        for (const [index, [step, isSealed, writer]] of steps.entries()) {
          if (index === from) known = log;
          if (typeof writer === 'number') stored.rewrite(writer);
          if (writer !== 'last') log = stored.read(writer === 'new' ? undefined : log).log;
          write(editsOf(step), isSealed);
        }
        const content = contentOf(expected.values());
        const late = stored.read(known);
        // The changes bring an engine that knows the earlier state to the later one.
        const told = new Map([...known.values()].map((each) => [recordKey(each), each]));
        for (const [key, each] of late.changes ?? []) {
          if (each.value === null) told.delete(key);
          else told.set(key, each);
        }
        const has = names.every((name) => {
          const key = recordKey(record(name, 1));
          return log.has(key) === expected.has(key) && late.log.has(key) === expected.has(key);
        });
        const next = editsOf([['next', 1]]);
        return (
          has &&
          late.changes !== null &&
          [log.values(), stored.read().log.values(), late.log.values(), told.values(), log.merged().values()].every(
            (records) => contentOf(records) === content,
          ) &&
          late.log.with(next).text === log.with(next).text
        );
      },
    ),
    { numRuns: cases(80, 1_000) },
  );
  t.end();
});

test('a write has at most 8 KB and costs about one object, whatever the number of records', (t) => {
  let log = RecordLog.empty();
  const stored = new Stored();
  const count = cases(1_500, 6_000);
  for (let index = 0; index < count; index++) log = stored.write(log.with(editsOf([[`w${index}`, index]])));
  t.ok(stored.longest <= 8000, `${stored.longest} characters`);
  t.ok(stored.writes <= 1.1 * count, `${stored.writes} writes`);
  t.equal([...log.values()].length, count);
  // Short-lived records between long-lived ones do not let the log grow.
  const before = log.length;
  stored.writes = 0;
  for (let index = 0; index < count; index++) {
    log = stored.write(log.with(editsOf([[`short${index}`, index]])));
    log = stored.write(log.with(editsOf([[`short${index - 200}`, null]])));
  }
  t.ok(stored.longest <= 8000, `${stored.longest} characters`);
  t.ok(stored.writes <= 2 * 1.1 * count, `${stored.writes} writes`);
  t.ok(log.length < 3.5 * before, `${log.length} characters after ${before}`);
  for (let index = 0; index < count; index++) log = stored.write(log.with(editsOf([[`w${index}`, null]])));
  t.equal([...log.values()].length, 200);
  t.ok(log.length < 300_000, `${log.length} characters when nearly all are gone`);
  t.end();
});

test('the text of earlier versions is read, and short logs are written as they read it', (t) => {
  const shape = { signature: 's1', needs: [], types: {}, unspecified: [] };
  const referring = {
    ...record('c', 1),
    value: { uid: 'c', podSets: [['main', 1, 0, [7]] as const], countKey: '', heldReplicas: 0 },
  } as unknown as StoredRecord;
  const plain = (records: readonly StoredRecord[]): string =>
    `-${Buffer.from(JSON.stringify(records)).toString('base64')}`;
  const text = [[record('a', 1), record('b', 2)], [record('a', null), referring], [record('b', 5)]]
    .map(plain)
    .join('.');
  const { log } = RecordLog.read(text);
  const known = { ...referring, value: { ...referring.value, podSets: [['main', 1, shape, [7]]] } } as StoredRecord;
  t.equal(contentOf(log.values()), contentOf([record('b', 5), known]));
  t.equal(RecordLog.read(log.with(editsOf([['d', 1]])).text).log.has(recordKey(record('d', 1))), true);
  t.equal(log.text, writePiece(log.values()));
  const [piece = ''] = RecordLog.empty()
    .with(editsOf([['a', 1]]))
    .text.split('.');
  t.equal((JSON.parse(Buffer.from(piece.slice(1), 'base64').toString()) as unknown[]).length, 1);
  t.end();
});

test('an earlier version fails on a log with segments instead of reading a part of it', (t) => {
  const { log } = RecordLog.empty()
    .with(editsOf([['a', 1]]))
    .sealed();
  const [first = ''] = log.text.split('.');
  t.throws(() => inflateRawSync(Buffer.from(first, 'base64')));
  t.equal(log.merged().text.startsWith('-'), true);
  t.end();
});

test('a truncated log, one with missing shapes and one without a segment are rejected', (t) => {
  const log = RecordLog.empty().with(editsOf([['a', 1]]));
  t.throws(() => RecordLog.read(log.text.slice(0, log.text.length - 20)));
  const text = `-${Buffer.from(
    JSON.stringify([{ ...record('a', 1), value: { ...record('a', 1).value, podSets: [['main', 1, 3, [1]]] } }]),
  ).toString('base64')}`;
  t.throws(() => RecordLog.read(text), /names shape 3 of 0/);
  const { log: sealed } = log.sealed();
  t.throws(() => RecordLog.read(sealed.text), /segment 0 of a ledger is missing/);
  t.throws(() => RecordLog.read('//unknown.'), /unknown list/);
  t.end();
});

test('a log without records is not an empty text, which some API servers store as null; an empty text is read as an empty log', (t) => {
  const { text } = RecordLog.empty();
  t.not(text, '');
  for (const written of [text, '']) t.same([...RecordLog.read(written).log.values()], []);
  const one = record('w', 1);
  t.same([...RecordLog.read(RecordLog.empty().with(editsOf([['w', 1]])).text).log.values()].map(recordKey), [
    recordKey(one),
  ]);
  t.end();
});
