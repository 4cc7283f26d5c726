import { test } from 'tap';
import { createEngine, type QuotaEngine } from '../../../src/quota/engine.js';
import { MemoryStore, SharedMemory } from '../../../src/quota/store/memory-store.js';
import type { Store } from '../../../src/quota/store/store.js';

/** Executes operations of several stores one by one, in an order that the test chooses. */
class Schedule {
  readonly #choices: readonly number[];
  /** Number of possible next operations at each step. */
  readonly options: number[] = [];
  #waiting: (() => void)[] = [];

  constructor(choices: readonly number[]) {
    this.#choices = choices;
  }

  gate(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Executes one operation after the other until `done`. */
  async run(done: Promise<unknown>): Promise<void> {
    let isDone = false;
    void done.then(() => {
      isDone = true;
    });
    for (;;) {
      // All code that does not wait for another operation runs within these turns.
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (isDone) return;
      if (this.#waiting.length === 0) continue;
      const choice = this.#choices[this.options.length] ?? 0;
      this.options.push(this.#waiting.length);
      this.#waiting.splice(choice, 1)[0]?.();
    }
  }
}

const gated = (store: Store, schedule: Schedule): Store => ({
  exclusive: false,
  load: (sink) => store.load(sink),
  list: () => schedule.gate().then(() => store.list()),
  read: (groups) => schedule.gate().then(() => store.read(groups)),
  commit: (batch) => schedule.gate().then(() => store.commit(batch)),
  close: () => store.close(),
});

interface World {
  readonly memory: SharedMemory;
  readonly engines: readonly QuotaEngine[];
}

/** Runs `act` with every order of the engines' store operations, and `look` after each. */
async function everyOrder(
  count: number,
  prepare: (engine: QuotaEngine) => Promise<void>,
  act: (engines: readonly QuotaEngine[]) => Promise<unknown>,
  look: (world: World) => Promise<string | null>,
  limit: number,
): Promise<{ readonly orders: number; readonly failure: string | null }> {
  const pending: number[][] = [[]];
  let orders = 0;
  while (pending.length > 0 && orders < limit) {
    const choices = pending.pop() as number[];
    orders++;
    const memory = new SharedMemory();
    const first = await createEngine({ store: new MemoryStore(memory), clock: () => 0 });
    await prepare(first);
    const schedule = new Schedule(choices);
    const engines = await Promise.all(
      Array.from({ length: count }, () =>
        createEngine({ store: gated(new MemoryStore(memory), schedule), clock: () => 0, pause: async () => undefined }),
      ),
    );
    await schedule.run(act(engines));
    const failure = await look({ memory, engines });
    if (failure !== null)
      return {
        orders,
        failure: `${failure} in order ${schedule.options.map((_, index) => choices[index] ?? 0).join()}`,
      };
    for (let at = choices.length; at < schedule.options.length; at++) {
      for (let choice = 1; choice < (schedule.options[at] as number); choice++) {
        pending.push([...choices, ...new Array<number>(at - choices.length).fill(0), choice]);
      }
    }
  }
  return { orders, failure: null };
}

const cores = (name: string, group: string, count: number) => ({
  workload: { kind: 'Job', name },
  group,
  podSets: [{ count, limits: { cpu: 1 } }],
});

async function usedOf(memory: SharedMemory, group: string): Promise<bigint> {
  const engine = await createEngine({ store: new MemoryStore(memory), clock: () => 0 });
  if (engine.refresh().drift.length > 0) return -1n;
  return engine.status(group)?.used.get('limits.cpu') ?? -1n;
}

test('R1: two commands that read the same usage are not both admitted, in any order of reads and writes', async (t) => {
  let answers: readonly boolean[] = [];
  const { orders, failure } = await everyOrder(
    2,
    async (engine) => {
      await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
      await engine.admit(cores('first', 'g', 1));
    },
    async (engines) => {
      answers = (await Promise.all(engines.map((engine, which) => engine.admit(cores(`w${which}`, 'g', 5))))).map(
        ({ allowed }) => allowed,
      );
    },
    async ({ memory }) => {
      const used = await usedOf(memory, 'g');
      return used === 6000n && answers.filter(Boolean).length === 1 ? null : `used ${used}, answers ${answers.join()}`;
    },
    5000,
  );
  t.equal(failure, null);
  t.ok(orders > 1, `${orders} orders`);
});

test('R2: a reservation for an object that is not observed yet survives every refresh', async (t) => {
  const { orders, failure } = await everyOrder(
    2,
    async (engine) => {
      await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
    },
    ([one, two]) =>
      Promise.all([
        one?.reserve(cores('w', 'g', 6), 60_000, 'op'),
        two?.catchUp().then(() => {
          two.refresh();
          return two.admit(cores('x', 'g', 6));
        }),
      ]),
    async ({ memory }) => {
      const used = await usedOf(memory, 'g');
      return used === 6000n ? null : `used ${used}`;
    },
    5000,
  );
  t.equal(failure, null);
  t.ok(orders > 1, `${orders} orders`);
});

test('R3, R9: a repeated reservation counts once, and an expired one does not count', async (t) => {
  const { orders, failure } = await everyOrder(
    2,
    async (engine) => {
      await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
    },
    async ([one, two]) => {
      await Promise.all([one?.reserve(cores('w', 'g', 6), 1000, 'op'), two?.reserve(cores('w', 'g', 6), 1000, 'op')]);
      await Promise.all([one?.confirm('op'), two?.reserve(cores('x', 'g', 4), 1000, 'never')]);
      await two?.cancel('never');
    },
    async ({ memory }) => {
      const used = await usedOf(memory, 'g');
      return used === 6000n ? null : `used ${used}`;
    },
    400,
  );
  t.equal(failure, null);
  t.ok(orders > 5, `${orders} orders`);
});

test('R6: a child and a workload of its parent do not both get the remaining quota', async (t) => {
  const { orders, failure } = await everyOrder(
    2,
    async (engine) => {
      await engine.createGroup({ name: 'p', hard: { 'limits.cpu': 10 } });
    },
    ([one, two]) =>
      Promise.all([
        one?.createGroup({ name: 'c', parent: 'p', hard: { 'limits.cpu': 6 } }),
        two?.admit(cores('w', 'p', 6)),
      ]),
    async ({ memory }) => {
      const used = await usedOf(memory, 'p');
      return used === 6000n ? null : `used ${used}`;
    },
    5000,
  );
  t.equal(failure, null);
  t.ok(orders > 1, `${orders} orders`);
});

test('R7: a lowered limit holds for every later command, also in another engine', async (t) => {
  let answers: readonly [lowered: readonly string[], admitted: boolean] = [[], false];
  const { orders, failure } = await everyOrder(
    2,
    async (engine) => {
      await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
    },
    async ([one, two]) => {
      const [lowered, admitted] = await Promise.all([
        one?.updateGroup({ name: 'g', hard: { 'limits.cpu': 5 } }),
        two?.admit(cores('w', 'g', 6)),
      ]);
      answers = [(lowered?.warnings ?? []).map(({ code }) => code), admitted?.allowed === true];
    },
    async ({ memory }) => {
      const [warnings, admitted] = answers;
      // Either the workload came first, and the decision on the lower limit warns, or it meets the new limit.
      const used = await usedOf(memory, 'g');
      return used === (admitted ? 6000n : 0n) && warnings.includes('OverQuota') === admitted
        ? null
        : `used ${used}, warned of ${warnings.join() || 'nothing'}`;
    },
    5000,
  );
  t.equal(failure, null);
  t.ok(orders > 1, `${orders} orders`);
});

test('R8: a group that another engine deletes admits nothing', async (t) => {
  let answers: readonly boolean[] = [];
  const { orders, failure } = await everyOrder(
    2,
    async (engine) => {
      await engine.createGroup({ name: 'p', hard: { 'limits.cpu': 10 } });
      await engine.createGroup({ name: 'c', parent: 'p', hard: { 'limits.cpu': 6 } });
    },
    async ([one, two]) => {
      answers = (await Promise.all([one?.deleteGroup('c'), two?.admit(cores('w', 'c', 1))])).map(
        (decision) => decision?.allowed === true,
      );
    },
    async ({ memory }) =>
      answers.filter(Boolean).length === 1 && (await usedOf(memory, 'p')) === (answers[0] === true ? 0n : 6000n)
        ? null
        : `answers ${answers.join()}`,
    5000,
  );
  t.equal(failure, null);
  t.ok(orders > 1, `${orders} orders`);
});

test('elastic groups of several engines do not lend the same quota twice', async (t) => {
  const { orders, failure } = await everyOrder(
    3,
    async (engine) => {
      await engine.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
      for (const name of ['a', 'b'])
        await engine.createGroup({ name, parent: 'root', mode: 'elastic', hard: { 'limits.cpu': 5 } });
    },
    ([one, two, three]) =>
      Promise.all([
        one?.admit(cores('x', 'a', 8)),
        two?.admit(cores('y', 'b', 4)),
        three?.admit(cores('z', 'root', 1)),
      ]),
    async ({ memory }) => {
      const used = await Promise.all(
        ['root', 'a', 'b'].map(async (name) => {
          const engine = await createEngine({ store: new MemoryStore(memory), clock: () => 0 });
          return engine.status(name)?.selfUsed.get('limits.cpu') ?? 0n;
        }),
      );
      const total = used.reduce((sum, amount) => sum + amount, 0n);
      return total <= 10_000n && total >= 5000n ? null : `used ${used.join()}`;
    },
    600,
  );
  t.equal(failure, null);
  t.ok(orders > 100, `${orders} orders`);
});
