import fc from 'fast-check';
import { test, type Test } from 'tap';
import { createEngine, type QuotaEngine } from '../../../src/quota/engine.js';
import { MemoryStore, SharedMemory } from '../../../src/quota/store/memory-store.js';
import type { Batch, Store } from '../../../src/quota/store/store.js';
import { contentOf } from './contract.js';

const cores = (name: string, group: string, count: number) => ({
  workload: { kind: 'Job', name },
  group,
  podSets: [{ count, limits: { cpu: 1 } }],
});
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A store whose commits wait until the test completes them or makes them fail. */
class HeldStore implements Store {
  readonly exclusive = false;
  /** Running commits, by their groups. */
  readonly commits: {
    readonly groups: string;
    readonly batch: Batch;
    readonly go: () => void;
    readonly fail: (error: Error) => void;
  }[] = [];
  reads = 0;
  isHeld = false;
  readonly #below: MemoryStore;

  constructor(memory: SharedMemory) {
    this.#below = new MemoryStore(memory);
  }

  load: Store['load'] = (sink) => this.#below.load(sink);
  list: Store['list'] = () => this.#below.list();
  close: Store['close'] = () => this.#below.close();

  read: Store['read'] = async (groups) => {
    this.reads++;
    return this.#below.read(groups);
  };

  commit: Store['commit'] = async (batch) => {
    if (this.isHeld) {
      const groups = [...batch.expected.keys()].sort().join('+');
      await new Promise<void>((resolve, reject) => this.commits.push({ groups, batch, go: resolve, fail: reject }));
    }
    return this.#below.commit(batch);
  };

  get waiting(): readonly string[] {
    return this.commits.map(({ groups }) => groups);
  }

  async go(groups: string): Promise<void> {
    const at = this.commits.findIndex((commit) => commit.groups === groups);
    this.commits.splice(at, 1)[0]?.go();
    await settle();
  }
}

async function held(
  t: Test,
  ...groups: readonly string[]
): Promise<{ readonly engine: QuotaEngine; readonly store: HeldStore; readonly memory: SharedMemory }> {
  const memory = new SharedMemory();
  const store = new HeldStore(memory);
  const engine = await createEngine({ store, clock: () => 0, pause: async () => undefined });
  for (const name of groups) t.ok((await engine.createGroup({ name, hard: { 'limits.cpu': 10 } })).allowed);
  store.isHeld = true;
  return { engine, store, memory };
}

test('decisions about different groups are committed at the same time, decisions about one group one after the other', async (t) => {
  const { engine, store } = await held(t, 'a', 'b');
  const first = engine.admit(cores('a1', 'a', 1));
  const other = engine.admit(cores('b1', 'b', 1));
  await settle();
  const late = Promise.all([engine.admit(cores('a2', 'a', 1)), engine.admit(cores('a3', 'a', 1))]);
  await settle();
  t.same(store.waiting, ['a', 'b']);
  await store.go('b');
  t.ok((await other).allowed, 'one is answered while the other still waits');
  await store.go('a');
  t.ok((await first).allowed);
  t.same(store.waiting, ['a']);
  t.same(
    store.commits[0]?.batch.changes.map(({ key }) => key),
    ['Job//a2', 'Job//a3'],
    'in one commit',
  );
  await store.go('a');
  t.ok((await late).every(({ allowed }) => allowed));
  t.equal(engine.status('a')?.used.get('limits.cpu'), 3000n);
  t.same(engine.refresh().drift, []);
});

test('a workload that is submitted to two groups at once is decided in one group after the other', async (t) => {
  const { engine, store } = await held(t, 'a', 'b');
  const both = Promise.all([
    engine.reserve(cores('w', 'a', 1), 1000, 'one'),
    engine.reserve(cores('w', 'b', 1), 1000, 'two'),
  ]);
  await settle();
  t.same(store.waiting, ['a+b']);
  await store.go('a+b');
  t.ok((await both).every(({ allowed }) => allowed));
  store.isHeld = false;
  await engine.observe({
    workload: { kind: 'Job', name: 'w', uid: 'u', version: 1 },
    group: 'b',
    demand: { ...cores('w', 'b', 1), workload: { kind: 'Job', name: 'w', uid: 'u', version: 1 } },
  });
  t.same(engine.refresh().drift, []);
});

test('a refusal in a batch with admissions is final with their commit; a refusal alone reads the store again', async (t) => {
  const { engine, store } = await held(t, 'a');
  const answers = Promise.all([
    engine.admit(cores('small', 'a', 6)),
    engine.admit(cores('big', 'a', 6)),
    engine.admit(cores('fits', 'a', 4)),
  ]);
  await settle();
  await store.go('a');
  t.same(
    (await answers).map(({ code }) => code),
    ['OK', 'QuotaExceeded', 'OK'],
  );
  t.equal(store.reads, 0);
  t.equal((await engine.admit(cores('more', 'a', 1))).code, 'QuotaExceeded');
  t.equal(store.reads, 1);
});

