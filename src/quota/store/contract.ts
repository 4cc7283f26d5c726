import assert from 'node:assert/strict';
import { createEngine, type QuotaEngine } from '../engine.js';
import type { Decision } from '../core/admission/decision.js';
import type { Command } from '../core/command.js';
import { toRecord } from '../core/records/record-format.js';
import type { Store } from './store.js';

/** A location on which stores are opened, one after the other, or concurrently if it is shared. */
export interface StorePlace {
  open(): Promise<Store>;
  /** Removes all data. */
  destroy(): Promise<void>;
}

/** A rule for every store. `run` rejects with an AssertionError if the store violates it. */
export interface StoreRule {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** The records of an engine, sorted; equal texts mean equal content. */
export function contentOf(engine: QuotaEngine): string {
  return [...engine.records()]
    .map((change) => JSON.stringify(toRecord(change, null)))
    .sort()
    .join('\n');
}

/**
 * The rules of a store, for any test runner. `place` creates an empty location; `shared` tells whether several engines
 * may write concurrently (`Store.exclusive` is false then).
 */
export function storeContract(place: () => Promise<StorePlace>, shared: boolean): readonly StoreRule[] {
  return shared ? [...RULES, ...SHARED_RULES].map(bound(place)) : RULES.map(bound(place));
}

interface Rule {
  readonly name: string;
  readonly keeps: (at: StorePlace) => Promise<void>;
}

function bound(place: () => Promise<StorePlace>): (rule: Rule) => StoreRule {
  return ({ name, keeps }) => ({
    name,
    run: async () => {
      const at = await place();
      try {
        await keeps(at);
      } finally {
        await at.destroy();
      }
    },
  });
}

async function opened(at: StorePlace, clock: () => number = () => 0): Promise<QuotaEngine> {
  return createEngine({ store: await at.open(), clock, pause: () => Promise.resolve() });
}

const cores = (workload: string, group: string, count: number) => ({
  workload: { kind: 'Job', name: workload },
  group,
  podSets: [{ count, limits: { cpu: 1 } }],
});

const usedCores = (engine: QuotaEngine, group: string): bigint | undefined =>
  engine.status(group)?.used.get('limits.cpu');

/** One command of every kind that changes records. */
const HISTORY: readonly (readonly [number, Command])[] = [
  [0, { type: 'createGroup', name: 'root', hard: { 'limits.cpu': 30, 'cash/limits.cpu': 100 } }],
  [0, { type: 'createGroup', name: 'a', parent: 'root', hard: { 'limits.cpu': 10, 'cash/limits.cpu': 40 } }],
  [
    0,
    {
      type: 'createGroup',
      name: 'b',
      parent: 'root',
      mode: 'elastic',
      hard: { 'limits.cpu': 10, 'limits.cpu.A4': 4, 'cash/limits.cpu': 40 },
      lend: { 'limits.cpu': 3 },
    },
  ],
  [1, { type: 'admit', ...cores('one', 'a', 3) }],
  [2, { type: 'admit', ...cores('typed', 'b', 2), types: { cpu: 'A4' } }],
  [3, { type: 'reserve', ...cores('later', 'a', 2), ttlMs: 1_000_000, operation: 'op' }],
  [4, { type: 'podStarted', pod: 'one-0', workload: { kind: 'Job', name: 'one' }, since: 2 }],
  [5, { type: 'podStarted', pod: 'typed-0', workload: { kind: 'Job', name: 'typed' }, since: 3 }],
  [3_600_005, { type: 'podStopped', pod: 'typed-0', end: 3_600_000 }],
  [3_600_006, { type: 'grant', id: 'weekly', group: 'a', key: 'cash/limits.cpu', amount: 5, everyMs: 604_800_000 }],
  [
    3_600_007,
    { type: 'loan', id: 'lent', lender: 'a', borrower: 'b', amounts: { 'limits.cpu': 1 }, until: 9_000_000_000_000 },
  ],
  [3_600_008, { type: 'scale', workload: { kind: 'Job', name: 'one' }, replicas: 4 }],
  [3_600_009, { type: 'release', workload: { kind: 'Job', name: 'typed' } }],
  [3_600_010, { type: 'updateGroup', name: 'a', hard: { 'limits.cpu': 12, 'cash/limits.cpu': 41 } }],
  [3_600_011, { type: 'terminateGroup', name: 'b' }],
];

const RULES: readonly Rule[] = [
  {
    name: 'an acknowledged change exists after the store is reopened',
    keeps: async (at) => {
      let engine = await opened(at);
      for (const [time, command] of HISTORY) {
        const decision = await engine.execute(command, time);
        assert.equal(decision.allowed, true, `${command.type}: ${decision.message}`);
        const before = contentOf(engine);
        await engine.close();
        engine = await opened(at, () => time);
        assert.equal(contentOf(engine), before, `after ${command.type}`);
        assert.deepEqual(engine.refresh().drift, []);
      }
      await engine.close();
    },
  },
  {
    name: 'a removed record stays removed after the store is reopened',
    keeps: async (at) => {
      const engine = await opened(at);
      for (const [time, command] of HISTORY.slice(0, 5)) await engine.execute(command, time);
      await engine.deleteGroup('b', { force: true });
      await engine.release({ kind: 'Job', name: 'one' });
      const before = contentOf(engine);
      await engine.close();
      const again = await opened(at);
      assert.equal(contentOf(again), before);
      assert.deepEqual(again.groups(), ['root', 'a']);
      await again.close();
    },
  },
  {
    name: 'of many concurrent requests as many are admitted as fit',
    keeps: async (at) => {
      const engine = await opened(at);
      await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
      await engine.admit(cores('first', 'g', 1));
      const decisions = await Promise.all(
        Array.from({ length: 200 }, (_, index) => engine.admit(cores(`w${index}`, 'g', 5))),
      );
      assert.equal(decisions.filter(({ allowed }) => allowed).length, 1);
      assert.equal(usedCores(engine, 'g'), 6000n);
      await engine.close();
    },
  },
  {
    name: 'a reservation and its expiry outlive the engine that made it',
    keeps: async (at) => {
      const first = await opened(at);
      await first.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
      await first.reserve(cores('a', 'g', 6), 1000, 'op-a');
      await first.reserve(cores('b', 'g', 2), 5000, 'op-b');
      await first.close();
      let now = 500;
      const second = await opened(at, () => now);
      assert.equal((await second.admit(cores('c', 'g', 3))).code, 'QuotaExceeded');
      now = 2000;
      assert.equal((await second.admit(cores('c', 'g', 3))).code, 'OK');
      assert.equal((await second.confirm('op-a')).code, 'ReservationNotFound');
      assert.equal((await second.confirm('op-b')).code, 'OK');
      now = 9000;
      assert.equal(usedCores(second, 'g'), 5000n);
      await second.close();
    },
  },
  {
    name: 'events are emitted in order, after they are durable',
    keeps: async (at) => {
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
      assert.deepEqual(told, ['groupCreated 1', 'admitted 2', 'denied 2']);
      await engine.close();
    },
  },
];

const SHARED_RULES: readonly Rule[] = [
  {
    name: 'a commit with an outdated revision writes nothing and names the group',
    keeps: async (at) => {
      const engine = await opened(at);
      await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
      await engine.admit(cores('w', 'g', 2));
      const store = await at.open();
      const revision = (await store.list()).get('g');
      assert.notEqual(revision, undefined, 'list() has the group');
      for (const expected of [null, `${revision ?? ''}0`]) {
        const committed = await store.commit({
          head: { revision: 9, now: 0, lives: 0 },
          changes: [{ kind: 'workload', key: 'Job//w', group: 'g', value: null }],
          expected: new Map([['g', expected]]),
          everything: () => engine.records(),
          reached: () => 9,
        });
        assert.deepEqual(committed, { ok: false, code: 'Conflict', groups: ['g'] });
      }
      assert.equal((await store.list()).get('g'), revision);
      const [image] = await store.read(['g']);
      assert.equal(image?.revision, revision);
      assert.deepEqual([...(image?.records ?? [])].map(({ kind }) => kind).sort(), ['group', 'workload']);
      await store.close();
      await engine.close();
    },
  },
  {
    name: 'a group that does not exist is read as an image without a revision',
    keeps: async (at) => {
      const store = await at.open();
      const [image] = await store.read(['nobody']);
      assert.equal(image?.name, 'nobody');
      assert.equal(image?.revision, null);
      await store.close();
    },
  },
  {
    name: 'engines that share a store do not admit more than fits',
    keeps: async (at) => {
      const engines = [await opened(at), await opened(at), await opened(at)];
      const [one] = engines as [QuotaEngine];
      await one.createGroup({ name: 'root', hard: { 'limits.cpu': 30 } });
      await one.createGroup({ name: 'g', parent: 'root', hard: { 'limits.cpu': 20 } });
      const all = engines.flatMap((engine, which) =>
        Array.from({ length: 20 }, (_, index) => engine.admit(cores(`w${which}-${index}`, 'g', 2))),
      );
      const decisions = await Promise.all(all);
      assert.equal(decisions.filter(({ allowed }) => allowed).length, 10);
      for (const engine of engines) {
        await engine.catchUp();
        assert.equal(usedCores(engine, 'g'), 20_000n);
        assert.deepEqual(engine.refresh().drift, []);
      }
      assert.equal(new Set(engines.map(contentOf)).size, 1);
      for (const engine of engines) await engine.close();
    },
  },
  {
    name: 'children and workloads that several engines create in one parent fit into it together',
    keeps: async (at) => {
      const engines = [await opened(at), await opened(at)];
      const [one] = engines as [QuotaEngine];
      await one.createGroup({ name: 'p', hard: { 'limits.cpu': 10 } });
      const decisions = await Promise.all(
        engines.flatMap((engine, which) => [
          engine.createGroup({ name: `c${which}`, parent: 'p', hard: { 'limits.cpu': 4 } }),
          engine.admit(cores(`w${which}`, 'p', 4)),
        ]),
      );
      assert.equal(decisions.filter(({ allowed }) => allowed).length, 2);
      for (const engine of engines) await engine.catchUp();
      assert.deepEqual(
        engines.map((engine) => usedCores(engine, 'p')),
        [8000n, 8000n],
      );
      for (const engine of engines) await engine.close();
    },
  },
  {
    name: 'a pod that stopped in one group starts in another, and no engine sees it twice',
    keeps: async (at) => {
      const [one, two] = [await opened(at, () => 1000), await opened(at, () => 1000)];
      for (const group of ['g', 'h', 'gone']) await one.createGroup({ name: group, hard: { 'limits.cpu': 10 } });
      const started = (engine: QuotaEngine, pod: string, group: string, since: number) =>
        engine.execute({
          type: 'podStarted',
          pod,
          workload: { kind: 'Job', name: 'w' },
          group,
          since,
          limits: { cpu: 1 },
        });
      const stopped = (engine: QuotaEngine, pod: string, group: string, end: number) =>
        engine.execute({ type: 'podStopped', pod, group, end });
      const steps: readonly (() => Promise<Decision>)[] = [
        () => stopped(one, 'unseen', 'g', 500),
        () => started(one, 'unseen', 'h', 100),
        () => started(one, 'seen', 'g', 100),
        () => stopped(two, 'seen', 'g', 400),
        () => started(two, 'seen', 'h', 200),
        () => stopped(two, 'seen', 'g', 300),
        () => stopped(one, 'outlives', 'gone', 100),
        () => one.deleteGroup('gone', { force: true }),
        () => started(one, 'outlives', 'h', 50),
      ];
      for (const [index, step] of steps.entries()) assert.equal((await step()).code, 'OK', `step ${index}`);
      for (const engine of [one, two]) await engine.catchUp();
      assert.equal(contentOf(one), contentOf(two));
      const fresh = await opened(at);
      assert.equal(contentOf(fresh), contentOf(one), 'an engine that starts later reads the same');
      for (const engine of [one, two, fresh]) await engine.close();
    },
  },
  {
    name: 'a stop that is repeated late changes nothing, whatever group it names',
    keeps: async (at) => {
      const [one, two] = [await opened(at, () => 1000), await opened(at, () => 1000)];
      for (const group of ['g', 'h']) await one.createGroup({ name: group, hard: { 'limits.cpu': 10 } });
      const stop = (engine: QuotaEngine, group: string, end: number) =>
        engine.execute({ type: 'podStopped', pod: 'p', group, end });
      assert.equal((await stop(one, 'g', 500)).code, 'OK');
      const before = contentOf(one);
      for (const engine of [one, two])
        for (const group of ['g', 'h']) assert.equal((await stop(engine, group, 700)).code, 'OK', group);
      for (const engine of [one, two]) {
        await engine.catchUp();
        assert.equal(contentOf(engine), before);
        await engine.close();
      }
    },
  },
  {
    name: 'a stop that is repeated when its pod is due to be forgotten is accepted, by an engine that was idle too',
    keeps: async (at) => {
      let now = 0;
      for (const namesGroup of [false, true]) {
        const [one, two] = [await opened(at, () => now), await opened(at, () => now)];
        const group = namesGroup ? 'named' : 'unnamed';
        const pod = `pod of ${group}`;
        await one.createGroup({ name: group, hard: { 'limits.cpu': 10, 'cash/limits.cpu': 10 } });
        await one.podStarted({ pod, workload: { kind: 'Job', name: 'w' }, group, limits: { cpu: 1 } });
        now += 3_600_000;
        assert.equal((await one.podStopped({ pod, group })).code, 'OK');
        await two.catchUp();
        const again = { pod, end: now, ...(namesGroup ? { group } : {}) };
        // After the time in which late events are expected: the pod is forgotten in the moment of the command.
        for (const engine of [one, two, one, two]) {
          now += 7_200_000;
          const [stop, admission] = await Promise.all([
            engine.podStopped(again),
            engine.admit({ ...cores('beside', group, 1), podSets: [{ count: 1, limits: { cpu: 1 } }] }),
          ]);
          assert.deepEqual([stop.code, admission.code], ['OK', 'OK']);
        }
        for (const engine of [one, two]) {
          await engine.catchUp();
          assert.equal(engine.status(group)?.used.get('cash/limits.cpu'), 3_600_000_000n, 'the hour counts once');
          await engine.close();
        }
        assert.equal(contentOf(one), contentOf(two));
      }
    },
  },
  {
    name: 'one engine scales, moves and releases what another engine admitted',
    keeps: async (at) => {
      const [one, two] = [await opened(at), await opened(at)];
      for (const group of ['g', 'h']) await one.createGroup({ name: group, hard: { 'limits.cpu': 10 } });
      await one.admit(cores('w', 'g', 2));
      assert.equal((await two.scale({ kind: 'Job', name: 'w' }, 4)).code, 'OK');
      assert.equal((await one.admit(cores('w', 'h', 5))).code, 'OK');
      await two.catchUp();
      assert.deepEqual(
        ['g', 'h'].map((group) => usedCores(two, group)),
        [0n, 5000n],
      );
      assert.equal((await two.release({ kind: 'Job', name: 'w' })).code, 'OK');
      assert.equal((await one.deleteGroup('h')).code, 'OK');
      assert.equal((await two.createGroup({ name: 'h', hard: { pods: 1 } })).code, 'OK');
      await one.catchUp();
      assert.equal(contentOf(one), contentOf(two));
      await one.close();
      await two.close();
    },
  },
];
