import { test } from 'tap';
import { systemClock } from '../../../src/host/clock.js';
import { createEngine, type QuotaEngine } from '../../../src/quota/index.js';
import { KubeStore } from '../../../src/quota-controller/store/kube-store.js';
import { clientTo, quotaServer } from '../setting.js';

/** The object at a version, in a group. */
function seen(group: string, version: number) {
  const workload = { kind: 'Deployment.apps', namespace: 'default', name: 'web', uid: 'u', version };
  return { workload, group, demand: { workload, group, podSets: [{ count: 1, limits: { cpu: 4 } }] } };
}

for (const order of ['old first', 'new first'] as const) {
  test(`a workload that two engines see in two groups at once is charged to the later one: ${order}`, async (t) => {
    const server = await quotaServer();
    const client = clientTo(server.url);
    t.teardown(async () => {
      client.close();
      await server.stop();
    });
    const open = (): Promise<QuotaEngine> =>
      createEngine({ store: new KubeStore({ api: client, clock: systemClock }), clock: () => 1000 });
    const first = await open();
    for (const name of ['a', 'b']) await first.createGroup({ name, hard: { 'limits.cpu': 10 } });
    const second = await open();
    const told = [() => first.observe(seen('a', 5)), () => second.observe(seen('b', 6))];
    // Neither engine has read the other's write yet: the two ledgers have nothing in common.
    for (const tell of order === 'old first' ? told : told.reverse()) t.match(await tell(), { allowed: true });
    await Promise.all([first.catchUp(), second.catchUp()]);
    const third = await open();
    const used = (engine: QuotaEngine) => ['a', 'b'].map((name) => engine.status(name)?.used.get('limits.cpu'));
    for (const engine of [first, second, third]) t.same(used(engine), [0n, 4000n]);
    t.same(third.refresh().drift, []);
    await third.observe({ ...seen('b', 7), demand: null });
    await Promise.all([first.catchUp(), second.catchUp()]);
    for (const engine of [first, second, third]) t.same(used(engine), [0n, 0n]);
    // The record of the earlier state still exists; a restart finds no object for it and logs that.
    const fourth = await open();
    await fourth.observe({ ...seen('a', 5), demand: null });
    for (const engine of [fourth, await open()]) t.same(used(engine), [0n, 0n]);
  });
}
