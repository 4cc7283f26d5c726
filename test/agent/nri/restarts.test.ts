import { test } from 'tap';
import { systemClock } from '../../../src/host/clock.js';
import { eventually } from '../../harness/eventually.js';
import { startedNode } from '../node.js';
import { nriSkipReason } from './containerd2.js';
import {
  connected,
  environmentOf,
  findings,
  nodeWith,
  OURS,
  preparedPod,
  startedEngine,
  THEIRS,
} from './runtime-setting.js';

const skip = nriSkipReason();

test(
  'a restarted agent knows the containers again, and the audit reports those created without it',
  { skip },
  async (t) => {
    const engine = await startedEngine(t);
    const node = await nodeWith(t, engine);
    const seen = await preparedPod(node.kubelet, { environment: { LD_LIBRARY_PATH: THEIRS } });
    const right = await preparedPod(node.kubelet);
    const wrong = await preparedPod(node.kubelet, { environment: { LD_LIBRARY_PATH: THEIRS }, mounts: [] });
    const corrected = await engine.run(seen.spec);
    await node.stopAgent();
    const unseen = await engine.run(right.spec);
    const unhooked = await engine.run(wrong.spec);
    t.match(
      await environmentOf(engine, unhooked),
      { LD_LIBRARY_PATH: THEIRS },
      'the container starts without the agent',
    );

    await node.startAgent();
    await connected(node);
    for (const [id, { pod }] of [
      [corrected, seen],
      [unseen, right],
      [unhooked, wrong],
    ] as const)
      t.match(node.agent.nri?.containers.get(id), { podUid: pod.uid });
    await eventually(() => findings(node, wrong.pod.uid).length > 0, 'a finding about the container');
    t.match(findings(node, wrong.pod.uid), [
      /^not-injected: .*LD_LIBRARY_PATH is "\/opt\/conda\/lib"; nothing is mounted on \/etc\/vcuda/,
    ]);
    t.same([...findings(node, seen.pod.uid), ...findings(node, right.pod.uid)], []);

    await engine.end(unhooked);
    const again = await engine.run({ ...wrong.spec, attempt: 1 });
    t.match(await environmentOf(engine, again), { LD_LIBRARY_PATH: `${OURS}:${THEIRS}` });
    await eventually(() => findings(node, wrong.pod.uid).length === 0, 'the finding to be resolved');
  },
);

test('a restarted containerd asks the agent again, about earlier containers too', { skip }, async (t) => {
  const engine = await startedEngine(t);
  const node = await nodeWith(t, engine);
  const before = await preparedPod(node.kubelet);
  const id = await engine.run(before.spec);
  await engine.restart();
  await eventually(() => node.agent.nri?.plugin.losses === 1, 'the agent to notice the restart');
  await connected(node);
  t.match(node.agent.nri?.containers.get(id), { podUid: before.pod.uid });
  const after = await preparedPod(node.kubelet, { environment: { LD_LIBRARY_PATH: THEIRS } });
  t.match(await environmentOf(engine, await engine.run(after.spec)), { LD_LIBRARY_PATH: `${OURS}:${THEIRS}` });
});

test('an agent that starts before its runtime connects when the runtime starts', { skip }, async (t) => {
  const engine = await startedEngine(t);
  await engine.halt();
  const node = await startedNode(t, { config: { nriSocket: engine.nriSocket } });
  t.equal(node.agent.nri?.plugin.runtime, null);
  const { spec } = await preparedPod(node.kubelet, { environment: { LD_LIBRARY_PATH: THEIRS } });
  await engine.restart();
  await connected(node);
  t.match(await environmentOf(engine, await engine.run(spec)), { LD_LIBRARY_PATH: `${OURS}:${THEIRS}` });
});

test('the allocation of an ended container is freed without waiting for the next comparison', { skip }, async (t) => {
  const engine = await startedEngine(t);
  const node = await nodeWith(t, engine, {
    knowsPods: true,
    config: { allocationCheckPeriodMs: 24 * 3_600_000 },
    seams: { graceMs: 500, clock: systemClock },
  });
  const { pod, spec } = await preparedPod(node.kubelet);
  const id = await engine.run(spec);
  t.equal(node.agent.allocator.state.allocations.size, 1);
  node.kubelet.remove(pod.uid);
  await engine.end(id);
  await eventually(() => node.agent.allocator.state.allocations.size === 0, 'the allocation to be freed');
});