test('refusals of a batch whose commit failed are decided again with the rest', async (t) => {
  const { engine, store, memory } = await held(t, 'a');
  const other = await createEngine({ store: new MemoryStore(memory), clock: () => 0 });
  await other.admit(cores('theirs', 'a', 5));
  const answers = Promise.all([
    engine.admit(cores('w1', 'a', 6)),
    engine.admit(cores('w2', 'a', 6)),
    engine.admit(cores('w3', 'a', 4)),
  ]);
  await settle();
  await other.release({ kind: 'Job', name: 'theirs' });
  await other.admit(cores('theirs', 'a', 2));
  await store.go('a');
  await store.go('a');
  t.same(
    (await answers).map(({ code }) => code),
    ['OK', 'QuotaExceeded', 'QuotaExceeded'],
  );
  await other.catchUp();
  t.equal(contentOf(engine), contentOf(other));
  t.same(engine.refresh().drift, []);
});

test('a change of two groups, one of which was changed elsewhere, is decided again and does not delay a third group', async (t) => {
  const { engine, store, memory } = await held(t, 'p', 'free');
  const other = await createEngine({ store: new MemoryStore(memory), clock: () => 0 });
  const child = engine.createGroup({ name: 'c', parent: 'p', hard: { 'limits.cpu': 6 } });
  const free = engine.admit(cores('w', 'free', 1));
  await settle();
  t.same(store.waiting, ['c+p', 'free']);
  await other.admit(cores('theirs', 'p', 5));
  await store.go('c+p');
  await store.go('free');
  t.ok((await free).allowed);
  t.equal((await child).code, 'ParentExceeded');
  t.equal(engine.status('c'), null);
  t.equal(engine.status('p')?.used.get('limits.cpu'), 5000n);
});

test('a failed commit fails only its own decisions, and its outcome is looked up', async (t) => {
  const { engine, store } = await held(t, 'a', 'b');
  const [mine, other] = [engine.admit(cores('a1', 'a', 6)), engine.admit(cores('b1', 'b', 6))];
  await settle();
  const failing = t.rejects(mine, /broken/);
  store.commits.shift()?.fail(new Error('broken'));
  await failing;
  await store.go('b');
  t.ok((await other).allowed);
  const again = engine.admit(cores('a2', 'a', 6));
  await settle();
  await store.go('a');
  t.ok((await again).allowed, 'the failed commit wrote nothing');
  t.equal(engine.status('a')?.used.get('limits.cpu'), 6000n);
});

test('a change of a tree succeeds during a stream of admissions to its root', async (t) => {
  const memory = new SharedMemory();
  const store = new HeldStore(memory);
  const engine = await createEngine({ store, clock: () => 0 });
  await engine.createGroup({ name: 'root', hard: { 'limits.cpu': 100_000 } });
  store.isHeld = true;
  let [isMade, admitted] = [false, 0];
  const stream = (async () => {
    for (let index = 0; !isMade && index < 1000; index++) {
      void engine.admit(cores(`w${index}`, 'root', 1)).then(({ allowed }) => void (admitted += allowed ? 1 : 0));
      await settle();
    }
  })();
  const made = engine
    .createGroup({ name: 'child', parent: 'root', hard: { 'limits.cpu': 1 } })
    .then(({ allowed }) => (isMade = allowed));
  for (let commits = 0; !isMade && commits < 20; commits++) {
    await settle();
    store.commits.shift()?.go();
  }
  t.equal(isMade, true);
  store.isHeld = false;
  for (const { go } of store.commits.splice(0)) go();
  await Promise.all([stream, made]);
  await engine.close();
  t.ok(admitted > 0);
});

test('due timers of a group run before its decisions, and wait for no other group', async (t) => {
  const memory = new SharedMemory();
  const store = new HeldStore(memory);
  const engine = await createEngine({ store, clock: () => 0 });
  for (const name of ['a', 'b']) await engine.createGroup({ name, hard: { 'limits.cpu': 10 } });
  await engine.execute({ type: 'reserve', ...cores('held', 'a', 6), ttlMs: 1000, operation: 'op' }, 0);
  store.isHeld = true;
  const other = engine.execute({ type: 'admit', ...cores('w', 'b', 1) }, 2000);
  const mine = engine.execute({ type: 'admit', ...cores('v', 'a', 10) }, 2000);
  await settle();
  t.same(store.waiting, ['a', 'b'], 'one commit per group');
  for (const groups of ['a', 'b']) await store.go(groups);
  t.same([(await other).code, (await mine).code], ['OK', 'OK']);
  t.same(engine.refresh().drift, []);
});

