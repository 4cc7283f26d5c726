import { test } from 'tap';
import { createEngine, type QuotaEngine } from '../../../src/quota/engine.js';
import { MemoryStore, SharedMemory } from '../../../src/quota/store/memory-store.js';
import type { Store } from '../../../src/quota/store/store.js';
import { contentOf } from './contract.js';

const cores = (name: string, count: number) => ({
  workload: { kind: 'Job', name },
  group: 'g',
  podSets: [{ count, limits: { cpu: 1 } }],
});

/** A store that counts writes, and can insert another engine's commit before every commit. */
function counting(
  memory: SharedMemory,
  isLate: () => boolean = () => false,
): { readonly store: Store; readonly commits: () => number } {
  const store = new MemoryStore(memory);
  let commits = 0;
  return {
    commits: () => commits,
    store: {
      exclusive: false,
      load: (sink) => store.load(sink),
      list: () => store.list(),
      read: (groups) => store.read(groups),
      commit: async (batch) => {
        commits++;
        return isLate() ? { ok: false, code: 'Conflict', groups: [...batch.expected.keys()] } : store.commit(batch);
      },
      close: () => store.close(),
    },
  };
}

const opened = (store: Store): Promise<QuotaEngine> =>
  createEngine({ store, clock: () => 0, pause: async () => undefined });

test('R4: an engine with an outdated state decides on the current one, for and against', async (t) => {
  const memory = new SharedMemory();
  const one = await opened(new MemoryStore(memory));
  await one.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  await one.admit(cores('a', 8));
  const late = await opened(new MemoryStore(memory));
  await one.release({ kind: 'Job', name: 'a' });
  t.equal((await late.admit(cores('b', 6))).code, 'OK', 'there is room again');
  const refused = await one.admit(cores('c', 6));
  t.equal(refused.code, 'QuotaExceeded', 'and now there is none');
  t.equal(refused.violations[0]?.used, 6000n, 'the refusal shows the current usage');
});

test('R5: simultaneous commands for one group are one write, and as many are admitted as fit', async (t) => {
  const memory = new SharedMemory();
  const { store, commits } = counting(memory);
  const engine = await opened(store);
  await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 100 } });
  const before = commits();
  const decisions = await Promise.all(Array.from({ length: 200 }, (_, index) => engine.admit(cores(`w${index}`, 1))));
  t.equal(decisions.filter(({ allowed }) => allowed).length, 100);
  t.equal(commits() - before, 1);
});

test('R5: a command that loses every race is told to retry, and nothing is admitted silently', async (t) => {
  const memory = new SharedMemory();
  const first = await opened(new MemoryStore(memory));
  await first.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  let isLate = true;
  const { store, commits } = counting(memory, () => isLate);
  const engine = await opened(store);
  const decision = await engine.admit(cores('w', 1));
  t.equal(decision.code, 'Conflict');
  t.notOk(decision.allowed);
  t.ok(commits() > 5, `after ${commits()} attempts`);
  t.equal(engine.status('g')?.used.get('limits.cpu'), 0n);
  isLate = false;
  t.equal((await engine.admit(cores('w', 1))).code, 'OK');
});

test('R10: a dry run writes nothing, whatever it decides', async (t) => {
  const memory = new SharedMemory();
  const { store, commits } = counting(memory);
  const engine = await opened(store);
  await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  await engine.admit(cores('w', 4));
  const [before, content] = [commits(), contentOf(engine)];
  t.equal((await engine.admit(cores('x', 6), { dryRun: true })).code, 'OK');
  t.equal((await engine.admit(cores('x', 7), { dryRun: true })).code, 'QuotaExceeded');
  t.equal((await engine.scale({ kind: 'Job', name: 'w' }, 9, { dryRun: true })).code, 'OK');
  t.equal((await engine.checkHpa({ kind: 'Job', name: 'w' }, 10)).code, 'OK');
  t.equal(commits(), before);
  t.equal(contentOf(engine), content);
});
