import { status } from '@grpc/grpc-js';
import type { LimitRequest } from './live-limits.js';
import type { ContainerLimits } from '../../../rpc/gen/vgpu/ContainerLimits.js';
import type { ReleaseLimitsRequest__Output } from '../../../rpc/gen/vgpu/ReleaseLimitsRequest.js';
import type { SetLimitsRequest__Output } from '../../../rpc/gen/vgpu/SetLimitsRequest.js';
import type { SetLimitsResponse } from '../../../rpc/gen/vgpu/SetLimitsResponse.js';
import { limitsProto } from '../../../rpc/proto.js';
import type { RpcService } from '../../../rpc/rpc-server.js';
import { RpcRefusal, unary } from '../../../rpc/unary.js';
import type { SliceObservation } from '../observation.js';
import type { OperatorLimits } from './operator-limits.js';
import type { ChangedLimits, RunningLimits } from './running-limits.js';
import type { Slices } from '../slices.js';

export interface LimitsServiceOptions {
  readonly slices: Slices;
  readonly operator: OperatorLimits;
  readonly runningLimits: RunningLimits;
  readonly observe: () => readonly SliceObservation[];
}

/** `vgpu.Limits`: every client that can connect may change limits, so only root can open its socket. */
export function limitsService(options: LimitsServiceOptions): RpcService {
  const { runningLimits } = options;
  return {
    get definition() {
      return limitsProto().vgpu.Limits.service;
    },
    handlers: {
      List: unary(async () => ({ containers: options.observe().map((slice) => containerLimits(slice, options)) })),
      Set: unary(async (request: SetLimitsRequest__Output) =>
        respond(await runningLimits.ask(request.allocation, requestOf(request))),
      ),
      Release: unary(async (request: ReleaseLimitsRequest__Output) =>
        respond(await runningLimits.release(request.allocation)),
      ),
    },
  };
}

function requestOf(request: SetLimitsRequest__Output): LimitRequest {
  const memoryBytes = Number(request.memory_bytes);
  if (!Number.isSafeInteger(memoryBytes))
    throw new RpcRefusal(
      status.INVALID_ARGUMENT,
      `${request.memory_bytes} bytes are more than any GPU has; give at most the memory of the container's GPUs`,
    );
  for (const cores of [request.share, request.soft_limit]) {
    if (cores > 100)
      throw new RpcRefusal(status.INVALID_ARGUMENT, `${cores} cores are more than one GPU, which has 100`);
  }
  return { memoryBytes: memoryBytes || null, share: request.share || null, softLimit: request.soft_limit || null };
}

function respond(changed: ChangedLimits): SetLimitsResponse {
  if (changed.ok) return { notes: [...changed.notes] };
  throw new RpcRefusal(changed.code === 'unknown' ? status.NOT_FOUND : status.FAILED_PRECONDITION, changed.reason);
}

function containerLimits(slice: SliceObservation, { slices, operator }: LimitsServiceOptions): ContainerLimits {
  const started = slices.started.get(slice.allocation);
  return {
    allocation: slice.allocation,
    pod_uid: slice.owner.podUid,
    namespace: slice.owner.namespace,
    pod: slice.owner.pod,
    container: slice.owner.container,
    set_by_operator: operator.get(slice.allocation) !== null,
    unenforced: slice.unenforced,
    devices: slice.devices.map((device) => {
      const index = started?.spec.devices.findIndex(({ uuid }) => uuid === device.gpuUuid) ?? -1;
      const given = started?.spec.devices[index];
      return {
        gpu_uuid: device.gpuUuid,
        memory_bytes: String(device.memoryLimitBytes ?? 0),
        allocated_memory_bytes: String(given?.memoryBytes ?? 0),
        share: device.share,
        allocated_share: given?.share ?? device.share,
        soft_limit: device.softLimit ?? 0,
        used_memory_bytes: String(device.usedMemoryBytes),
        used_percent: device.usedPercent,
        generation: started?.limits.live[index]?.generation ?? 0,
      };
    }),
  };
}
