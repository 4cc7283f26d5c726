import { test, type Test } from 'tap';
import { createEngine } from '../../../src/quota/index.js';
import { readClusterLedger } from '../../../src/quota-controller/ledger/cluster-ledger.js';
import { KubeStore } from '../../../src/quota-controller/store/kube-store.js';
import type { KubeApi } from '../../../src/kube/client.js';
import type { FaultEffect, FaultMatch } from '../../harness/api-server/fault.js';
import { eventually } from '../../harness/eventually.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { clientTo, quotaServer } from '../setting.js';

/** Passes only read requests. */
function readOnly(api: KubeApi): KubeApi {
  return {
    request: (request) => {
      if (request.method !== 'GET') throw new Error(`${request.method} ${request.path}`);
      return api.request(request);
    },
  };
}

/** Reads the ledger during an unfinished change of two groups. */
async function stuck(
  t: Test,
  match: FaultMatch,
  effect: FaultEffect,
): Promise<Awaited<ReturnType<typeof readClusterLedger>>> {
  const server = await quotaServer();
  const [author, reader] = [clientTo(server.url), clientTo(server.url)];
  t.teardown(async () => {
    reader.close();
    await server.stop();
  });
  const engine = await createEngine({ store: new KubeStore({ api: author, clock: hastyClock }), clock: () => 0 });
  await engine.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
  const fault = server.inject(match, effect);
  const failing = engine.createGroup({ name: 'child', parent: 'root', hard: { 'limits.cpu': 4 } }).catch(() => null);
  await eventually(() => fault.hits > 0, 'the fault');
  const ledger = await readClusterLedger(readOnly(reader), { ...hastyClock, now: () => 0 });
  author.close();
  await failing;
  return ledger;
}

test('reading the ledger writes nothing, and an undecided change counts as not executed', async (t) => {
  const ledger = await stuck(t, { verb: 'create', resource: 'bizgrouptransactions' }, { do: 'hang' });
  t.strictSame(ledger.groups(), ['root']);
  t.equal(ledger.status('root')?.used.get('limits.cpu'), 0n);
});

test('a decided change is visible even if its pages are not in place yet', async (t) => {
  const ledger = await stuck(t, { verb: 'create', resource: 'bizgrouptransactions' }, { do: 'lose-answer' });
  t.strictSame(ledger.groups(), ['root', 'child']);
  t.equal(ledger.status('root')?.used.get('limits.cpu'), 4000n);
});

test('changes to a copy of the ledger stay in the copy', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  t.teardown(async () => {
    client.close();
    await server.stop();
  });
  const engine = await createEngine({ store: new KubeStore({ api: client, clock: hastyClock }), clock: () => 0 });
  await engine.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
  await engine.reserve(
    { workload: { kind: 'Job', name: 'a' }, group: 'root', podSets: [{ name: '', count: 3, limits: { cpu: '2' } }] },
    1000,
  );
  const ledger = await readClusterLedger(readOnly(client), { ...hastyClock, now: () => 0 });
  t.match(ledger.charges('root'), [
    { workload: 'Job//a', pods: 3, isReserved: true, amounts: new Map([['limits.cpu', 6000n]]) },
  ]);
  t.equal(ledger.createGroup({ name: 'mine', hard: {} }).allowed, true);
  t.strictSame((await readClusterLedger(readOnly(client), { ...hastyClock, now: () => 0 })).groups(), ['root']);
});
