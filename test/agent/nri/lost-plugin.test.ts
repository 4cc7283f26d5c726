import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { UnixListener } from '../../../src/host/unix-socket.js';
import { eventually } from '../../harness/eventually.js';
import { AgentProcess } from '../../harness/gpu-machine/agent-process.js';
import { scratchDirectory } from '../../scratch.js';
import { notBuilt, SimulatedMachine } from '../gpus/sim/simulated-machine.js';
import { cards } from '../gpus.js';
import { nriSkipReason } from './containerd2.js';
import { environmentOf, OURS, preparedPod, startedEngine, THEIRS } from './runtime-setting.js';

const skip = nriSkipReason() || notBuilt;
const MACHINE = new SimulatedMachine(cards(2));
const UNHOOKING = { environment: { LD_LIBRARY_PATH: THEIRS } };

/** An agent in a process of its own, which can be stopped and killed. */
async function mortalAgent(t: Test, nriSocket: string): Promise<AgentProcess> {
  const agent = new AgentProcess({
    directory: join(await scratchDirectory(t), 'a'),
    machine: MACHINE,
    flags: ['--nri', `--nri-socket=${nriSocket}`],
  });
  await agent.kubelet.start();
  t.teardown(async () => {
    await agent.end('SIGKILL');
    await agent.kubelet.stop();
  });
  await agent.start();
  await asked(agent, 1);
  return agent;
}

const logged = (agent: AgentProcess, text: string): number =>
  readFileSync(agent.logPath, 'utf8').split(text).length - 1;

const asked = (agent: AgentProcess, times: number): Promise<unknown> =>
  eventually(
    () => logged(agent, 'the container runtime asks this agent about containers') >= times,
    'the runtime to ask the agent',
  );

const found = (agent: AgentProcess, podUid: string): boolean =>
  readFileSync(agent.logPath, 'utf8')
    .split('\n')
    .some((line) => line.includes('not-injected') && line.includes(podUid));

test(
  'the runtime skips a plugin that does not answer: the container starts, and the audit reports it',
  { skip },
  async (t) => {
    const engine = await startedEngine(t);
    const agent = await mortalAgent(t, engine.nriSocket);
    const { pod, spec } = await preparedPod(agent.kubelet, UNHOOKING);
    process.kill(agent.pid, 'SIGSTOP');
    const id = await engine.run(spec);
    t.match(await environmentOf(engine, id), { LD_LIBRARY_PATH: THEIRS });
    process.kill(agent.pid, 'SIGCONT');
    await asked(agent, 2);
    await eventually(() => found(agent, pod.uid), 'the finding');
    const next = await preparedPod(agent.kubelet, UNHOOKING);
    t.match(await environmentOf(engine, await engine.run(next.spec)), { LD_LIBRARY_PATH: `${OURS}:${THEIRS}` });
  },
);

test('a plugin that is killed during a request does not block the runtime', { skip }, async (t) => {
  const engine = await startedEngine(t);
  const between = await listenBetween(t, engine.nriSocket);
  const agent = await mortalAgent(t, between.path);
  const { pod, spec } = await preparedPod(agent.kubelet, UNHOOKING);
  // The agent has the request and is killed before it answers.
  process.kill(agent.pid, 'SIGSTOP');
  between.on('CreateContainer', () => void agent.end('SIGKILL'));
  const id = await engine.run(spec);
  t.notOk(agent.alive);
  t.match(await environmentOf(engine, id), { LD_LIBRARY_PATH: THEIRS });
  await agent.start();
  await asked(agent, 2);
  await eventually(() => found(agent, pod.uid), 'the finding');
});

/** A proxy between a runtime and its plugin that forwards everything and calls back after certain requests. */
async function listenBetween(t: Test, nriSocket: string) {
  const path = join(await scratchDirectory(t), 'between.sock');
  const listeners = new Map<string, () => void>();
  const listener = new UnixListener(path, (plugin) => {
    const runtime = connect(nriSocket);
    for (const [from, to] of [
      [plugin, runtime],
      [runtime, plugin],
    ] as const) {
      from.on('error', () => undefined);
      from.on('close', () => to.destroy());
    }
    plugin.pipe(runtime);
    runtime.on('data', (bytes: Buffer) =>
      plugin.write(bytes, () => {
        for (const [text, act] of listeners) {
          if (!bytes.includes(text)) continue;
          listeners.delete(text);
          act();
        }
      }),
    );
  });
  await listener.start();
  t.teardown(() => listener.stop());
  return { path, on: (text: string, act: () => void) => listeners.set(text, act) };
}
