import fc from 'fast-check';
import { test } from 'tap';
import { KeyedScheduler, type KeyedBatch } from '../../../src/quota/store/keyed-scheduler.js';

/** A KeyedScheduler whose batches end when the test says so. */
class Bench {
  /** Running batches. */
  readonly running: { readonly batch: KeyedBatch<string>; readonly end: () => void }[] = [];
  readonly begun: (readonly string[])[] = [];
  readonly batches = new KeyedScheduler<string>((batch) => {
    this.begun.push(batch.items);
    return new Promise((resolve) => this.running.push({ batch, end: resolve }));
  });

  add(item: string, ...names: readonly string[]): void {
    this.batches.add(item, new Set(names));
  }

  async end(item: string): Promise<void> {
    const at = this.running.findIndex(({ batch }) => batch.items.includes(item));
    this.running.splice(at, 1)[0]?.end();
    await settle();
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('work without common keys runs at the same time; work with common keys waits and is then done as one batch, in order', async (t) => {
  const bench = new Bench();
  bench.add('a1', 'a');
  bench.add('b1', 'b');
  await settle();
  bench.add('a2', 'a');
  bench.add('a3', 'a');
  bench.add('c1', 'c');
  await settle();
  t.same(bench.begun, [['a1'], ['b1'], ['c1']]);
  await bench.end('a1');
  t.same(bench.begun.at(-1), ['a2', 'a3']);
});

test('work that arrives together and is connected through other work is one batch', async (t) => {
  const bench = new Bench();
  bench.add('ab', 'a', 'b');
  bench.add('cd', 'c', 'd');
  bench.add('bc', 'b', 'c');
  bench.add('e', 'e');
  await settle();
  t.same(bench.begun, [['ab', 'cd', 'bc'], ['e']]);
});

test('work on two keys is not starved by streams of work on each of them', async (t) => {
  const bench = new Bench();
  bench.add('a0', 'a');
  bench.add('b0', 'b');
  await settle();
  bench.add('both', 'a', 'b');
  bench.add('a1', 'a');
  bench.add('b1', 'b');
  await bench.end('a0');
  t.equal(bench.begun.length, 2, 'key a stays reserved for it');
  await bench.end('b0');
  t.same(bench.begun.at(-1), ['both', 'a1', 'b1']);
});

test('a batch can take free keys, and returns its work where they are taken', async (t) => {
  const bench = new Bench();
  bench.add('a', 'a');
  bench.add('b', 'b');
  await settle();
  const batch = bench.running[0]?.batch as KeyedBatch<string>;
  t.equal(bench.batches.extend(batch, ['a', 'c']), true);
  t.equal(bench.batches.extend(batch, ['d', 'b']), false);
  bench.add('d', 'd');
  await settle();
  t.same(bench.begun.at(-1), ['d'], 'no key was taken');
  bench.batches.requeue(batch, ['a'], ['b']);
  await bench.end('a');
  bench.add('late', 'a');
  t.equal(bench.begun.length, 3);
  await bench.end('b');
  t.same(bench.begun.at(-1), ['a', 'late'], 'at its old position, before later work');
});

test('for any keys that work has and discovers, no key is worked on twice at once and all work is done', async () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const item = fc.record({
    names: fc.uniqueArray(name, { maxLength: 3 }),
    more: fc.uniqueArray(name, { maxLength: 2 }),
    ms: fc.nat(2),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 40 }), async (items) => {
      const held = new Set<string>();
      const done: number[] = [];
      const batches = new KeyedScheduler<number>(async (batch) => {
        const own = new Set(batch.keys);
        for (const each of own) if (held.has(each)) throw new Error(`${each} twice`);
        for (const each of own) held.add(each);
        for (let turn = 0; turn < (items[batch.items[0] as number]?.ms ?? 0); turn++) await settle();
        const more = batch.items.flatMap((index) => items[index]?.more ?? []);
        if (batches.extend(batch, more)) done.push(...batch.items);
        else batches.requeue(batch, batch.items, more);
        for (const each of own) held.delete(each);
      });
      for (const [index, { names }] of items.entries()) {
        batches.add(index, new Set(names));
        if (index % 3 === 0) await settle();
      }
      await batches.idle();
      return done.length === items.length && new Set(done).size === items.length && held.size === 0;
    }),
    { numRuns: 200 },
  );
});
