import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test, type Test } from 'tap';
import type {
  CheckpointAnswer,
  Checkpoints,
  ProcessState,
} from '../../../../src/agent/slices/suspend/checkpoint-program.js';
import { Suspender } from '../../../../src/agent/slices/suspend/suspender.js';
import { Suspensions } from '../../../../src/agent/slices/suspend/suspensions.js';
import { SliceDirectories } from '../../../../src/agent/slices/slice-directory.js';
import { systemClock } from '../../../../src/host/clock.js';
import { silentLog } from '../../../../src/host/log.js';
import { processStat } from '../../../../src/host/process-stat.js';
import { eventually } from '../../../harness/eventually.js';
import { ALLOCATION, gpuLimits, openSlices, sliceSpec, type TestSlices } from '../node-slices.js';

const MIB = 2 ** 20;
const SUCCESS = 0;
const ILLEGAL_STATE = 401;
const UNKNOWN = 999;

async function child(t: Test): Promise<ChildProcess & { readonly pid: number }> {
  const made = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(() => made.kill('SIGKILL'));
  await once(made, 'spawn');
  return made as ChildProcess & { readonly pid: number };
}

/** The driver's checkpoint interface for some processes. `onCall` runs in the middle of each call. */
class Driver implements Checkpoints {
  readonly states = new Map<number, ProcessState>();
  calls = 0;
  isLost = false;
  stopped = false;
  onCall: (call: number) => Promise<'before' | 'after' | null> = async () => null;

  begin(pid: number): void {
    this.states.set(pid, 'running');
  }

  state = (pid: number) => this.#call(pid, null, null);
  lock = (pid: number) => this.#call(pid, 'running', 'locked');
  checkpoint = (pid: number) => this.#call(pid, 'locked', 'checkpointed');
  restore = (pid: number) => this.#call(pid, 'checkpointed', 'locked');
  unlock = (pid: number) => this.#call(pid, 'locked', 'running');
  stop(): void {
    this.stopped = true;
  }

  async #call(pid: number, from: ProcessState | null, to: ProcessState | null): Promise<CheckpointAnswer> {
    this.calls += 1;
    const killed = await this.onCall(this.calls);
    if (killed === 'before') return { result: null, state: null };
    const state = this.states.get(pid);
    const lives = processStat(pid)?.ended === false;
    if (state === undefined || !lives) return { result: 1, state: null };
    if (this.isLost && to !== null && to !== 'running') return { result: UNKNOWN, state };
    if (from !== null && state !== from) return { result: ILLEGAL_STATE, state };
    if (to !== null) this.states.set(pid, to);
    return killed === 'after' ? { result: null, state: null } : { result: SUCCESS, state: to ?? state };
  }
}

/** One run of the agent, on what earlier runs left. */
function agent({ slices, base }: TestSlices, driver: Driver, pids: () => readonly number[]) {
  const suspensions = new Suspensions(new SliceDirectories(base));
  const suspender = new Suspender({
    allowed: true,
    checkpoints: driver,
    slices,
    suspensions,
    processes: {
      of: async () =>
        pids().flatMap((pid) => {
          const stat = processStat(pid);
          return stat === null || stat.ended
            ? []
            : [{ pid, startTicks: stat.startTicks, bytes: 10 * MIB, obstacles: [] }];
        }),
      obstacles: async () => [],
    },
    source: { sample: async () => ({ usedMemoryBytes: 20 * MIB }) } as never,
    memoryBytesOf: () => 1024 * MIB,
    usersOf: ({ owner }) => [owner],
    notices: { note: () => undefined },
    clock: systemClock,
    log: silentLog(),
  });
  return { suspender, suspensions };
}

type Fault =
  'agent killed before the call' | 'agent killed after the call' | 'process killed' | 'process started' | 'GPU lost';
const FAULTS: readonly Fault[] = [
  'agent killed before the call',
  'agent killed after the call',
  'process killed',
  'process started',
  'GPU lost',
];

