import { join } from 'node:path';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { Gpus, SmGpus } from '../gpus/index.js';
import type { NodeLibraries } from '../libraries/index.js';
import type { Runtimes } from '../runtimes/index.js';
import type { AuditPolicy } from './audit/findings.js';
import type { ContainerKnowledge, ControlGroups } from '../runtimes/index.js';
import type { MemoryEnforcement } from './driver-memory/gpu-enforcement.js';
import { checkpointProgram } from './suspend/checkpoint-program.js';
import type { Evictor, PodLimitAnnotations, SliceNotices } from './ports.js';
import { buildVgpu, type Vgpu } from './vgpu.js';

/** The flags of the agent that concern slices. */
export interface SlicesConfig {
  readonly virtualManagerPath: string;
  readonly usageTmpfs: boolean;
  readonly auditPolicy: AuditPolicy;
  readonly memoryOversubscription: number;
  readonly allowUnenforced: boolean;
  readonly allowSuspend: boolean;
  readonly suspendIdleMs: number | null;
  readonly nativePath: string;
  readonly samplePeriodMs: number;
  readonly lowPriorityFloor?: number;
  /** Absent: auto. */
  readonly memoryEnforcement?: MemoryEnforcement;
  /** GPUs whose multiprocessors containers share; absent: none. */
  readonly smGpus?: SmGpus;
  /** Path of `nvidia-cuda-mps-control`. */
  readonly mpsControlPath?: string;
}

/** Where the driver installs its control program. */
export const MPS_CONTROL = '/usr/bin/nvidia-cuda-mps-control';

export interface SlicesNeeds {
  readonly config: SlicesConfig;
  readonly libraries: Pick<NodeLibraries, 'controlLibraries'>;
  readonly gpus: Pick<Gpus, 'driver' | 'inventory' | 'health'>;
  readonly runtimes: Pick<Runtimes, 'knowledge' | 'announced' | 'groups'>;
  /** The driver's libcuda.so.1; null if this node has none. */
  readonly cudaLibrary: string | null;
  /** Absent: that of `runtimes`. */
  readonly containers?: ContainerKnowledge;
  /** Absent: those of `runtimes`. */
  readonly groups?: ControlGroups;
  readonly pods: PodLimitAnnotations;
  readonly notices: SliceNotices;
  readonly evictor: Evictor;
  readonly clock: Clock;
  readonly log: Log;
}

/** Builds the vGPU manager for the configuration of the agent. */
export async function openSlices(needs: SlicesNeeds): Promise<Vgpu> {
  const { config, libraries, gpus, runtimes, pods, notices, evictor, clock, log } = needs;
  return buildVgpu({
    path: config.virtualManagerPath,
    usageTmpfs: config.usageTmpfs,
    controlLibraries: libraries.controlLibraries,
    knowledge: needs.containers ?? runtimes.knowledge,
    uninjected: (allocation) => runtimes.announced.problemsOf(allocation),
    limitAnnotations: pods,
    notices,
    evictor,
    auditPolicy: config.auditPolicy,
    memoryOversubscription: config.memoryOversubscription,
    allowUnenforced: config.allowUnenforced,
    driverLimits: {
      limiter: gpus.driver.groupLimiter,
      enforcement: config.memoryEnforcement ?? 'auto',
      inventory: () => gpus.health.inventory,
      groups: needs.groups ?? runtimes.groups,
      announced: runtimes.announced,
    },
    mps:
      (config.smGpus ?? 'none') === 'none'
        ? undefined
        : {
            program: config.mpsControlPath ?? MPS_CONTROL,
            events: gpus.driver,
            killedAtMs: (podUid) => pods.killedAtMs?.(podUid) ?? null,
          },
    allowSuspend: config.allowSuspend,
    suspendIdleMs: config.suspendIdleMs,
    checkpoints:
      needs.cudaLibrary === null
        ? null
        : checkpointProgram(join(config.nativePath, 'gpu-checkpoint'), needs.cudaLibrary),
    memoryBytesOf: (gpuUuid) => gpus.health.inventory.gpus.find(({ uuid }) => uuid === gpuUuid)?.memoryBytes ?? null,
    driver: gpus.driver,
    driverVersion: () => gpus.inventory.driverVersion,
    gpus: () => gpus.health.inventory.gpus.map(({ uuid }) => uuid),
    samplePeriodMs: config.samplePeriodMs,
    lowFloor: config.lowPriorityFloor,
    clock,
    log,
  });
}
