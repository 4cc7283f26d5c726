import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { gpuIndexes } from '../agent/node.js';
import { generator } from '../generator.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { MAIN } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';
import { GPUS_UNDER_ONE_BRIDGE, NODE, podOf, seedNode, TkestackNode } from './tkestack-node.js';

/** On a private node; run.ts starts it. Arguments: the folder of the original's programs, the folder of logs. */
const [programs = '', logs = ''] = process.argv.slice(2);

tap.setTimeout(timeLimit(600_000));

const PODS = 20;
/** A node of one GPU for one pod at a time: the next one fits when the extender has seen that the last one is gone. */
const GUARD_NODE = 'guard';

interface Extender {
  /**
   * Whether the pod fits on the node, once the extender has seen all earlier changes of pods; it then writes its choice
   * of GPUs to the pod.
   */
  choose(pod: EmulatedPod): Promise<boolean>;
  stop(): Promise<void>;
}

async function startExtender(kind: 'gpu-admission' | 'ours', node: TkestackNode): Promise<Extender> {
  const port = await freePort();
  const log = openSync(join(logs, `${kind}.log`), 'a');
  const common = [`--address=127.0.0.1:${port}`, '--kubeconfig=/etc/kubeconfig'];
  const [program, ...args] =
    kind === 'ours'
      ? [process.execPath, MAIN, 'extender', ...common]
      : [join(programs, kind), ...common, `--pprofAddress=127.0.0.1:${await freePort()}`, '--logtostderr=true'];
  const child = spawn(program ?? '', args, { stdio: ['ignore', log, log] });
  const ask = async (pod: EmulatedPod, nodeName: string): Promise<boolean> => {
    const answer = await fetch(`http://127.0.0.1:${port}/scheduler/predicates`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        Pod: node.api.read('pods', pod.namespace, pod.name),
        Nodes: { items: [node.api.read('nodes', '', nodeName)] },
        NodeNames: null,
      }),
    });
    const { Nodes: nodes } = (await answer.json()) as { Nodes?: { items?: readonly object[] } | null };
    return (nodes?.items ?? []).length > 0;
  };
  seedNode(node.api, GUARD_NODE, 1);
  let guards = 0;
  let guard = podOf(800, 'guard-0', [['main', 100, 0]]);
  node.submit(guard, null);
  await until(`${kind} to know the nodes`, () => ask(guard, GUARD_NODE));
  /** A watch tells changes in their order. */
  const seen = async (): Promise<void> => {
    node.api.remove('pods', guard.namespace, guard.name);
    guards += 1;
    guard = podOf(800 + guards, `guard-${guards}`, [['main', 100, 0]]);
    node.submit(guard, null);
    await until(`${kind} to see the last changes`, () => ask(guard, GUARD_NODE));
  };
  return {
    async choose(pod) {
      await seen();
      return ask(pod, NODE);
    },
    async stop() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Parts of GPUs mostly, some pods with two containers, some with a whole GPU. */
function randomPods(): EmulatedPod[] {
  const random = generator(7);
  const below = (limit: number): number => Math.floor(random() * limit);
  return Array.from({ length: PODS }, (_, index) => {
    const number = 100 + index;
    if (below(6) === 0) return podOf(number, `pod-${index}`, [['main', 100, 0]]);
    const part = (name: string): [string, number, number] => [name, 10 + 10 * below(5), 4 + 4 * below(6)];
    return podOf(number, `pod-${index}`, below(4) === 0 ? [part('main'), part('side')] : [part('main')]);
  });
}

/** What became of each pod: the GPUs that it got, or that no extender found a place. */
async function outcome(kind: 'gpu-admission' | 'ours'): Promise<readonly string[]> {
  const node = new TkestackNode(programs, logs, GPUS_UNDER_ONE_BRIDGE);
  await node.start();
  await node.startDaemon('original');
  const extender = await startExtender(kind, node);
  const ends = generator(11);
  const living: EmulatedPod[] = [];
  const outcomes: string[] = [];
  try {
    for (const pod of randomPods()) {
      if (living.length > 5 || (living.length > 2 && ends() < 0.3)) {
        const [ended] = living.splice(Math.floor(ends() * living.length), 1);
        if (ended !== undefined) await node.end(ended);
      }
      node.submit(pod, null);
      if (!(await extender.choose(pod))) {
        node.api.remove('pods', pod.namespace, pod.name);
        outcomes.push(`${pod.name}: no node`);
        continue;
      }
      node.bind(pod);
      const admission = await node.run(pod, { works: false });
      if (admission.ok) living.push(pod);
      else node.api.remove('pods', pod.namespace, pod.name);
      const got = admission.ok
        ? admission.containers.map((container) => gpuIndexes(container).join(',')).join(' and ')
        : admission.message.slice(0, 200);
      outcomes.push(`${pod.name}: ${got}`);
    }
  } finally {
    await extender.stop();
    await node.stop();
  }
  return outcomes;
}

test("pods get the same GPUs from the original's daemon, whether gpu-admission or our extender chose them", async (t) => {
  const [theirs, ours] = [await outcome('gpu-admission'), await outcome('ours')];
  t.ok(theirs.filter((line) => /: \d/.test(line)).length > PODS / 2, theirs.join('; '));
  t.same(ours, theirs);
  t.same(
    ours.filter((line) => line.includes('mismatch')),
    [],
    'the daemon agrees with each choice',
  );
});
