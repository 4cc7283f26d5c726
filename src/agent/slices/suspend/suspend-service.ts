import { status } from '@grpc/grpc-js';
import type { SuspendableContainer } from '../../../rpc/gen/vgpu/SuspendableContainer.js';
import type { SuspendRequest__Output } from '../../../rpc/gen/vgpu/SuspendRequest.js';
import type { SuspendResponse } from '../../../rpc/gen/vgpu/SuspendResponse.js';
import { suspendProto } from '../../../rpc/proto.js';
import type { RpcService } from '../../../rpc/rpc-server.js';
import { RpcRefusal, unary } from '../../../rpc/unary.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { Suspended, Suspender } from './suspender.js';
import type { Suspension } from './suspension-file.js';
import { sumOf, type Suspensions } from './suspensions.js';

const CODES = {
  unknown: status.NOT_FOUND,
  impossible: status.FAILED_PRECONDITION,
  failed: status.ABORTED,
  working: status.ABORTED,
  full: status.ABORTED,
} as const;

/** `vgpu.Suspend`: every client that can connect may suspend containers, so only root can open its socket. */
export function suspendService(slices: Slices, suspensions: Suspensions, suspender: Suspender): RpcService {
  return {
    get definition() {
      return suspendProto().vgpu.Suspend.service;
    },
    handlers: {
      List: unary(async () => {
        const containers: SuspendableContainer[] = [];
        for (const slice of slices.started.values())
          containers.push(await describe(slice, suspensions.of(slice.id), suspender));
        return { containers };
      }),
      Suspend: unary(async ({ allocation, held }: SuspendRequest__Output) =>
        respond(await suspender.suspend(allocation, 'operator', held)),
      ),
      Resume: unary(async ({ allocation }: SuspendRequest__Output) => respond(await suspender.resume(allocation))),
    },
  };
}

async function describe(
  { id, spec }: Slice,
  record: Suspension | null,
  suspender: Suspender,
): Promise<SuspendableContainer> {
  const { namespace, pod, container } = spec.owner;
  return {
    allocation: id,
    namespace,
    pod,
    container,
    step: record?.step ?? 'running',
    since_ms: String(record?.sinceMs ?? 0),
    host_bytes: String(sumOf(record?.processes ?? [])),
    obstacles: record === null ? [...(await suspender.obstacles(id))] : [],
    by: record?.by ?? '',
    held: record?.held ?? false,
    wants_since_ms: String(record?.wantsSinceMs ?? 0),
  };
}

function respond(done: Suspended): SuspendResponse {
  if (done.ok) return { bytes: String(done.bytes), processes: done.processes };
  throw new RpcRefusal(CODES[done.code], done.reason);
}
