import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CORE_LIMIT_KEY, ENFORCEMENT_KEY, MEMORY_OVERSUBSCRIBE_KEY, PRIORITY_KEY } from '../gpu/annotations.js';
import { CLAIM_STEPS } from './demo-claims.js';
import { expect, type Step } from './demo-step.js';
import { demoPod, main, type Demo } from './demo.js';
import type { GivenContainer } from './kubelet/kubelet.js';
import type { EmulatedPod } from './kubelet/pod.js';
import { SimulatedNode } from './simulated-node.js';

/** CUDA_ERROR_OUT_OF_MEMORY. */
const OUT_OF_MEMORY = '2';
/** Long enough that the initial burst of a program has no effect. */
const PACED_MS = 3_000;
/** Tolerated use above a share in cores, because the measurement is short. */
const TOLERANCE = 5;

/** A batch program of low priority uses fewer cores than this beside a service; its floor is 5. */
const MOST_LOW = 25;
const DIVIDED_GPU = {
  model: 'NVIDIA A100-SXM4-40GB',
  memoryMiB: 40_960,
  multiprocessors: 108,
  computeCapability: '8.0',
  mig: ['3g.20gb', '2g.10gb', '1g.5gb'],
};

/** Receives the result of each step. */
export type StepReport = (step: { readonly title: string; readonly ok: boolean; readonly outcome: string }) => void;

function gpusOf(containers: readonly GivenContainer[]): number[] {
  const paths = containers.flatMap((container) => (container.annotations['tencent.com/vcuda-device'] ?? '').split(','));
  return [...new Set(paths.map((path) => Number(/(\d+)$/.exec(path)?.[1])))].sort((a, b) => a - b);
}

async function runOn(demo: Demo, pod: EmulatedPod, gpus: readonly number[]): Promise<string> {
  const got = gpusOf(await demo.runPod(pod));
  expect(got.join() === gpus.join(), `got GPU ${got.join(', ')} instead of ${gpus.join(', ')}`);
  return `GPU ${got.join(', ')}`;
}

async function refused({ node }: Demo, pod: EmulatedPod, reason: RegExp): Promise<string> {
  const admission = await node.kubelet.admit(pod);
  expect(!admission.ok, 'was admitted');
  const message = admission.ok ? '' : admission.message;
  expect(reason.test(message), `refused for another reason: ${message}`);
  return message;
}

/** Runs on its own node, whose GPU is divided into three instances. */
async function shareInstance({ directory, log }: Demo): Promise<string> {
  const gpus = JSON.stringify({ gpus: [DIVIDED_GPU] });
  const config = { migStrategy: 'shared' } as const;
  const node = new SimulatedNode({ directory: join(directory, 'mig'), gpus, log, knowsPods: true, config });
  try {
    await node.start();
    const visible: string[] = [];
    for (const name of ['one', 'two']) {
      const admission = await node.kubelet.admit(demoPod(name, [main(40, 8)]));
      expect(admission.ok, admission.ok ? '' : `refused: ${admission.message}`);
      const [given] = admission.ok ? admission.containers : [];
      visible.push(given?.environment['NVIDIA_VISIBLE_DEVICES'] ?? '');
    }
    expect(/^MIG-/.test(visible[0] ?? '') && visible[0] === visible[1], `they got ${visible.join(' and ')}`);
    return `${visible[0]}, the smallest that has room`;
  } finally {
    await node.stop();
  }
}

function annotated(pod: EmulatedPod, annotations: Readonly<Record<string, string>>): EmulatedPod {
  return { ...pod, annotations };
}

function allocations(node: SimulatedNode): string {
  return [...node.agent.allocator.state.allocations.values()]
    .map((allocation) => JSON.stringify([allocation.id, allocation.parts]))
    .sort()
    .join('\n');
}

