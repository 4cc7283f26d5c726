import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeLimits } from '../core/limits-file.js';
import { MEMORY_BLOCK_BYTES } from '../core/resources.js';
import type { GivenContainer } from '../emulator/kubelet.js';
import type { EmulatedContainer, EmulatedPod } from '../emulator/pod.js';
import type { Log } from '../host/log.js';
import { SimulatedNode } from './simulated-node.js';

/** Four cards of 16 GiB: 0-1 and 2-3 are NVLink pairs on a CPU socket each. */
export const DEMO_NODE = `\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\tX\tNV4\tSYS\tSYS
GPU1\tNV4\tX\tSYS\tSYS
GPU2\tSYS\tSYS\tX\tNV4
GPU3\tSYS\tSYS\tNV4\tX
`;

/** One step of the scenario: what is tried, and what came of it. Throws when the answer is not what it must be. */
interface Step {
  readonly title: string;
  readonly run: (node: SimulatedNode) => Promise<string>;
}

/** Says after each step how it went. */
export type StepReport = (step: { readonly title: string; readonly ok: boolean; readonly outcome: string }) => void;

class WrongAnswer extends Error {}

function expect(condition: boolean, otherwise: string): void {
  if (!condition) throw new WrongAnswer(otherwise);
}

/** The node of the demonstration below `directory`; a short path, sockets lie in it. */
export function demoNode(directory: string, log: Log, queryPort: number): SimulatedNode {
  return new SimulatedNode({ directory, gpus: DEMO_NODE, log, knowsPods: true, config: { queryPort }, seams: { graceMs: 0 } });
}

/** Goes through the scenario on a started node. Resolves with the number of steps that failed. */
export async function runScenario(node: SimulatedNode, report: StepReport): Promise<number> {
  let failed = 0;
  for (const step of scenario()) {
    try {
      report({ title: step.title, ok: true, outcome: await step.run(node) });
    } catch (error) {
      failed += 1;
      report({ title: step.title, ok: false, outcome: (error as Error).message });
    }
  }
  return failed;
}

function demoPod(name: string, containers: readonly EmulatedContainer[], initContainers: readonly EmulatedContainer[] = []): EmulatedPod {
  return { uid: `demo-${name}`, namespace: 'demo', name, containers, initContainers };
}

const main = (cores: number, memoryBlocks: number): EmulatedContainer => ({ name: 'main', cores, memoryBlocks });

/** Admits and starts every container of a pod, and checks that each got exactly what it asked for. */
async function runPod(node: SimulatedNode, pod: EmulatedPod): Promise<readonly GivenContainer[]> {
  const admission = await node.kubelet.admit(pod);
  expect(admission.ok, admission.ok ? '' : `refused: ${admission.message}`);
  if (!admission.ok) return [];
  for (const wanted of [...pod.initContainers, ...pod.containers]) {
    await node.kubelet.startContainer(pod.uid, wanted.name);
    const given = admission.containers.find((container) => container.name === wanted.name);
    if (given !== undefined) await checkLimits(wanted, given);
  }
  return admission.containers;
}

async function checkLimits(wanted: EmulatedContainer, given: GivenContainer): Promise<void> {
  const directory = given.mounts.find((mount) => mount.containerPath === '/etc/vcuda')?.hostPath ?? '';
  const decoded = decodeLimits(await readFile(join(directory, 'vgpu.limits')));
  expect(decoded.ok, decoded.ok ? '' : `limits of ${wanted.name}: ${decoded.reason}`);
  if (!decoded.ok) return;
  const share = decoded.limits.devices.reduce((sum, device) => sum + device.share, 0);
  const bytes = decoded.limits.devices.reduce((sum, device) => sum + (device.memoryBytes ?? 0), 0);
  expect(share === wanted.cores, `${wanted.name} may use ${share} cores instead of ${wanted.cores}`);
  expect(bytes === wanted.memoryBlocks * MEMORY_BLOCK_BYTES, `${wanted.name} may use ${bytes} bytes instead of ${wanted.memoryBlocks} blocks`);
}

function cardsOf(containers: readonly GivenContainer[]): number[] {
  const paths = containers.flatMap((container) => (container.annotations['tencent.com/vcuda-device'] ?? '').split(','));
  return [...new Set(paths.map((path) => Number(/(\d+)$/.exec(path)?.[1])))].sort((a, b) => a - b);
}

