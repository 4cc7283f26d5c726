import { createHash } from 'node:crypto';
import { test, type Test } from 'tap';
import { createEngine, toRecord, type Change, type Demand, type QuotaEngine } from '../../../src/quota/index.js';
import type { KubeApi, KubeClient } from '../../../src/kube/client.js';
import { LEDGER_GROUP_LABEL, LEDGERS_PATH } from '../../../src/kube/quota/names.js';
import { mergeLedgers, storedLedgers } from '../../../src/quota-controller/ledger/merged-ledgers.js';
import { KubeStore } from '../../../src/quota-controller/store/kube-store.js';
import { writePiece } from '../../../src/quota-controller/store/record-text.js';
import { SEGMENT_LABEL } from '../../../src/quota-controller/store/ledger.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { generator } from '../../generator.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { clientTo, quotaServer } from '../setting.js';
import { cases } from '../../cases.js';

const HARD = 40;
const LATER = Date.now() + 3_600_000;
const NEVER = 1e9;

interface Place {
  readonly server: ApiServer;
  readonly client: KubeClient;
}

async function place(t: Test): Promise<Place> {
  const server = await quotaServer();
  const client = clientTo(server.url);
  t.teardown(async () => {
    client.close();
    await server.stop();
  });
  return { server, client };
}

interface Replica {
  readonly store: KubeStore;
  readonly engine: QuotaEngine;
}

async function replica(api: KubeApi, tailChars = 0): Promise<Replica> {
  const store = new KubeStore({ api, clock: hastyClock, tailChars });
  const engine = await createEngine({ store, clock: () => 1000, policy: { expiresReservations: false } });
  return { store, engine };
}

/** As hard to compress as a real uid. */
const uidOf = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 32);

const demandOf = (name: string, count: number, version: number, group = 'g'): Demand => ({
  workload: { kind: 'Job.batch', namespace: 'ns', name, uid: uidOf(name), version },
  group,
  podSets: [{ count, limits: { cpu: 1 } }],
});

const contentOf = (changes: Iterable<Change>): string =>
  JSON.stringify([...changes].map((change) => JSON.stringify(toRecord(change, null))).sort((a, b) => (a < b ? -1 : 1)));

const segmentsOf = (server: ApiServer): number =>
  server.all('bizgroupledgers').filter(({ metadata }) => metadata.labels?.[SEGMENT_LABEL] !== undefined).length;

test('replicas with lost answers, races, restarts and sweeps agree on every charge, and exceed no quota', async (t) => {
  for (let seed = 1; seed <= cases(3, 40); seed++) {
    const { server, client } = await place(t);
    const random = generator(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    let replicas: readonly Replica[] = await Promise.all([replica(client), replica(client), replica(client)]);
    await replicas[0]?.engine.createGroup({ name: 'g', hard: { 'limits.cpu': HARD } });
    await replicas[0]?.engine.createGroup({ name: 'h', hard: { 'limits.cpu': HARD } });
    /** What the API server has: the cores of stored objects, by name, with their groups and versions. */
    const stored = new Map<string, { readonly count: number; readonly version: number; readonly group: string }>();
    let versions = 0;
    const effects = [{ do: 'answer', code: 500 }, { do: 'lose-answer' }, { do: 'reset' }, { do: 'truncate' }] as const;
    for (let step = 0; step < 60; step++) {
      for (let faults = below(3); faults > 0; faults--)
        server.inject(
          { resource: 'bizgroupledgers', verb: ['get', 'create', 'update', 'delete'] },
          effects[below(effects.length)] ?? { do: 'reset' },
          1,
        );
      const some = Array.from({ length: 1 + below(4) }, async () => {
        const { engine, store } = replicas[below(replicas.length)] as Replica;
        const name = `w${below(8)}`;
        const there = stored.get(name);
        const action = below(7);
        if (action === 0) return store.sweep(LATER);
        if (action === 1 && there !== undefined) {
          stored.delete(name);
          const demand = demandOf(name, 0, ++versions, there.group);
          return engine.observe({ workload: demand.workload, group: there.group, demand: null });
        }
        if (action === 2 && there !== undefined) {
          const demand = demandOf(name, there.count, there.version, there.group);
          return engine.observe({ workload: demand.workload, group: there.group, demand });
        }
        const [group, count] = [there === undefined && below(4) === 0 ? 'h' : (there?.group ?? 'g'), 1 + below(12)];
        const demand = demandOf(name, count, there?.version ?? 0, group);
        const operation = `${name}@${there?.version ?? 0}:${count}`;
        const { allowed } = await engine.execute({ type: 'reserve', ...demand, ttlMs: NEVER, operation });
        if (!allowed || stored.get(name) !== there || below(4) === 0) return undefined;
        stored.set(name, { count, version: ++versions, group });
        return undefined;
      });
      await Promise.allSettled(some);
      for (const group of ['g', 'h']) {
        const cores = [...stored.values()].reduce((sum, one) => sum + (one.group === group ? one.count : 0), 0);
        if (cores > HARD) t.fail(`seed ${seed}: ${cores} of ${HARD} cores of ${group}`);
      }
      if (below(10) === 0) replicas = [...replicas.slice(1), await eventual(() => replica(client))];
    }
    server.clearFaults();
    const fresh = await replica(client);
    for (const { engine } of replicas) {
      await engine.catchUp();
      t.equal(contentOf(engine.records()), contentOf(fresh.engine.records()), `seed ${seed}: the same records`);
      t.same(engine.refresh().drift, [], `seed ${seed}: no drift`);
    }
    await fresh.store.sweep(LATER);
    const again = await replica(client);
    t.equal(contentOf(again.engine.records()), contentOf(fresh.engine.records()), `seed ${seed}: nothing swept in use`);
    t.ok(segmentsOf(server) > 0, `seed ${seed}: ${segmentsOf(server)} segments`);
  }
});

async function eventual<T>(action: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await action();
    } catch (error) {
      if (attempt === 10) throw error;
    }
  }
}

