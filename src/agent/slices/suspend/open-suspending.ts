import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import type { RpcService } from '../../../rpc/rpc-server.js';
import type { GpuSource } from '../../gpus/index.js';
import type { UseObservation } from '../observation.js';
import type { PodLimitAnnotations, SliceNotices } from '../ports.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { Checkpoints } from './checkpoint-program.js';
import { ContainerProcesses } from './container-processes.js';
import { IdleWatch } from './idle-watch.js';
import { PodRequests } from './pod-requests.js';
import { SuspendNotes } from './suspend-notes.js';
import { suspendService } from './suspend-service.js';
import { Suspender } from './suspender.js';
import type { Suspensions } from './suspensions.js';
import { TurnGpus } from './turn-gpus.js';
import { TurnKeeper } from './turn-keeper.js';
import { WakeWatch } from './wake-watch.js';

export interface SuspendingOptions {
  /** `--allow-suspend`; absent: no. */
  readonly allowSuspend?: boolean;
  /** `--suspend-idle`; absent or null: containers are suspended only on request. */
  readonly suspendIdleMs?: number | null;
  /** The driver's checkpoint interface; absent: this node has none. */
  readonly checkpoints?: Checkpoints | null;
  /** All memory of a GPU; null for a GPU that is not on this node. */
  readonly memoryBytesOf?: (gpuUuid: string) => number | null;
  readonly driverVersion: () => string | null;
  readonly limitAnnotations: PodLimitAnnotations;
  readonly notices: SliceNotices;
  readonly clock: Clock;
  readonly log: Log;
}

export interface SuspendingNeeds {
  readonly slices: Slices;
  readonly suspensions: Suspensions;
  readonly source: GpuSource;
  readonly owners: ProcessOwners;
  readonly usersOf: ProcessOwners['usersOf'];
  readonly observeUse: () => readonly UseObservation[];
}

/** Everything that suspends and resumes containers: on request, when idle, on demand, and by turns. */
export interface Suspending {
  readonly service: RpcService;
  /** A container begins in this slice. */
  begin(slice: Slice): Promise<void>;
  /** The agent has found a slice that an earlier agent may have suspended. */
  restore(allocation: string): Promise<void>;
  start(): void;
  stop(): void;
}

export function openSuspending(options: SuspendingOptions, needs: SuspendingNeeds): Suspending {
  const { allowSuspend = false, suspendIdleMs = null, checkpoints = null, memoryBytesOf = () => null } = options;
  const { slices, suspensions, source, owners, usersOf, observeUse } = needs;
  const { notices, limitAnnotations, clock, log } = options;
  const nowNs = (): bigint => process.hrtime.bigint();
  const processes = new ContainerProcesses({ ...options, owners, source });
  const suspender = new Suspender({
    ...{ allowed: allowSuspend, checkpoints, memoryBytesOf, source, usersOf },
    ...{ slices, suspensions, processes, notices, clock, log },
  });
  const notes = new SuspendNotes(usersOf, notices, log);
  const common = { slices, suspensions, suspender, usersOf, limitAnnotations, notes, observeUse, nowNs, clock, log };
  const gpus = new TurnGpus({ ...common, memoryBytesOf });
  const turns = new TurnKeeper({
    gpus: () => gpus.waiting(),
    suspend: (id) => gpus.suspend(id),
    resume: (id) => gpus.resume(id),
    clock,
    log,
  });
  const wakeWatch = new WakeWatch({ ...common, takesTurns: (slice) => gpus.decides(slice) });
  const podRequests = new PodRequests(common);
  const idleWatch = new IdleWatch({ ...common, suspendIdleMs });
  // No timer runs on nodes where containers take no turns.
  const keepTurns = (slice: Slice): void => {
    if (gpus.decides(slice)) turns.start();
  };
  return {
    service: suspendService(slices, suspensions, suspender),
    async begin(slice) {
      gpus.begin(slice);
      keepTurns(slice);
      await podRequests.begin(slice);
    },
    async restore(allocation) {
      await suspender.recover(allocation);
      const slice = slices.started.get(allocation);
      if (slice === undefined) return;
      gpus.restore(slice);
      keepTurns(slice);
      podRequests.reconsider(slice);
    },
    start() {
      wakeWatch.start();
      podRequests.start();
      if (allowSuspend) idleWatch.start();
    },
    stop() {
      idleWatch.stop();
      podRequests.stop();
      turns.stop();
      wakeWatch.stop();
      suspender.stop();
    },
  };
}
