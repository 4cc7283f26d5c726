import { test } from 'tap';
import { createEngine, type QuotaEngine } from '../../../src/quota/index.js';
import { LEDGERS_PATH } from '../../../src/kube/quota/names.js';
import { KubeStore } from '../../../src/quota-controller/store/kube-store.js';
import type { FaultEffect, FaultMatch } from '../../harness/api-server/fault.js';
import { eventually } from '../../harness/eventually.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { clientTo, quotaServer } from '../setting.js';

const GROUP = { name: 'child', parent: 'root', hard: { 'limits.cpu': 4 } };

/** One engine fails while it creates a child; another one reads what it left behind. */
async function halfDone(
  match: FaultMatch,
  effect: FaultEffect,
  look: (other: QuotaEngine, store: KubeStore) => Promise<void>,
): Promise<void> {
  const server = await quotaServer();
  const [client, another] = [clientTo(server.url), clientTo(server.url)];
  const store = new KubeStore({ api: another, clock: hastyClock });
  try {
    const engine = await createEngine({ store: new KubeStore({ api: client, clock: hastyClock }), clock: () => 0 });
    await engine.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
    const other = await createEngine({ store, clock: () => 0, pause: async () => undefined });
    const fault = server.inject(match, effect);
    const failing = engine.createGroup(GROUP).then(
      () => null,
      (error: Error) => error,
    );
    await eventually(() => fault.hits > 0, 'the fault');
    client.close();
    await failing;
    fault.remove();
    await other.catchUp();
    await look(other, store);
  } finally {
    another.close();
    await server.stop();
  }
}

test('a change of two groups whose author dies before its outcome is not executed', async (t) => {
  await halfDone({ verb: 'create', resource: 'bizgrouptransactions' }, { do: 'hang' }, async (other) => {
    t.equal(other.status('child'), null);
    t.equal(other.status('root')?.used.get('limits.cpu'), 0n);
    t.equal((await other.createGroup({ name: 'big', parent: 'root', hard: { 'limits.cpu': 10 } })).code, 'OK');
  });
});

test('a change of two groups whose author dies after its outcome is executed', async (t) => {
  await halfDone({ verb: 'create', resource: 'bizgrouptransactions' }, { do: 'lose-answer' }, async (other) => {
    t.equal(other.status('child')?.parent, 'root');
    t.equal(other.status('root')?.used.get('limits.cpu'), 4000n);
    t.equal(
      (await other.createGroup({ name: 'big', parent: 'root', hard: { 'limits.cpu': 7 } })).code,
      'ParentExceeded',
    );
  });
});

test('the next reader completes what dead authors left, and unneeded outcomes are deleted', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  const store = new KubeStore({ api: client, clock: hastyClock });
  const engine = await createEngine({ store, clock: () => 0 });
  await engine.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
  const fault = server.inject({ verb: 'delete', resource: 'bizgrouptransactions' }, { do: 'answer', code: 500 });
  t.equal((await engine.createGroup(GROUP)).code, 'OK');
  await eventually(() => fault.hits > 0, 'the outcome to be forgotten in vain');
  fault.remove();
  await store.sweep(Date.now());
  t.equal(server.all('bizgrouptransactions').length, 1, 'young ones stay');
  await store.sweep(Date.now() + 3_600_000);
  t.equal(server.all('bizgrouptransactions').length, 0);
  client.close();
  await server.stop();
});

test('a commit whose answer is lost is found again', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  const engine = await createEngine({ store: new KubeStore({ api: client, clock: hastyClock }), clock: () => 0 });
  await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  server.inject({ verb: 'update', resource: 'bizgroupledgers' }, { do: 'truncate' }, 1);
  const demand = (name: string) => ({
    workload: { kind: 'Job', name },
    group: 'g',
    podSets: [{ count: 1, limits: { cpu: 6 } }],
  });
  t.equal((await engine.admit(demand('a'))).code, 'OK', 'the write is found');
  t.equal((await engine.admit(demand('b'))).code, 'QuotaExceeded', 'it was written');
  t.equal((await engine.admit(demand('a'))).code, 'OK', 'and it is the same when it is asked for again');
  client.close();
  await server.stop();
});

test('concurrent decisions on one group share a write', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  const engine = await createEngine({ store: new KubeStore({ api: client, clock: hastyClock }), clock: () => 0 });
  await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 1000 } });
  server.inject({ verb: 'update' }, { do: 'delay', ms: 5 });
  const before = server.requests.length;
  const decisions = await Promise.all(
    Array.from({ length: 500 }, (_, index) =>
      engine.admit({
        workload: { kind: 'Job', name: `j${index}` },
        group: 'g',
        podSets: [{ count: 1, limits: { cpu: 1 } }],
      }),
    ),
  );
  t.ok(decisions.every(({ allowed }) => allowed));
  t.ok(server.requests.length - before <= 4, `${server.requests.length - before} requests`);
  t.equal((await client.request({ method: 'GET', path: `${LEDGERS_PATH}/g` })).ok, true);
  client.close();
  await server.stop();
});
