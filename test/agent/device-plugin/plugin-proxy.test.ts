import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { test, type Test } from 'tap';
import { PluginProxy } from '../../../src/agent/device-plugin/proxy/plugin-proxy.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { SimulatedNode } from '../../../src/simulation/simulated-node.js';
import type { GivenContainer } from '../../../src/simulation/kubelet/kubelet.js';
import type { EmulatedResource } from '../../../src/simulation/kubelet/pod.js';
import { scratchDirectory } from '../../scratch.js';
import { simplePod } from '../pods.js';

interface Setting {
  readonly node: SimulatedNode;
  readonly proxy: PluginProxy;
  readonly agentDirectory: string;
}

/** An emulated kubelet, a proxy and an agent that registers with the proxy. */
async function setting(
  t: Test,
  agentTimeoutMs = 60_000,
  beforeAllocate: (kind: EmulatedResource) => Promise<void> = async () => undefined,
): Promise<Setting> {
  const directory = await scratchDirectory(t);
  const agentDirectory = join(directory, 'proxy');
  const node = new SimulatedNode({
    directory,
    gpus: '{"gpus":[{},{}]}',
    log: silentLog(),
    config: { pluginProxyPath: agentDirectory },
    kubelet: { beforeAllocate: (kind) => beforeAllocate(kind) },
  });
  const proxy = proxyOf(node, agentTimeoutMs);
  await proxy.start();
  t.teardown(async () => {
    await node.stop();
    await proxy.stop();
  });
  await node.start();
  return { node, proxy, agentDirectory };
}

function proxyOf(node: SimulatedNode, agentTimeoutMs: number): PluginProxy {
  return new PluginProxy({
    kubeletDirectory: node.config.devicePluginPath,
    agentDirectory: node.config.pluginProxyPath ?? '',
    agentTimeoutMs,
    clock: systemClock,
    log: silentLog(),
  });
}

test('the kubelet knows the devices from the proxy, and pods are admitted through it', async (t) => {
  const { node } = await setting(t);
  t.equal(node.kubelet.allocatable('core'), 200);
  const admission = await node.kubelet.admit(simplePod(30, 8));
  t.ok(admission.ok);
  t.match(admission, { containers: [{ environment: { NVIDIA_VISIBLE_DEVICES: /^GPU-/ } }] });
});

test('the devices stay while the agent restarts, and a pod that arrives then waits and is admitted', async (t) => {
  const { node } = await setting(t);
  await node.stopAgent();
  const admission = node.kubelet.admit(simplePod(30, 8));
  t.equal(node.kubelet.allocatable('core'), 200);
  await node.startAgent();
  t.match(await admission, { ok: true });
  const state = node.agent.allocator.state;
  t.equal(state.allocations.size, 1, 'the new agent decided the admission');
});

for (const kind of ['core', 'memory'] as const)
  test(`an Allocate for ${kind} that arrives while no agent runs is answered by the next agent`, async (t) => {
    let stops = 1;
    let restarted: Promise<unknown> = Promise.resolve();
    const { node } = await setting(t, 60_000, async (each) => {
      if (each !== kind || stops === 0) return;
      stops -= 1;
      await node.stopAgent();
      restarted = delay(100).then(() => node.startAgent());
    });
    const admission = await node.kubelet.admit(simplePod(30, 8));
    t.match(admission, { ok: true, containers: [{ environment: { NVIDIA_VISIBLE_DEVICES: /^GPU-/ } }] });
    await restarted;
    const [allocation] = node.agent.allocator.state.allocations.values();
    t.match(
      allocation?.parts.map(({ coreIds, memoryIds }) => [coreIds.length, memoryIds.length]),
      [[30, 8]],
      'cores and memory are one allocation',
    );
  });

test('devices whose Allocate waited are not given again, although the kubelet offers them', async (t) => {
  let stops = 0;
  const { node } = await setting(t, 60_000, async () => {
    if (stops === 0) return;
    stops -= 1;
    await node.stopAgent();
    node.kubelet.remove(ended.uid);
    // The next agent lists pod-resources before it answers.
    void node.startAgent();
  });
  const ended = simplePod(10, 4);
  t.ok((await node.kubelet.admit(ended)).ok);
  await node.kubelet.startContainer(ended.uid, 'main');
  stops = 1;
  const waited = await node.kubelet.admit(simplePod(30, 8));
  const next = await node.kubelet.admit(simplePod(30, 8));
  if (!waited.ok || !next.ok) throw new Error('a pod is refused');
  const ids = (containers: readonly GivenContainer[]): string[] => containers.flatMap(({ coreIds }) => coreIds);
  t.same(
    ids(next.containers).filter((id) => ids(waited.containers).includes(id)),
    [],
  );
  t.equal(node.agent.allocator.state.allocations.size, 2);
});

test('ten restarts of the agent fail no pod', async (t) => {
  const { node } = await setting(t);
  const admissions: Promise<{ readonly ok: boolean }>[] = [];
  for (let restart = 0; restart < 10; restart += 1) {
    const coming = [1, 2, 3].map(() => {
      const pod = simplePod(5, 2);
      return node.kubelet.admit(pod).then(async (admission) => {
        if (admission.ok) for (const { name } of pod.containers) await node.kubelet.startContainer(pod.uid, name);
        node.kubelet.remove(pod.uid);
        return admission;
      });
    });
    admissions.push(...coming);
    await node.stopAgent();
    await node.startAgent();
  }
  t.same(
    (await Promise.all(admissions)).filter(({ ok }) => !ok),
    [],
  );
});

test('the reason of a refusal reaches the kubelet', async (t) => {
  const { node } = await setting(t);
  const admission = await node.kubelet.admit(simplePod(150, 8));
  t.match(admission, { ok: false, message: /150 is more than one GPU and not a multiple of 100/ });
});

test('the devices disappear when the agent stays away, and return with the next agent', async (t) => {
  const { node } = await setting(t, 50);
  await node.stopAgent();
  await node.kubelet.until(() => node.kubelet.allocatable('core') === 0);
  t.match(await node.kubelet.admit(simplePod(30, 8)), { ok: false });
  await node.startAgent();
  await node.kubelet.until(() => node.kubelet.allocatable('core') === 200);
  t.match(await node.kubelet.admit(simplePod(30, 8)), { ok: true });
});

test('a kubelet that restarts while no agent runs gets the devices at once', async (t) => {
  const { node } = await setting(t);
  await node.stopAgent();
  await node.kubelet.restart();
  await node.kubelet.ready();
  t.equal(node.kubelet.allocatable('memory'), 128);
  await node.startAgent();
  t.match(await node.kubelet.admit(simplePod(30, 8)), { ok: true });
});

test('the agent finds a restarted proxy again', async (t) => {
  const { node, proxy, agentDirectory } = await setting(t);
  await proxy.stop();
  await node.kubelet.until(() => node.kubelet.allocatable('core') === 0);
  const next = proxyOf(node, 60_000);
  await next.start();
  t.teardown(() => next.stop());
  await node.kubelet.until(() => node.kubelet.allocatable('core') === 200);
  t.match(await node.kubelet.admit(simplePod(30, 8)), { ok: true });
  await node.stopAgent();
  await next.stop();
  t.same(
    (await readdir(agentDirectory)).filter((name) => name.endsWith('.sock')),
    [],
    'no socket file remains',
  );
});
