import { test, type Test } from 'tap';
import type { SliceObservation } from '../../src/agent/slices/observation.js';
import type { SliceNote } from '../../src/agent/slices/ports.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { silentLog } from '../../src/host/log.js';
import { libraryPath, notBuilt, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { eventually, until } from '../harness/eventually.js';
import { buildProgram, tenantEnvironment, TenantProcess, tenantSkipReason } from '../harness/gpu-machine/tenant.js';
import { scratchDirectory } from '../scratch.js';
import { cards } from './gpus.js';
import { gpuIndexes, limitsOf, runPod, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';

const skip = notBuilt || tenantSkipReason;
const MACHINE = new SimulatedMachine(cards(8));
const MIB = 2 ** 20;
const BLOCK = 256 * MIB;
/** The memory of a context on a simulated GPU. */
const CONTEXT = 256 * MIB;
const PATIENCE_MS = 60_000;

interface Container {
  readonly pod: EmulatedPod;
  readonly given: GivenContainer;
  readonly gpu: number;
  /** Starts a process in the container. */
  readonly start: () => TenantProcess;
  /** The usage of the container that the agent reports now. */
  readonly seen: () => SliceObservation | undefined;
}

async function loadedNode(t: Test) {
  const directory = await scratchDirectory(t);
  const program = buildProgram('test/harness/gpu-machine/tenant.c', directory, 'tenant');
  const notes: SliceNote[] = [];
  const node = new SimulatedNode({
    directory,
    gpus: cards(8),
    log: silentLog(),
    knowsPods: true,
    seams: { sliceNotices: { note: (_owner, note) => void notes.push(note) } },
    config: { simStatePath: MACHINE.statePath, simNodePath: MACHINE.nodePath, nvmlPath: libraryPath },
  });
  await node.start();
  t.teardown(() => node.stop());
  return {
    node,
    notes,
    /** Runs a pod whose processes hold memory and launch kernels of so many microseconds. */
    async run(pod: EmulatedPod, holdMib: number, kernelUs: number): Promise<Container> {
      const given = await runPod(node, pod);
      const [gpu = 0] = gpuIndexes(given);
      const start = (): TenantProcess => {
        const tenant = new TenantProcess(
          program,
          [String(holdMib), String(kernelUs)],
          tenantEnvironment(MACHINE, { directory: sliceDirectory(given), gpu }),
        );
        t.teardown(() => tenant.kill());
        return tenant;
      };
      const seen = (): SliceObservation | undefined =>
        node.agent.vgpu.observe().find(({ owner }) => owner.podUid === pod.uid);
      return { pod, given, gpu, start, seen };
    },
  };
}

test(
  '64 containers on 8 GPUs are found on their GPU, resized while they run, and known to the next agent',
  { skip },
  async (t) => {
    const { node, notes, ...loaded } = await loadedNode(t);
    const containers = await Promise.all(Array.from({ length: 64 }, () => loaded.run(simplePod(12, 4), 64, 2_000)));
    const tenants = containers.map(({ start }) => start());
    // Each observation reads a file for every container: a loop that is busy with them answers no driver call.
    const everyone = (holds: (slice: SliceObservation, at: number) => boolean) => (): boolean => {
      const slices = new Map(node.agent.vgpu.observe().map((slice) => [slice.owner.podUid, slice]));
      return containers.every(({ pod }, at) => {
        const slice = slices.get(pod.uid);
        return slice !== undefined && holds(slice, at);
      });
    };
    const isSeen = (slice: SliceObservation, at: number): boolean => {
      const [device] = slice.devices;
      const isUsed =
        device !== undefined &&
        device.usedMemoryBytes >= CONTEXT + 64 * MIB &&
        device.driverOverheadBytes > 0 &&
        device.counters.launches > 0;
      return isUsed && slice.processes === 1 && device.pids.join() === String(tenants[at]?.pid);
    };
    await until('the sight of every container', everyone(isSeen));
    t.same([...new Set(containers.map(({ gpu }) => gpu))].sort(), [0, 1, 2, 3, 4, 5, 6, 7]);
    t.ok(
      node.agent.vgpu
        .observeGpus()
        .every(({ containers: count, presentContainers }) => count === 8 && presentContainers === 8),
    );

    for (const { pod } of containers.slice(0, 32))
      node.kubelet.annotate(pod.uid, { 'tencent.com/vcuda-share-limit': '6', 'tencent.com/vcuda-memory-limit': '2' });
    const [, outgrown] = containers.slice(-2);
    node.kubelet.annotate(outgrown?.pod.uid ?? '', { 'tencent.com/vcuda-memory-limit': '1' });
    const limits = async () =>
      (await Promise.all(containers.map(({ given }) => limitsOf(given)))).map(({ devices }) => devices[0]);
    const resized = await limits();
    t.ok(
      resized.slice(0, 32).every((live) => live?.share === 6 && live.memoryBytes === 2 * BLOCK),
      'the resized containers have less memory',
    );
    t.ok(
      resized.slice(32).every((live) => live?.share === 12 && live.memoryBytes === 4 * BLOCK),
      'all other containers are unchanged',
    );
    t.match(
      notes.filter(({ type }) => type === 'Warning'),
      [{ reason: 'GPULimitRefused', message: /a memory limit of 256 MiB is not set, \d+ MiB are in use/ }],
    );

    await node.stopAgent();
    await node.startAgent();
    await until('every process to greet the next agent', everyone(isSeen));
    t.ok(
      tenants.every(({ alive }) => alive),
      'no process noticed the restart',
    );
    t.same(
      (await limits()).map((live) => [live?.share, live?.memoryBytes]),
      resized.map((live) => [live?.share, live?.memoryBytes]),
    );

    await Promise.all(tenants.map((tenant) => tenant.kill()));
    await until(
      'the end of every process',
      everyone(({ processes, devices }) => processes === 0 && devices[0]?.pids.length === 0),
    );
  },
);

test('memory and tokens of killed processes are free for the next one and for a lower limit', { skip }, async (t) => {
  const { node, ...loaded } = await loadedNode(t);
  // Each process takes a context of 256 MiB besides.
  const container = await loaded.run(simplePod(10, 4), 384, 20_000);
  const holds = (tenant: TenantProcess): boolean => tenant.output.includes('holds\n');
  const has = container.start();
  await eventually(() => holds(has), 'the first process to have its memory');
  // Not before: of two that allocate in turns, each would keep half of it and wait for the other.
  const waits = container.start();
  await eventually(() => has.output.includes('launched'), 'a launch', PATIENCE_MS);
  t.notOk(holds(waits), 'both processes do not fit');
  await has.kill();
  await eventually(() => waits.output.includes('launched'), 'the other one to have memory and tokens', PATIENCE_MS);
  t.match(container.seen()?.devices[0]?.counters, { reclaimedBytes: 640 * MIB });

  const limitBytes = async () => (await limitsOf(container.given)).devices[0]?.memoryBytes;
  node.kubelet.annotate(container.pod.uid, { 'tencent.com/vcuda-memory-limit': '2' });
  t.equal(await limitBytes(), 4 * BLOCK, '640 MiB are in use');
  await waits.kill();
  await eventually(
    async () => {
      node.kubelet.annotate(container.pod.uid, { 'tencent.com/vcuda-memory-limit': '1' });
      return (await limitBytes()) === BLOCK;
    },
    "the memory of the dead to be nobody's",
    PATIENCE_MS,
  );
});
