import fc from 'fast-check';
import { test } from 'tap';
import { createEngine } from '../../../src/quota/engine.js';
import type { Command, Decision } from '../../../src/quota/index.js';
import { JournalStore } from '../../../src/quota/store/journal/journal-store.js';
import { busyHistory } from '../core/histories.js';
import { contentOf } from './contract.js';
import { CrashFiles, type Image } from './crash-files.js';

const open = (files: CrashFiles, compactBytes: number) =>
  JournalStore.open('', { files, compactBytes }).then((store) => createEngine({ store, clock: () => 0 }));

/** The engine's content after a start on the files of a crash. */
async function recovered(image: Image): Promise<string> {
  const engine = await open(new CrashFiles(image), 1 << 30);
  const content = contentOf(engine);
  const { drift } = engine.refresh();
  await engine.close();
  return drift.length === 0 ? content : `drift: ${drift.map(({ key }) => key).join()}`;
}

test('after a crash at any operation and any byte, the state is the last acknowledged one or the one that was being written', async (t) => {
  let crashes = 0;
  await fc.assert(
    fc.asyncProperty(busyHistory(14), fc.constantFrom(1, 3000, 1 << 30), async (steps, compactBytes) => {
      const files = new CrashFiles();
      const engine = await open(files, compactBytes);
      /** Acknowledged content by number of operations. */
      const acknowledged: { readonly operations: number; readonly content: string }[] = [
        { operations: 0, content: contentOf(engine) },
      ];
      for (const { command, at } of steps) {
        await engine.execute(command, at);
        acknowledged.push({ operations: files.operations.length, content: contentOf(engine) });
      }
      const total = files.operations.length;
      for (let count = 0; count <= total; count++) {
        const last = acknowledged.findLastIndex(({ operations }) => operations <= count);
        const allowed = new Set([acknowledged[last]?.content, acknowledged[last + 1]?.content]);
        for (const kept of [0, 0.3, 0.999, 1]) {
          crashes++;
          const content = await recovered(files.image(count, kept));
          if (!allowed.has(content)) return false;
        }
      }
      await engine.close();
      return true;
    }),
    { numRuns: 12 },
  );
  t.ok(crashes > 500, `${crashes} crashes`);
});

test('commands of one commit are restored together or not at all', async (t) => {
  const files = new CrashFiles();
  const engine = await open(files, 1 << 30);
  const admit = (name: string): Command => ({
    type: 'admit',
    workload: { kind: 'Job', name },
    group: 'g',
    podSets: [{ count: 1, limits: { cpu: 1 } }],
  });
  await engine.execute({ type: 'createGroup', name: 'g', hard: { 'limits.cpu': 100 } }, 0);
  const before = contentOf(engine);
  const operations = files.operations.length;
  await Promise.all(Array.from({ length: 50 }, (_, index) => engine.execute(admit(`w${index}`), 0)));
  t.equal(files.operations.length, operations + 2, 'one append and one sync per commit');
  const after = contentOf(engine);
  for (const kept of [0, 0.5, 0.9999]) t.equal(await recovered(files.image(operations + 1, kept)), before);
  t.equal(await recovered(files.image(operations + 1, 1)), after);
  await engine.close();
});

test('a flipped bit in an acknowledged record is detected, if any record follows', async (t) => {
  const files = new CrashFiles();
  let engine = await open(files, 1 << 30);
  for (let index = 0; index < 5; index++)
    await engine.execute({ type: 'createGroup', name: `g${index}`, hard: { 'limits.cpu': 1 } }, 0);
  await engine.close();
  engine = await open(files, 1 << 30);
  await engine.close();
  const image = files.image(files.operations.length, 1);
  const journal = image.get('journal-0') as Buffer;
  for (let at = 0; at < journal.length; at += 7) {
    const flipped = Buffer.from(journal);
    flipped[at] = (flipped[at] as number) ^ 0x10;
    await t.rejects(recovered(new Map([...image, ['journal-0', flipped]])), /damaged|format/, `byte ${at}`);
  }
});

test('a missing file is detected', async (t) => {
  const files = new CrashFiles();
  for (let start = 0; start < 3; start++) {
    const engine = await open(files, 1 << 30);
    await engine.execute({ type: 'createGroup', name: `g${start}`, hard: { 'limits.cpu': 1 } }, 0);
    await engine.close();
  }
  const image = files.image(files.operations.length, 1);
  for (const number of [0, 1, 2]) {
    const left = new Map([...image].filter(([name]) => name !== `journal-${number}`));
    await t.rejects(recovered(left), new RegExp(`journal-${number === 0 ? '|snapshot-' : number}`));
  }
  const old = new Map([...image].filter(([name]) => name !== 'newest'));
  t.equal(await recovered(old), await recovered(image), 'a directory of an earlier version has no file `newest`');
});

