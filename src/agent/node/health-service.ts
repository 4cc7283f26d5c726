import { status } from '@grpc/grpc-js';
import type { ClearHealthRequest__Output } from '../../rpc/gen/vgpu/ClearHealthRequest.js';
import type { ListHealthResponse } from '../../rpc/gen/vgpu/ListHealthResponse.js';
import { healthProto } from '../../rpc/proto.js';
import type { RpcService } from '../../rpc/rpc-server.js';
import { RpcRefusal, unary } from '../../rpc/unary.js';
import type { GpuHealthFile, HealthMonitor } from '../gpus/index.js';

/** `vgpu.Health`: every client that can connect may clear a GPU's health, so only root can open its socket. */
export function healthService(monitor: HealthMonitor, file: Pick<GpuHealthFile, 'changes' | 'settle'>): RpcService {
  return {
    get definition() {
      return healthProto().vgpu.Health.service;
    },
    handlers: {
      List: unary(async (): Promise<ListHealthResponse> => ({
        gpus: monitor.inventory.gpus.map(({ index, uuid }) => {
          const { status: state, reason, sinceMs, untilMs } = monitor.health(uuid);
          return {
            index,
            uuid,
            status: state,
            reason: reason ?? '',
            since_ms: String(sinceMs),
            until_ms: String(untilMs ?? 0),
            changes: file.changes(uuid).map((change) => ({
              at_ms: String(change.atMs),
              status: change.status,
              reason: change.reason ?? '',
            })),
          };
        }),
      })),
      Clear: unary(async ({ uuid }: ClearHealthRequest__Output) => {
        if (!monitor.clear(uuid)) throw new RpcRefusal(status.NOT_FOUND, `no GPU ${uuid} on this node`);
        await file.settle();
        return {};
      }),
    },
  };
}