const PLUGIN_STEPS: readonly Step<Demo>[] = [
  { title: 'a pod asks for 30 cores and 16 blocks', run: (demo) => runOn(demo, demoPod('a', [main(30, 16)]), [0]) },
  { title: 'a pod of 50 cores shares that GPU', run: (demo) => runOn(demo, demoPod('b', [main(50, 32)]), [0]) },
  { title: 'a pod of 20 cores fills it', run: (demo) => runOn(demo, demoPod('c', [main(20, 16)]), [0]) },
  {
    title: 'the program in the first pod sees its slice, and is refused memory beyond it',
    async run(demo) {
      const total = await demo.runProgram('a', ['total']);
      expect(total === 'total 4096', `sees ${total}`);
      const memory = await demo.runProgram('a', ['memory']);
      const [, got, result] = /^memory (\d+) result (\d+)$/.exec(memory) ?? [];
      expect(Number(got) > 0 && Number(got) <= 4096 && result === OUT_OF_MEMORY, memory);
      return `4096 MiB; CUDA_ERROR_OUT_OF_MEMORY after ${got} MiB`;
    },
  },
  {
    title: 'with memory class low it may hold half as much again, on the host',
    async run(demo) {
      demo.node.kubelet.annotate('demo-a', { [MEMORY_OVERSUBSCRIBE_KEY]: 'low' });
      const memory = await demo.runProgram('a', ['memory']);
      demo.node.kubelet.annotate('demo-a', {});
      const [, got, result] = /^memory (\d+) result (\d+)$/.exec(memory) ?? [];
      expect(Number(got) > 4096 && Number(got) <= 6144 && result === OUT_OF_MEMORY, memory);
      return `CUDA_ERROR_OUT_OF_MEMORY after ${got} MiB`;
    },
  },
  {
    title: 'the three programs at work together keep to their 30, 50 and 20 hundredths',
    async run(demo) {
      const asked = { a: 30, b: 50, c: 20 };
      const shares = await Promise.all(
        Object.entries(asked).map(async ([pod, cores]) => {
          const share = Number(/^share (\d+)$/.exec(await demo.runProgram(pod, ['share', PACED_MS]))?.[1]);
          // The lower bound of a program's use depends on the speed of this machine; the upper bound does not.
          expect(share > 0 && share <= cores + TOLERANCE, `${pod} used ${share} % instead of ${cores} %`);
          return share;
        }),
      );
      return `${shares.join(', ')} %`;
    },
  },
  {
    title: '150 cores are refused, with the rule',
    run: (demo) => refused(demo, demoPod('odd', [main(150, 16)]), /150 is more than one GPU and not a multiple of 100/),
  },
  {
    title: 'a whole GPU keeps the linked pair free',
    run: (demo) => runOn(demo, demoPod('whole', [main(100, 0)]), [1]),
  },
  {
    title: 'two whole GPUs are an NVLink pair',
    run: (demo) => runOn(demo, demoPod('pair', [main(200, 0)]), [2, 3]),
  },
  {
    title: 'a pod for which no GPU is left is refused, with what there was',
    run: (demo) => refused(demo, demoPod('late', [main(10, 8)]), /Available: 0|asked for 10 cores/),
  },
  {
    title: 'a pod ends, and its GPUs are released',
    async run(demo) {
      demo.node.kubelet.remove('demo-pair');
      return runOn(demo, demoPod('next-pair', [main(200, 16)]), [2, 3]);
    },
  },
  {
    title: 'two containers and an init container share a GPU in one pod',
    async run(demo) {
      demo.node.kubelet.remove('demo-next-pair');
      const pod = demoPod(
        'app',
        [
          { ...main(30, 8), name: 'web' },
          { ...main(40, 12), name: 'model' },
        ],
        [{ ...main(60, 16), name: 'warm-up' }],
      );
      return runOn(demo, pod, [2]);
    },
  },
  {
    title: 'the kubelet restarts, and everything stays as it was',
    async run({ node }) {
      const before = allocations(node);
      await node.kubelet.restart();
      await node.kubelet.ready();
      expect(allocations(node) === before, 'the ledger changed');
      return `registered again, ${node.agent.allocator.state.allocations.size} allocations`;
    },
  },
  {
    title: 'the agent restarts, and everything stays as it was',
    async run({ node }) {
      const before = allocations(node);
      await node.stopAgent();
      await node.startAgent();
      expect(allocations(node) === before, 'the ledger changed');
      return `${node.agent.allocator.state.allocations.size} allocations restored`;
    },
  },
  {
    title: 'the page of the node shows the topology',
    async run({ node }) {
      const answer = await fetch(`http://127.0.0.1:${node.agent.httpPort()}/graph`);
      const { graph } = (await answer.json()) as { graph: string };
      expect(/^ROOT:1\n/.test(graph), `unexpected graph: ${graph}`);
      return 'ROOT:1, one GPU is free';
    },
  },
  {
    title: 'a batch of low priority leaves the GPU to a service of high priority',
    async run(demo) {
      const withAll = { [CORE_LIMIT_KEY]: '100' };
      await demo.runPod(annotated(demoPod('service', [main(50, 16)]), { ...withAll, [PRIORITY_KEY]: 'high' }));
      await demo.runPod(annotated(demoPod('batch-low', [main(50, 16)]), { ...withAll, [PRIORITY_KEY]: 'low' }));
      const [service, batch] = await Promise.all(
        ['service', 'batch-low'].map(async (pod) =>
          Number(/^share (\d+)$/.exec(await demo.runProgram(pod, ['share', PACED_MS]))?.[1]),
        ),
      );
      for (const pod of ['demo-service', 'demo-batch-low']) demo.node.kubelet.remove(pod);
      expect((batch ?? 100) < MOST_LOW, `the batch used ${batch} % beside the service`);
      return `${service} % and ${batch} %; by shares both had half`;
    },
  },
  {
    title: 'an unenforced slice sees the whole GPU, and is only audited',
    async run(demo) {
      await demo.runPod(annotated(demoPod('tool', [main(20, 8)]), { [ENFORCEMENT_KEY]: 'none' }));
      const total = await demo.runProgram('tool', ['total']);
      demo.node.kubelet.remove('demo-tool');
      const mib = Number(/^total (\d+)$/.exec(total)?.[1]);
      expect(mib > 15_000, `sees ${total}`);
      return `${mib} MiB, of which it booked 2048`;
    },
  },
  {
    title: 'two pods share a MIG instance of another node',
    run: shareInstance,
  },
  {
    title: 'all pods end, and nothing of them is left',
    async run({ node }) {
      for (const pod of node.kubelet.pods) node.kubelet.remove(pod.uid);
      await node.kubelet.admit(demoPod('without-gpu', []));
      // The step runs twice: the first run finds no holder of the allocations, the second finds their grace period
      // over.
      await node.agent.allocator.reconcile();
      await node.agent.allocator.reconcile();
      const left = await readdir(node.config.virtualManagerPath);
      expect(left.length === 0, `directories are left: ${left.join(', ')}`);
      return 'no allocation, no directory';
    },
  },
];

/** How many steps each part has. */
export const STEP_COUNTS = { plugin: PLUGIN_STEPS.length, claims: CLAIM_STEPS.length };

/** Runs both parts: pods of the device plugin, and pods with claims. Resolves with the number of failed steps. */
export async function runScenario(demo: Demo, report: StepReport, signal?: AbortSignal): Promise<number> {
  let failed = 0;
  const acts = [
    ...PLUGIN_STEPS.map(({ title, run }) => ({ title, run: () => run(demo) })),
    ...CLAIM_STEPS.map(({ title, run }) => ({ title, run: () => run(demo.claims) })),
  ];
  const isStopped = (): boolean => signal?.aborted === true;
  for (const { title, run } of acts) {
    if (isStopped()) break;
    try {
      report({ title, ok: true, outcome: await run() });
    } catch (error) {
      // The demonstration stops, and took what the step needs.
      if (isStopped()) break;
      failed += 1;
      report({ title, ok: false, outcome: (error as Error).message });
    }
  }
  return failed;
}
