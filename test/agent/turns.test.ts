import { test } from 'tap';
import { crowdedNode, holds } from './crowded-node.js';
import { simplePod } from './pods.js';
import { skip } from './suspending-node.js';

test('a container that waits for its first turn still waits after a restart of the agent', { skip }, async (t) => {
  const { node, notebook } = await crowdedNode(t);
  const pods = [await notebook(), await notebook()];
  t.match(await node.kubelet.admit(simplePod(10, 1)), { ok: false }, 'a pod that must run has no room');
  const [first] = pods.map(({ start }) => start());
  if (first !== undefined) await holds(first);
  await node.stopAgent();
  await node.startAgent();
  t.same(await Promise.all(pods.map(({ mark }) => mark())), ['not', 'waits']);
});