async function runOn(node: SimulatedNode, pod: EmulatedPod, cards: readonly number[]): Promise<string> {
  const got = cardsOf(await runPod(node, pod));
  expect(got.join() === cards.join(), `got GPU ${got.join(', ')} instead of ${cards.join(', ')}`);
  return `GPU ${got.join(', ')}`;
}

async function refused(node: SimulatedNode, pod: EmulatedPod, reason: RegExp): Promise<string> {
  const admission = await node.kubelet.admit(pod);
  expect(!admission.ok, 'was admitted');
  const message = admission.ok ? '' : admission.message;
  expect(reason.test(message), `refused for another reason: ${message}`);
  return message;
}

function allocations(node: SimulatedNode): string {
  return [...node.agent.allocator.state.allocations.values()].map((allocation) => JSON.stringify([allocation.id, allocation.parts])).sort().join('\n');
}

function scenario(): readonly Step[] {
  return [
    { title: 'a pod asks for 30 cores and 16 blocks', run: (node) => runOn(node, demoPod('a', [main(30, 16)]), [0]) },
    { title: 'a pod of 50 cores shares that card', run: (node) => runOn(node, demoPod('b', [main(50, 32)]), [0]) },
    { title: 'a pod of 20 cores fills it', run: (node) => runOn(node, demoPod('c', [main(20, 16)]), [0]) },
    { title: '150 cores are refused, with the rule', run: (node) => refused(node, demoPod('odd', [main(150, 16)]), /150 is more than one GPU and not a multiple of 100/) },
    { title: 'a whole card keeps the linked pair free', run: (node) => runOn(node, demoPod('whole', [main(100, 0)]), [1]) },
    { title: 'two whole cards are an NVLink pair', run: (node) => runOn(node, demoPod('pair', [main(200, 0)]), [2, 3]) },
    { title: 'a pod for which no card is left is refused, with what there was', run: (node) => refused(node, demoPod('late', [main(10, 8)]), /Available: 0|asked for 10 cores/) },
    {
      title: 'a pod ends, and its cards are free again',
      async run(node) {
        node.kubelet.remove('demo-pair');
        return runOn(node, demoPod('next-pair', [main(200, 16)]), [2, 3]);
      },
    },
    {
      title: 'two containers and an init container share a card in one pod',
      async run(node) {
        node.kubelet.remove('demo-next-pair');
        const pod = demoPod('app', [{ ...main(30, 8), name: 'web' }, { ...main(40, 12), name: 'model' }], [{ ...main(60, 16), name: 'warm-up' }]);
        return runOn(node, pod, [2]);
      },
    },
    {
      title: 'the kubelet restarts, and everything stays as it was',
      async run(node) {
        const before = allocations(node);
        await node.kubelet.restart();
        await node.kubelet.ready();
        expect(allocations(node) === before, 'the ledger changed');
        return `registered again, ${node.agent.allocator.state.allocations.size} allocations`;
      },
    },
    {
      title: 'the agent restarts, and everything stays as it was',
      async run(node) {
        const before = allocations(node);
        await node.stopAgent();
        await node.startAgent();
        expect(allocations(node) === before, 'the ledger changed');
        return `${node.agent.allocator.state.allocations.size} allocations restored`;
      },
    },
    {
      title: 'the page of the node shows the topology',
      async run(node) {
        const answer = await fetch(`http://127.0.0.1:${node.agent.httpPort()}/graph`);
        const { graph } = (await answer.json()) as { graph: string };
        expect(/^ROOT:1\n/.test(graph), `unexpected graph: ${graph}`);
        return 'ROOT:1, one card is free';
      },
    },
    {
      title: 'all pods end, and nothing of them is left',
      async run(node) {
        for (const pod of node.kubelet.pods) node.kubelet.remove(pod.uid);
        await node.kubelet.admit(demoPod('without-gpu', []));
        // Twice: first nobody vouches for the allocations any more, then their time of grace is over.
        await node.agent.allocator.reconcile();
        await node.agent.allocator.reconcile();
        const left = await readdir(node.config.virtualManagerPath);
        expect(left.length === 0, `directories are left: ${left.join(', ')}`);
        return 'no allocation, no directory';
      },
    },
  ];
}