test('a writer that was paused while its segments were swept loses, and decides again', async (t) => {
  const { server, client } = await place(t);
  const first = await replica(client);
  await first.engine.createGroup({ name: 'g', hard: { 'limits.cpu': HARD } });
  let release: () => void = () => undefined;
  let paused: () => void = () => undefined;
  const isPaused = new Promise<void>((resolve) => (paused = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  let isFirst = true;
  const slow = await replica({
    request: async (request) => {
      if (request.method === 'PUT' && isFirst) {
        isFirst = false;
        paused();
        await released;
      }
      return client.request(request);
    },
  });
  const deciding = slow.engine.admit(demandOf('slow', 3, 1));
  await isPaused;
  t.equal(segmentsOf(server), 1, 'the segment is stored before the ledger');
  await first.store.sweep(LATER);
  t.equal(segmentsOf(server), 0, 'it is swept');
  release();
  t.match(await deciding, { allowed: true });
  const fresh = await replica(client);
  t.equal(fresh.engine.status('g')?.used.get('limits.cpu'), 3000n);
});

test('a ledger of an earlier version is taken over in place', async (t) => {
  const { client, server } = await place(t);
  const first = await replica(client, 4096);
  await first.engine.createGroup({ name: 'g', hard: { 'limits.cpu': 4000 } });
  for (let index = 0; index < 300; index++) await first.engine.admit(demandOf(`w${index}`, 1, index + 1));
  const records = [...first.engine.records()].map((change) => toRecord(change, null));
  const ledger = server.all('bizgroupledgers').find(({ metadata }) => metadata.labels?.[LEDGER_GROUP_LABEL] === 'g');
  const { page } = ledger?.spec as { readonly page: object };
  // As earlier versions wrote it: everything in the ledger object.
  const old = { ...ledger, spec: { page: { ...page, records: writePiece(records) } } };
  server.edit('bizgroupledgers', '', 'g', () => old as typeof ledger & object);
  for (const object of server.all('bizgroupledgers'))
    if (object.metadata.labels?.[SEGMENT_LABEL] !== undefined)
      server.remove('bizgroupledgers', '', object.metadata.name ?? '');
  const next = await replica(client, 4096);
  t.equal(contentOf(next.engine.records()), contentOf(first.engine.records()));
  t.match(await next.engine.admit(demandOf('more', 1, 1000)), { allowed: true });
  t.ok(segmentsOf(server) > 0);
  const fresh = await replica(client);
  t.equal(fresh.engine.status('g')?.workloads, 301);
  const { body } = (await client.request({ method: 'GET', path: `${LEDGERS_PATH}/g` })) as { readonly body: unknown };
  t.ok(JSON.stringify(body).length < 8192, `${JSON.stringify(body).length} bytes`);
  // And back: everything in the ledger object again.
  t.ok((await storedLedgers(client, hastyClock)).some(({ group, segments }) => group === 'g' && segments > 0));
  t.equal(await mergeLedgers(client, hastyClock), 1);
  t.equal(segmentsOf(server), 0);
  const merged = await replica(client, 4096);
  t.equal(contentOf(merged.engine.records()), contentOf(fresh.engine.records()));
});

test('a ledger that was set back to an earlier state is read by a replica that knows a later one', async (t) => {
  const { server, client } = await place(t);
  const { engine, store } = await replica(client);
  await engine.createGroup({ name: 'g', hard: { 'limits.cpu': HARD } });
  const add = async (name: string): Promise<void> => {
    const demand = demandOf(name, 1, 1);
    await engine.observe({ workload: demand.workload, group: 'g', demand });
  };
  for (const name of ['a', 'b', 'c']) await add(name);
  const path = `${LEDGERS_PATH}/g`;
  const before = await client.request({ method: 'GET', path });
  if (!before.ok) throw new Error('no ledger');
  for (const name of ['d', 'e', 'f']) await add(name);
  const later = server.all('bizgroupledgers').find(({ metadata }) => metadata.name === 'g');
  const body = { ...(before.body as object), metadata: later?.metadata };
  t.equal((await client.request({ method: 'PUT', path, body })).ok, true);
  const [image] = await store.read(['g']);
  const workloads = [...(image?.records ?? [])].filter(({ kind }) => kind === 'workload').map(({ key }) => key);
  t.same(
    workloads.sort(),
    ['a', 'b', 'c'].map((name) => `Job.batch/ns/${name}`),
  );
  await engine.close();
});