test('a due timer whose commit fails runs later', async (t) => {
  const { engine, store } = await held(t, 'a');
  store.isHeld = false;
  await engine.execute({ type: 'reserve', ...cores('held', 'a', 6), ttlMs: 1000, operation: 'op' }, 0);
  store.isHeld = true;
  const tick = engine.execute({ type: 'tick' }, 2000);
  await settle();
  store.commits.shift()?.fail(new Error('broken'));
  t.ok((await tick).allowed);
  t.equal(engine.status('a')?.used.get('limits.cpu'), 6000n);
  store.isHeld = false;
  await engine.execute({ type: 'tick' }, 2001);
  t.equal(engine.status('a')?.used.get('limits.cpu'), 0n);
});

test('whatever several engines do with a tree at once, no quota is used twice and all engines agree in the end', async () => {
  const group = fc.constantFrom('root', 'a', 'b', 'c', 'e1', 'e2');
  const job = fc.nat(7).map((index) => `w${index}`);
  const act = fc.oneof(
    fc.record({ do: fc.constant('admit' as const), group, job, count: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ do: fc.constant('reserve' as const), group, job, count: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ do: fc.constant('release' as const), job }),
    fc.record({
      do: fc.constant('resize' as const),
      group: fc.constantFrom('a', 'b', 'c'),
      count: fc.integer({ min: 1, max: 12 }),
    }),
    fc.record({ do: fc.constant('delete' as const), group: fc.constantFrom('a', 'b', 'c') }),
    fc.record({ do: fc.constant('tick' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(act, fc.nat(1), fc.boolean()), { maxLength: 60 }), async (acts) => {
      const memory = new SharedMemory();
      const opened = async (): Promise<QuotaEngine> =>
        createEngine({ store: slow(new MemoryStore(memory)), clock: () => 0, pause: settle });
      const first = await opened();
      await first.createGroup({ name: 'root', hard: { 'limits.cpu': 40 } });
      for (const name of ['a', 'b', 'c']) await first.createGroup({ name, parent: 'root', hard: { 'limits.cpu': 5 } });
      for (const name of ['e1', 'e2'])
        await first.createGroup({ name, parent: 'root', mode: 'elastic', hard: { 'limits.cpu': 5 } });
      const engines = [await opened(), await opened()];
      const pending: Promise<unknown>[] = [];
      for (const [index, [told, which, isLast]] of acts.entries()) {
        const engine = engines[which] as QuotaEngine;
        // Each object belongs to one engine, which decides its group.
        const what = 'job' in told ? { ...told, job: `${told.job}-${which}` } : told;
        if (what.do === 'admit')
          pending.push(engine.execute({ type: 'admit', ...cores(what.job, what.group, what.count) }, index));
        else if (what.do === 'reserve')
          pending.push(
            engine.execute({ type: 'reserve', ...cores(what.job, what.group, what.count), ttlMs: 5 }, index),
          );
        else if (what.do === 'release')
          pending.push(engine.execute({ type: 'release', workload: { kind: 'Job', name: what.job } }, index));
        else if (what.do === 'resize')
          pending.push(
            engine.execute({ type: 'updateGroup', name: what.group, hard: { 'limits.cpu': what.count } }, index),
          );
        else if (what.do === 'delete') pending.push(engine.execute({ type: 'deleteGroup', name: what.group }, index));
        else pending.push(engine.execute({ type: 'tick' }, index));
        if (isLast) await settle();
      }
      await Promise.all(pending);
      const fresh = await createEngine({ store: new MemoryStore(memory), clock: () => 0 });
      for (const engine of [...engines, fresh]) {
        await engine.catchUp();
        const { drift } = engine.refresh();
        if (drift.length > 0)
          throw new Error(`drift in ${drift.map(({ group: name, key }) => `${name} ${key}`).join()}`);
      }
      const contents = new Set([...engines, fresh].map(contentOf));
      if (contents.size > 1) throw new Error([...contents].join('\n---\n'));
      const used = fresh.groups().map((name) => ({ name, status: fresh.status(name) }));
      const total = used.reduce((sum, { status }) => sum + (status?.selfUsed.get('limits.cpu') ?? 0n), 0n);
      return total <= 40_000n;
    }),
    { numRuns: 150 },
  );
});

/** Operations take different numbers of turns of the event loop. */
function slow(store: Store): Store {
  let turn = 0;
  const wait = async (): Promise<void> => {
    for (let turns = turn++ % 3; turns >= 0; turns--) await settle();
  };
  return {
    exclusive: false,
    load: (sink) => store.load(sink),
    list: () => wait().then(() => store.list()),
    read: (groups) => wait().then(() => store.read(groups)),
    commit: (batch) => wait().then(() => store.commit(batch)),
    close: () => store.close(),
  };
}
