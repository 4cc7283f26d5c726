import fc from 'fast-check';
import { test } from 'tap';
import { createEngine, type QuotaEngine } from '../../../src/quota/engine.js';
import type { Decision } from '../../../src/quota/index.js';
import { toRecord } from '../../../src/quota/core/record.js';
import type { Store } from '../../../src/quota/store/store.js';
import { check } from '../check.js';
import { busyHistory } from '../core/histories.js';
import { HOUR, SCENARIOS } from '../vectors.js';

/** A place that stores are opened on, one after the other or, if it is shared, at the same time. */
export interface Place {
  open(): Promise<Store>;
  /** Removes everything. */
  destroy(): Promise<void>;
}

/** What an engine holds, in an order of its own. */
export function contentOf(engine: QuotaEngine): string {
  return [...engine.records()]
    .map((change) => JSON.stringify(toRecord(change, null)))
    .sort()
    .join('\n');
}

/** What every store has to do. `place` makes an empty one; `shared` says whether several engines may use it at once. */
export function storeContract(name: string, place: () => Promise<Place>, shared: boolean): void {
  const opened = async (at: Place, clock = () => 0): Promise<QuotaEngine> =>
    createEngine({ store: await at.open(), clock, pause: () => Promise.resolve() });
  const cores = (workload: string, group: string, count: number) => ({
    workload: { kind: 'Job', name: workload },
    group,
    podSets: [{ count, limits: { cpu: 1 } }],
  });

  for (const [index, { before, steps }] of SCENARIOS.entries()) {
    test(`${name}: ${steps.map(({ id }) => id).join(' ')}, with a new start after each step`, async (t) => {
      const at = await place();
      let engine = await opened(at);
      for (const command of before) await engine.execute(command, 0);
      for (const { commands, expected, hour = 0 } of steps) {
        let decision: Decision | undefined;
        const now = Math.round(hour * HOUR);
        for (const command of commands) decision = await engine.execute(command, now);
        await engine.close();
        engine = await opened(at, () => now);
        if (decision !== undefined) check(t, decision, (group) => engine.status(group), expected);
      }
      await engine.close();
      await at.destroy();
      t.ok(index >= 0);
    });
  }

  test(`${name}: what was acknowledged is there after a new start`, async (t) => {
    await fc.assert(
      fc.asyncProperty(busyHistory(40), async (steps) => {
        const at = await place();
        const engine = await opened(at);
        for (const { command, at: time } of steps) await engine.execute(command, time);
        const before = contentOf(engine);
        await engine.close();
        const again = await opened(at);
        const after = contentOf(again);
        const { drift } = again.refresh();
        await again.close();
        await at.destroy();
        return before === after && drift.length === 0;
      }),
      { numRuns: 25 },
    );
    t.end();
  });

  test(`${name}: of many that come at once as many are admitted as fit`, async (t) => {
    const at = await place();
    const engine = await opened(at);
    await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
    await engine.admit(cores('first', 'g', 1));
    const decisions = await Promise.all(
      Array.from({ length: 200 }, (_, index) => engine.admit(cores(`w${index}`, 'g', 5))),
    );
    t.equal(decisions.filter(({ allowed }) => allowed).length, 1);
    t.equal(engine.status('g')?.used.get('limits.cpu'), 6000n);
    await engine.close();
    await at.destroy();
  });

  test(`${name}: a reservation outlives the engine that made it, and its time`, async (t) => {
    const at = await place();
    const first = await opened(at);
    await first.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
    await first.reserve(cores('a', 'g', 6), 1000, 'op-a');
    await first.reserve(cores('b', 'g', 2), 5000, 'op-b');
    await first.close();
    let now = 500;
    const second = await opened(at, () => now);
    t.equal((await second.admit(cores('c', 'g', 3))).code, 'QuotaExceeded');
    now = 2000;
    t.equal((await second.admit(cores('c', 'g', 3))).code, 'OK');
    t.equal((await second.confirm('op-a')).code, 'ReservationNotFound');
    t.equal((await second.confirm('op-b')).code, 'OK');
    now = 9000;
    t.equal(second.status('g')?.used.get('limits.cpu'), 5000n);
    await second.close();
    await at.destroy();
  });

  test(`${name}: events are told when they are durable, in their order`, async (t) => {
    const at = await place();
    const engine = await opened(at);
    const told: string[] = [];
    const end = engine.on(({ type, revision }) => told.push(`${type} ${revision}`));
    await Promise.all([
      engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } }),
      engine.admit(cores('a', 'g', 6)),
      engine.admit(cores('b', 'g', 6)),
    ]);
    end();
    await engine.admit(cores('c', 'g', 1));
    t.same(told, ['groupCreated 1', 'admitted 2', 'denied 2']);
    await engine.close();
    await at.destroy();
  });

  if (!shared) return;

  test(`${name}: engines that share it admit together what fits`, async (t) => {
    const at = await place();
    const engines = [await opened(at), await opened(at), await opened(at)];
    const [one] = engines as [QuotaEngine];
    await one.createGroup({ name: 'root', hard: { 'limits.cpu': 30 } });
    await one.createGroup({ name: 'g', parent: 'root', hard: { 'limits.cpu': 20 } });
    const all = engines.flatMap((engine, which) =>
      Array.from({ length: 20 }, (_, index) => engine.admit(cores(`w${which}-${index}`, 'g', 2))),
    );
    const decisions = await Promise.all(all);
    t.equal(decisions.filter(({ allowed }) => allowed).length, 10);
    for (const engine of engines) {
      await engine.catchUp();
      t.equal(engine.status('g')?.used.get('limits.cpu'), 20_000n);
      t.same(engine.refresh().drift, []);
    }
    t.equal(new Set(engines.map(contentOf)).size, 1);
    for (const engine of engines) await engine.close();
    await at.destroy();
  });

  test(`${name}: children and workloads of one parent, made by several engines, fit it together`, async (t) => {
    const at = await place();
    const engines = [await opened(at), await opened(at)];
    const [one] = engines as [QuotaEngine];
    await one.createGroup({ name: 'p', hard: { 'limits.cpu': 10 } });
    const decisions = await Promise.all(
      engines.flatMap((engine, which) => [
        engine.createGroup({ name: `c${which}`, parent: 'p', hard: { 'limits.cpu': 4 } }),
        engine.admit(cores(`w${which}`, 'p', 4)),
      ]),
    );
    t.equal(decisions.filter(({ allowed }) => allowed).length, 2);
    for (const engine of engines) await engine.catchUp();
    t.same(
      engines.map((engine) => engine.status('p')?.used.get('limits.cpu')),
      [8000n, 8000n],
    );
    for (const engine of engines) await engine.close();
    await at.destroy();
  });

  test(`${name}: what one engine admitted another can scale, move and release`, async (t) => {
    const at = await place();
    const [one, two] = [await opened(at), await opened(at)];
    for (const group of ['g', 'h']) await one.createGroup({ name: group, hard: { 'limits.cpu': 10 } });
    await one.admit(cores('w', 'g', 2));
    t.equal((await two.scale({ kind: 'Job', name: 'w' }, 4)).code, 'OK');
    t.equal((await one.admit(cores('w', 'h', 5))).code, 'OK');
    await two.catchUp();
    t.same(
      ['g', 'h'].map((group) => two.status(group)?.used.get('limits.cpu')),
      [0n, 5000n],
    );
    t.equal((await two.release({ kind: 'Job', name: 'w' })).code, 'OK');
    t.equal((await one.deleteGroup('h')).code, 'OK');
    t.equal((await two.createGroup({ name: 'h', hard: { pods: 1 } })).code, 'OK');
    await one.catchUp();
    t.equal(contentOf(one), contentOf(two));
    await one.close();
    await two.close();
    await at.destroy();
  });
}
