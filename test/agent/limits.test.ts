import tap, { test } from 'tap';
import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { Commands } from '../cli/commands.js';
import { limitsOf, runPod, startedNode } from './node.js';
import { container, pod, simplePod } from './pods.js';

const BLOCK = 268_435_456;
const commands = new Commands();
tap.teardown(() => commands.close());

async function limits(
  node: SimulatedNode,
  ...args: string[]
): Promise<{ readonly code: number | null; readonly output: string }> {
  const { code, out, err } = await commands.run({
    program: 'gpu-manager',
    args: ['limits', ...args, '--display-socket', node.config.displaySocket],
    env: process.env as Record<string, string>,
    directory: process.cwd(),
    input: '',
  });
  return { code, output: `${out}${err}` };
}

test('annotations of a running pod change its limits, and those at its start count from the start', async (t) => {
  const node = await startedNode(t, { knowsPods: true });
  const wanted = { ...simplePod(30, 16), annotations: { 'tencent.com/vcuda-core-limit': '80' } };
  const given = await runPod(node, wanted);
  t.match((await limitsOf(given)).devices, [{ share: 30, softLimit: 80, memoryBytes: 16 * BLOCK }]);
  node.kubelet.annotate(wanted.uid, { 'tencent.com/vcuda-share-limit': '10', 'tencent.com/vcuda-memory-limit': '4' });
  t.match((await limitsOf(given)).devices, [{ share: 10, softLimit: null, memoryBytes: 4 * BLOCK, generation: 1 }]);
  await node.stopAgent();
  await node.startAgent();
  t.match(
    (await limitsOf(given)).devices,
    [{ share: 10, memoryBytes: 4 * BLOCK }],
    'a restart of the agent changes nothing',
  );
  await node.kubelet.startContainer(wanted.uid, 'main');
  t.match(
    (await limitsOf(given)).devices,
    [{ share: 10, memoryBytes: 4 * BLOCK, generation: 0 }],
    'a restart of the container changes nothing',
  );
});

test('an operator on the node reads, sets and resets limits', async (t) => {
  const node = await startedNode(t);
  const wanted = simplePod(30, 16);
  const given = await runPod(node, wanted);
  await runPod(node, simplePod(100, 0));
  const shown = await limits(node);
  t.match(shown.output, /CONTAINER .*\n.*\/main +\d +30 +- +4096 MiB +0 MiB +0 %/);
  t.match((await limits(node, 'list', '-o', 'wide')).output, / GPU UUID .*\n.*\/main +\d .* GPU-\S+ /);
  const name = `${wanted.namespace}/${wanted.name}`;
  t.match(await limits(node, 'set', name, '--memory', '1Gi', '--cores', '20', '--soft', '50'), {
    code: 0,
    output: /20 of 30 +50 +1024 MiB of 4096 MiB .*\(set\)/,
  });
  t.match((await limitsOf(given)).devices, [{ share: 20, softLimit: 50, memoryBytes: 2 ** 30 }]);
  const documents = JSON.parse((await limits(node, 'list', '-o', 'json')).output) as {
    pod: string;
    devices: { allocatedShare: number; share: number }[];
  }[];
  t.match(
    documents.find((one) => one.pod === wanted.name),
    {
      setByOperator: true,
      container: 'main',
      devices: [{ gpuIndex: Number, share: 20, allocatedShare: 30, softLimit: 50, generation: 1 }],
    },
  );
  t.match(await limits(node, 'release', wanted.name), { code: 0, output: / 30 +- +4096 MiB/ });
  t.match((await limitsOf(given)).devices, [{ share: 30, softLimit: null, memoryBytes: 16 * BLOCK }]);
});

test('an operator who requests impossible limits gets the reason', async (t) => {
  const node = await startedNode(t);
  const two = pod([container('a', 10, 4), container('b', 10, 4)]);
  await node.kubelet.admit(two);
  for (const name of ['a', 'b']) await node.kubelet.startContainer(two.uid, name);
  t.match(await limits(node, 'set', 'nobody', '--share', '5'), {
    code: 2,
    output: /no running container nobody on this node/,
  });
  t.match(await limits(node, 'set', two.name, '--share', '5'), {
    code: 2,
    output: /may mean any of default\/pod-\d+\/a, default\/pod-\d+\/b/,
  });
  t.match(await limits(node, 'set', `default/${two.name}/a`), {
    code: 2,
    output: /give at least one of --memory, --cores and --soft/,
  });
  t.match(await limits(node, 'set', `default/${two.name}/a`, '--share', '101'), {
    code: 2,
    output: /cores from 1 to 100/,
  });
  for (const [args, output] of [
    [['--share', '50'], /the share stays 10, which is what was allocated; 50 is more/],
    [['--share', '5', '--memory', '2Gi'], /the memory stays 1024 MiB, which is what was allocated; 2048 MiB is more/],
    [['--soft', '5'], /a soft limit of 5 is below the share, 10/],
  ] as const)
    t.match(await limits(node, 'set', `default/${two.name}/a`, ...args), { code: 2, output });
  t.match(await limits(node), { output: /\/a +\d +10 +- +1024 MiB +0 MiB +0 % +[0-9a-f]{16}$/m }, 'no change');
  await node.stopAgent();
  t.match(await limits(node), { code: 1, output: /gpu-manager: no agent answers at / });
});
