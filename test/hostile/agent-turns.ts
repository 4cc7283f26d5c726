import { join } from 'node:path';
import type { Test } from 'tap';
import { NodeClient } from '../../src/cli/node-client.js';
import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { cards } from '../agent/gpus.js';
import { SimulatedMachine } from '../agent/gpus/sim/simulated-machine.js';
import { simplePod } from '../agent/pods.js';
import { freePort } from '../harness/free-port.js';
import { AgentProcess } from '../harness/gpu-machine/agent-process.js';
import { holdsTurns } from '../harness/turn-limit.js';
import { scratchDirectory } from '../scratch.js';

const GPUS = 16;
/** Of the containers, those that end and begin at once. */
const AT_ONCE = 1 / 4;
const PATHS = ['/metrics', '/usage', '/api/node', '/api/events', '/graph', '/graph?extended=1', '/healthz'];

export interface AgentLoad {
  readonly containers: number;
  readonly restMs: number;
  /** How often each reader reads. */
  readonly reads: number;
}

/**
 * Tests that in an agent of 16 GPUs no reader, no request of the kubelet and no work of its own takes a long turn of
 * its event loop.
 */
export async function holdsAgentTurns(t: Test, { containers, restMs, reads }: AgentLoad): Promise<void> {
  const directory = await scratchDirectory(t);
  const machine = new SimulatedMachine(cards(GPUS));
  const port = await freePort();
  const flags = [`--query-port=${port}`, '--query-addr=127.0.0.1'];
  const agent = new AgentProcess({ directory: join(directory, 'a'), machine, flags, isMetered: true });
  await agent.kubelet.start();
  t.teardown(async () => {
    await agent.end();
    await agent.kubelet.stop();
  });
  await agent.start();
  const display = new NodeClient(agent.displaySocket);
  t.teardown(() => display.close());
  const held = (what: string, task: () => Promise<void>): Promise<void> =>
    holdsTurns(t, what, () => agent.longestTurn(task));
  const admitted = async (pod: EmulatedPod): Promise<readonly GivenContainer[]> => {
    const admission = await agent.kubelet.admit(pod);
    if (!admission.ok) throw new Error(admission.message);
    return admission.containers;
  };
  let pods: EmulatedPod[] = [];
  await held(`${containers} pods one after another`, async () => {
    for (const { uid } of pods) agent.kubelet.remove(uid);
    pods = Array.from({ length: containers }, () => simplePod(6, 2));
    for (const pod of pods)
      for (const { name } of await admitted(pod)) await agent.kubelet.startContainer(pod.uid, name);
  });
  await held('at rest', () => new Promise((resolve) => setTimeout(resolve, restMs)));
  // Only root opens this socket.
  await held('a reader of the display service', async () => {
    for (let time = 0; time < 4 * reads; time++) await display.snapshot();
  });
  for (const path of PATHS)
    await held(`readers of ${path}`, async () => {
      for (let time = 0; time < reads; time++) {
        const answers = Array.from({ length: 8 }, async () =>
          (await fetch(`http://127.0.0.1:${port}${path}`)).arrayBuffer(),
        );
        await Promise.all(answers);
      }
    });
  await held('pods that go and come at once', async () => {
    const ended = pods.splice(0, AT_ONCE * containers);
    const begun = ended.map(() => simplePod(6, 2));
    pods.push(...begun);
    for (const { uid } of ended) agent.kubelet.remove(uid);
    await Promise.all(begun.map(admitted));
  });
}