test('a deleted journal is detected where it is the only one, and after a snapshot', async (t) => {
  for (const compactBytes of [1 << 30, 1]) {
    const files = new CrashFiles();
    const store = await JournalStore.open('', { files, compactBytes });
    const engine = await createEngine({ store, clock: () => 0 });
    for (const name of ['g', 'h']) {
      await engine.execute({ type: 'createGroup', name, hard: { 'limits.cpu': 1 } }, 0);
      await store.settled();
    }
    await engine.close();
    const image = files.image(files.operations.length, 1);
    const newest =
      [...image.keys()]
        .filter((name) => name.startsWith('journal-'))
        .sort()
        .at(-1) ?? '';
    await t.rejects(
      recovered(new Map([...image].filter(([name]) => name !== newest))),
      new RegExp(`${newest} is missing`),
    );
  }
});

test('a flipped bit in any byte of a snapshot is refused, and the error names the file', async (t) => {
  const files = new CrashFiles();
  const store = await JournalStore.open('', { files, compactBytes: 1 });
  const engine = await createEngine({ store, clock: () => 0 });
  for (let index = 0; index < 5; index++)
    await engine.execute({ type: 'createGroup', name: `g${index}`, hard: { 'limits.cpu': 1 } }, 0);
  await store.settled();
  await engine.close();
  const image = files.image(files.operations.length, 1);
  const [name = '', snapshot = Buffer.alloc(0)] =
    [...image].find(([candidate]) => candidate.startsWith('snapshot-')) ?? [];
  t.ok(snapshot.length > 100);
  for (let at = 0; at < snapshot.length; at++) {
    const flipped = Buffer.from(snapshot);
    flipped[at] = (flipped[at] as number) ^ 0x10;
    const reason = await recovered(new Map([...image, [name, flipped]])).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
    if (!reason.startsWith(`${name} `)) t.fail(`byte ${at}: ${reason}`);
  }
});

test('a journal of another format is refused and not changed', async (t) => {
  const files = new CrashFiles();
  const engine = await open(files, 1 << 30);
  await engine.close();
  const other = files.image(files.operations.length, 1);
  const { frameOf } = await import('../../../src/quota/store/journal/frame.js');
  const image = new Map([...other, ['journal-0', frameOf(Buffer.from('{"format":2,"number":0,"previousBytes":0}'))]]);
  const again = new CrashFiles(image);
  await t.rejects(open(again, 1), /expected format \d+, found 2/);
  t.same(again.operations, []);
});

test('a full disk stops the engine, and a restart restores every acknowledged command', async (t) => {
  const files = new CrashFiles();
  const engine = await open(files, 1 << 30);
  await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  const before = contentOf(engine);
  const isFull = { now: true };
  const store = await JournalStore.open('', {
    files: {
      list: () => files.list(),
      read: (name) => files.read(name),
      rename: (from, to) => files.rename(from, to),
      remove: (name) => files.remove(name),
      create: async (name) => {
        const file = await files.create(name);
        return {
          ...file,
          append: async (bytes) => {
            if (isFull.now && Buffer.from(bytes).includes('Job//w')) throw new Error('ENOSPC: no space left on device');
            return file.append(bytes);
          },
        };
      },
    },
  });
  const second = await createEngine({ store, clock: () => 0 });
  const admit = (): Promise<Decision> =>
    second.admit({ workload: { kind: 'Job', name: 'w' }, group: 'g', podSets: [{ count: 1, limits: { cpu: 1 } }] });
  await t.rejects(admit(), /ENOSPC/);
  isFull.now = false;
  await t.rejects(admit(), /ENOSPC/, 'the memory is ahead of the disk: the engine stops');
  t.equal(await recovered(files.image(files.operations.length, 1)), before);
});

test('a snapshot that cannot be written is dropped, and the journal continues', async (t) => {
  const files = new CrashFiles();
  const warnings: string[] = [];
  const store = await JournalStore.open('', {
    compactBytes: 1,
    onWarning: (reason) => warnings.push(reason),
    files: {
      list: () => files.list(),
      read: (name) => files.read(name),
      remove: (name) => files.remove(name),
      create: (name) => files.create(name),
      rename: async (from, to) => {
        if (to.startsWith('snapshot-')) throw new Error('EIO: rename');
        await files.rename(from, to);
      },
    },
  });
  const engine = await createEngine({ store, clock: () => 0 });
  for (let index = 0; index < 5; index++) {
    await engine.createGroup({ name: `g${index}`, hard: { 'limits.cpu': 10 } });
    await store.settled();
  }
  t.ok(warnings.length > 0);
  t.match(warnings[0], /EIO/);
  const content = contentOf(engine);
  t.equal(await recovered(files.image(files.operations.length, 1)), content);
  await engine.close();
});
