import { credentials } from '@grpc/grpc-js';
import { podResourcesProto } from '../../rpc/proto.js';
import { callUnary, type CallPatience } from '../../rpc/unary.js';

/** The devices of one container, as socket of the kubelet's pod-resources service lists them. */
export interface ContainerDevices {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Device ids by resource name. */
  readonly devices: ReadonlyMap<string, readonly string[]>;
}

/** Client of the pod-resources service (v1, kubelet 1.20 and later). Lists containers, but no init containers. */
export class PodResourcesClient {
  readonly #client;
  readonly #timeoutMs: number;

  constructor(socketPath: string, options: { readonly timeoutMs?: number } = {}) {
    const { PodResourcesLister } = podResourcesProto().v1;
    this.#client = new PodResourcesLister(`unix:${socketPath}`, credentials.createInsecure(), {
      // 256 MiB: a busy node lists every device id of every pod.
      'grpc.max_receive_message_length': 1 << 28,
      // After a restart of the kubelet, connects again at once, not after the minutes that are usual between machines.
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
        // One entry a NUMA node: the ids of a resource may be spread over several.
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
