import { join } from 'node:path';
import type { AnnouncedContainers, ContainerKnowledge, ControlGroups } from '../runtimes/index.js';
import type { LegacyStore, SliceLimits, SliceStore, Evictor, SliceNote } from './ports.js';
import type { Driver, GpuSource, GroupLimiter, Inventory } from '../gpus/index.js';
import type { AuditPolicy } from './audit/findings.js';
import type { LegacyHolding } from '../../gpu/ledger/legacy-holding.js';
import { ENFORCEMENT_KEY } from '../../gpu/annotations.js';
import { MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import type { DeviceLimit } from '../../abi/limits-file.js';
import { ACTIVITY_FILE, USAGE_FILE } from '../../abi/vgpu-abi.js';
import { freeBytes } from '../../host/free-bytes.js';
import type { Log } from '../../host/log.js';
import { Auditor, type AuditCounts } from './audit/auditor.js';
import { AttachedSharing } from './attached-sharing.js';
import { DriverMemory, type DriverMemoryOptions } from './driver-memory/driver-memory.js';
import {
  GpuEnforcement,
  NOT_IN_DRIVER,
  type MemoryEnforcement,
  type MemoryEnforcer,
} from './driver-memory/gpu-enforcement.js';
import { SliceGroups } from './driver-memory/slice-groups.js';
import { LegacyPods, type LegacyContainer } from './compat/legacy-pods.js';
import { LimitPolicy } from './limits/limit-policy.js';
import { limitsService } from './limits/limits-service.js';
import { MpsControl, type MpsLimits } from './mps/mps-control.js';
import { MpsSharing, smGpuOf } from './mps/mps-sharing.js';
import { Monitor } from './steering/monitor.js';
import {
  observeGpus,
  observeProcesses,
  observeSlices,
  observeUse,
  type GpuObservation,
  type SliceObservation,
  type UseObservation,
} from './observation.js';
import { OperatorLimits } from './limits/operator-limits.js';
import { MappedLibraries } from './audit/mapped-libraries.js';
import { PrecedenceKeeper } from './steering/precedence-keeper.js';
import { ProcessOwners } from './process-owners.js';
import { REGISTRATION_PACE, RegistrationPace } from './compat/registration-pace.js';
import { RunningLimits } from './limits/running-limits.js';
import { openSuspending, type SuspendingOptions } from './suspend/open-suspending.js';
import { Suspensions } from './suspend/suspensions.js';
import { UsageTmpfs } from './usage/usage-tmpfs.js';
import { SliceDirectories } from './slice-directory.js';
import type { Slice, SliceSpec } from './slice.js';
import { Slices } from './slices.js';
import type { RpcService } from '../../rpc/rpc-server.js';
import type { Part } from '../../host/lifecycle.js';

/** Directory in `--virtual-manager-path`, beside the allocations. */
const TMPFS_DIRECTORY = '.usage';
const ACTIVITY_TMPFS_DIRECTORY = '.activity';
const MPS_DIRECTORY = '.mps';

/** The event for the pod's owner when a container starts without limits. */
const UNENFORCED: SliceNote = {
  type: 'Normal',
  reason: 'GPUUnenforced',
  message: `the limits are not enforced, as ${ENFORCEMENT_KEY} requests; the audit compares use with the allocation`,
};

export interface DriverLimitsNeeds {
  /** Null if no driver of this kind keeps memory limits. */
  readonly limiter: GroupLimiter | null;
  /** `--memory-enforcement`. */
  readonly enforcement: MemoryEnforcement;
  readonly inventory: () => Inventory;
  readonly groups: ControlGroups;
  readonly announced: Pick<AnnouncedContainers, 'pathsOf'>;
}

export interface MpsNeeds {
  /** `--mps-control`. */
  readonly program: string;
  /** The GPU driver's events. */
  readonly events: Pick<Driver, 'subscribe'>;
  /** When the containers of a pod are killed at last; null while it is not being deleted. */
  readonly killedAtMs: (podUid: string) => number | null;
}

export interface VgpuOptions extends SuspendingOptions {
  readonly evictor: Evictor;
  readonly auditPolicy: AuditPolicy;
  /** `--memory-oversubscription`; absent: none. */
  readonly memoryOversubscription?: number;
  /** `--allow-unenforced`; absent: no. */
  readonly allowUnenforced?: boolean;
  /** `--virtual-manager-path`. */
  readonly path: string;
  readonly usageTmpfs?: boolean;
  /** The control libraries that containers of this node have. */
  readonly controlLibraries?: () => readonly string[];
  readonly knowledge: ContainerKnowledge;
  /** Settings in the containers of a slice that prevent the control library from loading. */
  readonly uninjected?: (allocation: string) => readonly string[];
  readonly driver: GpuSource;
  /** Memory limits in the driver; absent: none. */
  readonly driverLimits?: DriverLimitsNeeds;
  /** Shares of multiprocessors, on GPUs that are shared so; absent: there are none. */
  readonly mps?: MpsNeeds;
  /** UUIDs of the present GPUs of this node. */
  readonly gpus: () => readonly string[];
  /** `--low-priority-floor`. */
  readonly lowFloor?: number;
  readonly samplePeriodMs: number;
  readonly log: Log;
}

/** The parts of the vGPU manager. */
export interface Vgpu {
  readonly slices: Slices;
  /** The slices in the form that the allocator uses. */
  readonly store: SliceStore;
  /** Pods of the original's plugin in the form that the allocator uses. */
  readonly legacy: LegacyStore;
  /** Observations of the containers, for the display and metrics. */
  observe(): readonly SliceObservation[];
  /** A small part of `observe`, at almost no cost. */
  observeUse(): readonly UseObservation[];
  /** Observations of the GPUs, and of the success of their samples. */
  observeGpus(): readonly GpuObservation[];
  /** The processes of a slice on each of its GPUs. */
  observeProcesses(allocation: string): ReturnType<typeof observeProcesses>;
  /** Samples the processes of a slice at once. */
  sampleNow(allocation: string): void;
  auditCounts(): AuditCounts;
  /** Number of foreign processes on each GPU, by UUID. */
  foreignProcessCounts(): ReadonlyMap<string, number>;
  /** Each slice belongs to one container until `attach` is called, which must happen before the start. */
  readonly sharing: AttachedSharing;
  /** What enforces memory limits on a GPU. */
  memoryEnforcer(gpuUuid: string): MemoryEnforcer;
  /** Whether another program changes memory limits of slices in the driver again and again. */
  hasLimitDispute(): boolean;
  /** Sets memory limits in the driver before the program of a container starts. */
  readonly startGate: { isNeeded(): boolean; pass(allocation: string): Promise<void> };
  /** Whether processes have greeted in a slice. */
  isInUse(allocation: string): boolean;
  /** Present limits of a slice on one GPU; null while it is not open. */
  liveLimit(allocation: string, gpuUuid: string): DeviceLimit | null;
  /** For operators on this node: limits, and suspension. */
  readonly services: readonly RpcService[];
  readonly part: Part;
}

export function buildVgpu(options: VgpuOptions): Vgpu {
  const sharing = new AttachedSharing();
  const tmpfs = options.usageTmpfs === true ? openTmpfs(options) : null;
  const directories = new SliceDirectories(
    options.path,
    tmpfs,
    tmpfs === null ? null : join(options.path, ACTIVITY_TMPFS_DIRECTORY),
  );
  const operator = new OperatorLimits(directories, options.log);
  const policy = new LimitPolicy(options.limitAnnotations, operator, options, sharing);
  const pace = new RegistrationPace(options.clock, REGISTRATION_PACE);
  const slices = new Slices({ ...options, directories, policy, pace });
  const legacyPods = new LegacyPods({ ...options, pace });
  const suspensions = new Suspensions(directories);
  const suspendedBytes = (allocation: string): number | null => suspensions.bytesOf(allocation);
  const driverMemory = openDriverMemory(options, { slices, policy, suspendedBytes });
  const followLimits = (slice: Slice): void => driverMemory?.follow(slice);
  const runningLimits = new RunningLimits({
    ...options,
    sharing,
    slices,
    policy,
    operator,
    suspendedBytes,
    onChanged: followLimits,
  });
  const precedence = new PrecedenceKeeper({ ...options, slices, activity: directories.activity });
  const owners = new ProcessOwners(
    slices,
    options.knowledge,
    (spec) => policy.usersOf(spec),
    () => legacyPods.containers,
    (allocation, pid) => driverMemory?.seen(allocation, pid),
  );
  const monitor = new Monitor({
    slices,
    owners,
    source: options.driver,
    gpus: options.gpus,
    clock: options.clock,
    log: options.log,
    sampleMs: options.samplePeriodMs,
    onSample: (gpu) => auditor.sampled(gpu),
  });
  const auditor = new Auditor({
    ...options,
    slices,
    usageBounded: directories.bounded,
    freeBytes: () => freeBytes(directories.activity.root ?? options.path),
    libraries: new MappedLibraries(options.controlLibraries ?? (() => []), options.clock),
    owners,
    gpus: () => monitor.gpus,
    limitChanged: (allocation) => driverMemory?.changed(allocation) ?? null,
    outsideNamespace: (allocation) => mps?.bypassOf(allocation) ?? null,
    policy: options.auditPolicy,
  });
  const mps = openMps(options, {
    slices,
    owners,
    limitsOf: ({ spec }) => mpsLimitsOf(policy.shareOf(spec)),
    onBypass: (slice) => auditor.auditNow(slice),
  });
  const suspending = openSuspending(options, {
    ...{ slices, suspensions, owners },
    source: options.driver,
    usersOf: (spec) => policy.usersOf(spec),
    observeUse: () => observeUse(slices, monitor.gpus),
  });
  suspensions.onStep((allocation) => {
    const slice = slices.started.get(allocation);
    if (slice !== undefined) followLimits(slice);
  });
  const observe = (): readonly SliceObservation[] =>
    observeSlices(
      slices,
      monitor.gpus,
      (allocation) => auditor.findings(allocation),
      (slice, gpuUuid) => driverMemory?.enforces(slice, gpuUuid) === true,
      (allocation) => suspensions.of(allocation),
      (slice) => (smGpuOf(slice) === null ? null : policy.shareOf(slice.spec).share),
    );
  // Annotations may have changed while the slice was opened.
  const resize = (allocation: string): void => {
    const slice = slices.started.get(allocation);
    if (slice !== undefined) runningLimits.reconsider(slice);
  };
  return {
    slices,
    store: {
      writableFiles: [USAGE_FILE, ACTIVITY_FILE],
      directoryOf: (id) => directories.pathOf(id),
      mpsFolderOf: (id, gpuUuid) => mps?.folderOf(id, gpuUuid) ?? null,
      prepare: (id, fresh) => slices.prepare(id, fresh),
      async start(limits) {
        await suspensions.forget(limits.allocation);
        await slices.start(specOf(limits));
        const slice = slices.started.get(limits.allocation);
        if (slice !== undefined) await suspending.begin(slice);
        resize(limits.allocation);
        await driverMemory?.expect(limits.allocation);
        if (slice !== undefined) await mps?.prepare(slice);
        if (slice?.unenforced === true) options.notices.note(limits.owner, UNENFORCED);
      },
      async restore(limits) {
        await slices.restore(specOf(limits));
        resize(limits.allocation);
        void driverMemory?.expect(limits.allocation);
        await suspending.restore(limits.allocation);
      },
      correct(limits) {
        slices.correct(specOf(limits));
        resize(limits.allocation);
      },
      resize(limits) {
        const slice = slices.started.get(limits.allocation);
        const inUse = slice === undefined ? null : runningLimits.inUseBeyond(slice, specOf(limits).devices);
        if (inUse !== null) return inUse;
        slices.correct(specOf(limits));
        resize(limits.allocation);
        return null;
      },
      async remove(id) {
        const slice = slices.started.get(id);
        const smGpu = slice === undefined ? null : smGpuOf(slice);
        await suspensions.forget(id);
        await slices.remove(id);
        if (smGpu !== null) await mps?.remove(id, smGpu);
      },
      list: () => slices.list(),
    },
    legacy: {
      open: (holdings) => legacyPods.open(holdings.map(legacyContainer)),
      keepOnly: (holdings) => legacyPods.keepOnly(new Set(holdings.map(({ container }) => container.podUid))),
    },
    observe,
    observeUse: () => observeUse(slices, monitor.gpus),
    observeGpus: () => observeGpus(monitor.gpus),
    observeProcesses: (allocation) => observeProcesses(allocation, monitor.gpus),
    sampleNow: (allocation) => monitor.sampleNow(allocation),
    auditCounts: () => auditor.counts,
    foreignProcessCounts: () =>
      new Map(
        monitor.gpus.map(({ uuid, state }) => [
          uuid,
          (state?.foreignProcesses.length ?? 0) - (state?.processesOfOtherGpus.length ?? 0),
        ]),
      ),
    sharing,
    memoryEnforcer: (gpuUuid) => driverMemory?.of(gpuUuid) ?? NOT_IN_DRIVER,
    hasLimitDispute: () => driverMemory?.hasDispute === true,
    startGate: {
      isNeeded: () => driverMemory?.isUsed === true,
      pass: async (allocation) => driverMemory?.starting(allocation),
    },
    isInUse: (allocation) => (slices.started.get(allocation)?.sessions.size ?? 0) > 0,
    liveLimit(allocation, gpuUuid) {
      const open = slices.started.get(allocation);
      const at = open?.spec.devices.findIndex(({ uuid }) => uuid === gpuUuid) ?? -1;
      return open?.limits.live[at] ?? null;
    },
    services: [limitsService({ slices, operator, runningLimits, observe }), suspending.service],
    part: {
      name: 'vgpu',
      async start() {
        await slices.open();
        await driverMemory?.start();
        runningLimits.start();
        precedence.start();
        monitor.start();
        auditor.start();
        mps?.start();
        suspending.start();
      },
      async stop() {
        suspending.stop();
        await mps?.stop();
        auditor.stop();
        monitor.stop();
        await runningLimits.stop();
        await driverMemory?.stop();
        await precedence.stop();
        await legacyPods.close();
        await slices.close();
      },
    },
  };
}

function openDriverMemory(
  options: VgpuOptions,
  {
    slices,
    policy,
    suspendedBytes,
  }: Pick<DriverMemoryOptions, 'suspendedBytes'> & { slices: Slices; policy: LimitPolicy },
): DriverMemory | null {
  const { driverLimits } = options;
  if (driverLimits === undefined) return null;
  return new DriverMemory({
    ...options,
    limiter: driverLimits.limiter,
    enforcement: new GpuEnforcement(driverLimits),
    groups: new SliceGroups({ ...driverLimits, usersOf: ({ spec }) => policy.usersOf(spec) }),
    slices,
    suspendedBytes,
  });
}

function openMps(
  options: VgpuOptions,
  needs: Pick<ConstructorParameters<typeof MpsSharing>[0], 'slices' | 'owners' | 'limitsOf' | 'onBypass'>,
): MpsSharing | null {
  const { mps, driver, path } = options;
  if (mps === undefined) return null;
  const control = new MpsControl(mps.program, join(path, MPS_DIRECTORY));
  return new MpsSharing({ ...options, ...mps, ...needs, control, source: driver });
}

function mpsLimitsOf({ share, priority }: Pick<DeviceLimit, 'share' | 'priority'>): MpsLimits {
  return { percentage: Math.max(1, Math.min(100, share)), priority: priority === 'low' ? 1 : 0 };
}

/** The file systems for usage files; null, with the reason in the log, if they do not work here. */
function openTmpfs({ path, log }: VgpuOptions): UsageTmpfs | null {
  const tmpfs = new UsageTmpfs(join(path, TMPFS_DIRECTORY));
  const problem = tmpfs.problem();
  if (problem === null) return tmpfs;
  log.warn({ problem }, '--usage-tmpfs does not work here; usage files stay on the disk and are cut when they grow');
  return null;
}

function legacyContainer(holding: LegacyHolding): LegacyContainer {
  const { container, cores, memoryBlocks } = holding;
  return {
    podUid: container.podUid,
    container: container.container,
    cores,
    memoryBytes: memoryBlocks * MEMORY_BLOCK_BYTES,
    gpuUuids: holding.gpusKnown ? holding.parts.map(({ gpuUuid }) => gpuUuid) : null,
  };
}

function specOf(limits: SliceLimits): SliceSpec {
  return {
    allocation: limits.allocation,
    owner: limits.owner,
    takesTurns: limits.takesTurns,
    devices: limits.devices.map(({ gpu, memoryBytes, share, softLimit, priority }) => ({
      uuid: gpu.uuid,
      ...(gpu.compute === undefined ? {} : { compute: gpu.compute }),
      pciBusId: gpu.pciBusId,
      memoryBytes,
      share,
      softLimit,
      priority,
    })),
  };
}
