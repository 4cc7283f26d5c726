import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import tap, { type Test } from 'tap';
import { examineMemoryLimits } from '../../src/agent/doctor/memory-limits.js';
import type { GroupLimits, GroupMemory } from '../../src/agent/gpus/driver.js';
import { controlGroups } from '../../src/agent/runtimes/control-groups.js';
import { systemClock, type Clock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { SimulatedNode, type SimulatedNodeOptions } from '../../src/simulation/simulated-node.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { doubleGroups, type TestGroups } from '../harness/control-groups/test-groups.js';
import { Hoarder } from '../harness/gpu-machine/hoarder.js';
import { buildProgram, tenantEnvironment, tenantSkipReason } from '../harness/gpu-machine/tenant.js';
import { scratchDirectory } from '../scratch.js';
import { libraryPath, noCompiler, notBuilt, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { runPod, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';

/** Reason why no limits of groups can be tested here; false where they can. */
export const limitsSkipReason =
  notBuilt ||
  tenantSkipReason ||
  noCompiler ||
  (process.getuid?.() === 0 ? false : 'only root may set limits of groups');
/** The memory of a context, which the limit contains. */
export const CONTEXT_MIB = 256;

interface Setting {
  readonly driverVersion?: string;
  readonly memoryLimits?: 'misc' | 'dmem' | 'off';
  readonly groups?: TestGroups;
  readonly config?: SimulatedNodeOptions['config'];
}

/** Periods of seconds are shortened to fractions of a second, so that the test need not wait for them. */
const HASTY: Clock = {
  ...systemClock,
  every: (periodMs, action) => systemClock.every(periodMs >= 1_000 ? periodMs / 20 : periodMs, action),
};

/** Built once, by the first test. */
let program: string | null = null;
tap.teardown(() => program !== null && rmSync(dirname(program), { recursive: true }));

/** A node with one GPU of 16 GiB, and containers whose programs run in control groups. */
export async function limitedNode(t: Test, setting: Setting = {}) {
  const { driverVersion = '615.10.01', memoryLimits = 'misc', config } = setting;
  const made = setting.groups ?? (await doubleGroups(t));
  const directory = await scratchDirectory(t);
  const machine = new SimulatedMachine(JSON.stringify({ driverVersion, gpus: [{}] }), {
    memoryLimits,
    controlGroups: made.root,
  });
  program ??= buildProgram('test/harness/gpu-machine/hoarder.c', mkdtempSync(join(tmpdir(), 'gm-hoarder-')), 'hoarder');
  const built = program;
  const first = new Map<string, number>();
  const groups = controlGroups({ ...made, pidOf: async (podUid, name) => first.get(`${podUid}/${name}`) ?? null });
  const notes: string[] = [];
  const node = new SimulatedNode({
    directory,
    gpus: JSON.stringify({ driverVersion, gpus: [{}] }),
    log: silentLog(),
    knowsPods: true,
    config: {
      simStatePath: machine.statePath,
      simNodePath: machine.nodePath,
      nvmlPath: libraryPath,
      samplePeriodMs: 1_000,
      ...config,
    },
    seams: {
      groups,
      clock: HASTY,
      sliceNotices: { note: (_owner, { reason, message }) => void notes.push(`${reason}: ${message}`) },
      containers: {
        placeOf: async (pid) => {
          const group = groups.ofProcess(pid);
          return group === null ? null : { containerId: 'c', podUid: group.podUid };
        },
        pidsOf: async () => [],
        sliceOf: () => null,
        nameOf: async () => 'main',
      },
    },
  });
  await node.start();
  t.teardown(() => node.stop());
  // Another user of the driver, with the rights of root.
  const outsider = machine.open();
  t.teardown(() => outsider.close());
  const gpu = machine.node.gpus[0]?.uuid ?? '';
  const observed = (pod: EmulatedPod) => node.agent.vgpu.observe().find(({ owner }) => owner.podUid === pod.uid);
  return {
    node,
    made,
    notes,
    machine,
    gpu,
    /** Starts the program of a pod's container in a new group of it; `static`: without the control library. */
    start: (pod: EmulatedPod, given: { readonly slice: string; readonly kind: 'static' | 'linked' }, path?: string) => {
      const group = path ?? made.container(pod.uid).path;
      const environment = tenantEnvironment(machine, { directory: given.slice, gpu: 0 });
      const running = new Hoarder(
        built,
        given.kind === 'linked' ? environment : { ...environment, LD_LIBRARY_PATH: dirname(libraryPath) },
      );
      t.teardown(() => running.kill());
      made.enter(group, running.pid);
      first.set(`${pod.uid}/main`, running.pid);
      return { group, running };
    },
    /** Limits that the driver has for a group, or why not. */
    limitsOf: async (group: string): Promise<GroupMemory> => (await outsider.groupLimiter?.get(gpu, group)) ?? 'none',
    setLimits: async (group: string, limits: GroupLimits): Promise<void> => {
      await outsider.groupLimiter?.set(gpu, group, limits);
    },
    /** The check of `gpu-manager doctor`. */
    doctor: async (): Promise<readonly string[]> => {
      const options = { config: node.config, clock: systemClock, log: silentLog(), groups };
      return (await examineMemoryLimits(options)).map(({ state, what }) => `${state}: ${what}`);
    },
    isEnforced: (pod: EmulatedPod): boolean =>
      observed(pod)?.devices.some((one) => one.memoryByDriver === true) === true,
    findings: (pod: EmulatedPod): readonly string[] =>
      (observed(pod)?.findings ?? []).map(({ code, message }) => `${code}: ${message}`),
  };
}

/** A pod of 30 cores and `blocks` of 256 MiB, and its slice. */
export async function admittedPod(node: SimulatedNode, blocks: number): Promise<{ pod: EmulatedPod; slice: string }> {
  const pod = simplePod(30, blocks);
  return { pod, slice: sliceDirectory(await runPod(node, pod)) };
}