/** Suspends and resumes two processes, with a fault in the middle of the call number `at`; false: there is none. */
async function survives(t: Test, node: TestSlices, fault: Fault, at: number): Promise<boolean> {
  const title = `${fault}, call ${at}`;
  const children = [await child(t), await child(t)];
  const driver = new Driver();
  for (const { pid } of children) driver.begin(pid);
  const pids = () => children.map(({ pid }) => pid);
  let run = agent(node, driver, pids);
  let happened = false;
  driver.onCall = async (call) => {
    if (call !== at) return null;
    happened = true;
    if (fault === 'agent killed before the call' || fault === 'agent killed after the call') {
      run.suspender.stop();
      return fault === 'agent killed before the call' ? 'before' : 'after';
    }
    if (fault === 'process killed') {
      children[0]?.kill('SIGKILL');
      await once(children[0] as ChildProcess, 'exit');
    } else if (fault === 'process started') {
      const more = await child(t);
      driver.begin(more.pid);
      children.push(more);
    } else driver.isLost = true;
    return null;
  };
  /** As the next agent finds it. */
  const again = async (): Promise<void> => {
    run = agent(node, driver, pids);
    await run.suspender.recover(ALLOCATION);
  };
  await run.suspender.suspend(ALLOCATION, 'operator', true).catch(again);
  await run.suspender.resume(ALLOCATION).catch(again);
  driver.isLost = false;
  // What an interruption left is on its way, or waits for another try.
  for (let tries = 0; run.suspensions.of(ALLOCATION) !== null && tries < 3; tries += 1)
    await run.suspender.resume(ALLOCATION);
  const states = children.flatMap(({ pid }) => (processStat(pid)?.ended === false ? [driver.states.get(pid)] : []));
  t.ok(states.length > 0 && states.every((state) => state === 'running'), `${title}: all living processes run`);
  t.equal(run.suspensions.of(ALLOCATION), null, `${title}: nothing is recorded`);
  await run.suspensions.forget(ALLOCATION);
  for (const one of children) one.kill('SIGKILL');
  return happened;
}

for (const fault of FAULTS)
  test(`whatever happens in the middle of a step, in the end every living process runs: ${fault}`, async (t) => {
    const node = await openSlices(t);
    await node.slices.start(sliceSpec());
    let at = 1;
    while (await survives(t, node, fault, at)) at += 1;
    // Two locks, checkpoints, restores and unlocks.
    t.ok(at > 8, `${at - 1} calls`);
  });

test('a record of processes that have ended is dropped, as after a restart of the node', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  const one = await child(t);
  const driver = new Driver();
  driver.begin(one.pid);
  const first = agent(node, driver, () => [one.pid]);
  t.match(await first.suspender.suspend(ALLOCATION, 'idle', false), { ok: true, processes: 1 });
  one.kill('SIGKILL');
  await once(one, 'exit');
  const next = agent(node, driver, () => []);
  await next.suspender.recover(ALLOCATION);
  t.equal(next.suspensions.all.size, 0);
});

test('containers of different GPUs move at the same time, those of one GPU one after the other', async (t) => {
  const node = await openSlices(t);
  const others = ['00112233445566bb', '00112233445566cc'];
  await node.slices.start(sliceSpec());
  await node.slices.start(sliceSpec({ allocation: others[0] as string }));
  await node.slices.start(sliceSpec({ allocation: others[1] as string, devices: [gpuLimits(1)] }));
  const one = await child(t);
  const driver = new Driver();
  driver.begin(one.pid);
  const { suspender } = agent(node, driver, () => [one.pid]);
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  driver.onCall = async () => gate.then(() => null);
  const ended: string[] = [];
  const suspend = (allocation: string) =>
    suspender.suspend(allocation, 'operator', true).then(() => void ended.push(allocation));
  const first = suspend(ALLOCATION);
  await eventually(() => driver.calls === 1, 'the first has begun');
  const second = suspend(others[0] as string);
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.equal(driver.calls, 1, 'the second waits for the first');
  const third = suspend(others[1] as string);
  await eventually(() => driver.calls === 2, 'the third does not wait');
  open();
  await Promise.all([first, second, third]);
  t.ok(ended.indexOf(ALLOCATION) < ended.indexOf(others[0] as string));
});
