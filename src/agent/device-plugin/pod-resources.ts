import { credentials } from '@grpc/grpc-js';
import { podResourcesProto } from '../../rpc/proto.js';
import { callUnary, type CallPatience } from '../../rpc/unary.js';

/** The devices of one container, as the socket of the kubelet's pod-resources service lists them. */
export interface ContainerDevices {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Device ids by resource name. */
  readonly devices: ReadonlyMap<string, readonly string[]>;
}

/** Client of the pod-resources service (v1, kubelet 1.20 and later). Its list has no init containers. */
export class PodResourcesClient {
  readonly #client;
  readonly #timeoutMs: number;

  constructor(socketPath: string, options: { readonly timeoutMs?: number } = {}) {
    const { PodResourcesLister } = podResourcesProto().v1;
    this.#client = new PodResourcesLister(`unix:${socketPath}`, credentials.createInsecure(), {
      // 256 MiB: a busy node lists every device id of every pod.
      'grpc.max_receive_message_length': 1 << 28,
      // After a restart of the kubelet the client reconnects at once; gRPC's default waits up to minutes.
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 500,
    });
    this.#timeoutMs = options.timeoutMs ?? 2_000;
  }

  /** Rejects with grpc-js's ServiceError when the kubelet does not answer in time. */
  async list(patience?: CallPatience): Promise<ContainerDevices[]> {
    const response = await callUnary(this.#client, 'List', {}, this.#timeoutMs, patience);
    return (response?.pod_resources ?? []).flatMap((pod) =>
      pod.containers.map((container) => {
        const devices = new Map<string, string[]>();
        // One entry per NUMA node: the ids of a resource may be spread over several entries.
        for (const entry of container.devices) {
          devices.set(entry.resource_name, [...(devices.get(entry.resource_name) ?? []), ...entry.device_ids]);
        }
        return { namespace: pod.namespace, pod: pod.name, container: container.name, devices };
      }),
    );
  }

  close(): void {
    this.#client.close();
  }
}
