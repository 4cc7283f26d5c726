import { credentials, type ClientReadableStream } from '@grpc/grpc-js';
import type { AllocateResponse__Output } from '../../rpc/gen/v1beta1/AllocateResponse.js';
import type { ListAndWatchResponse__Output } from '../../rpc/gen/v1beta1/ListAndWatchResponse.js';
import { devicePluginProto } from '../../rpc/proto.js';
import { callUnary } from '../../rpc/unary.js';

const CALL_TIMEOUT_MS = 30_000;

/** The kubelet's side of one registered plugin: a client of the plugin's socket and the list that the plugin sends. */
export class PluginEndpoint {
  readonly #client;
  readonly #stream: ClientReadableStream<ListAndWatchResponse__Output>;

  /** `authority` is the kubelet's HTTP/2 `:authority`: `localhost` since 1.26, the socket's path before. */
  constructor(
    socketPath: string,
    authority: string,
    onDevices: (devices: ListAndWatchResponse__Output['devices']) => void,
    onEnd: () => void,
  ) {
    const { DevicePlugin } = devicePluginProto().v1beta1;
    this.#client = new DevicePlugin(`unix:${socketPath}`, credentials.createInsecure(), {
      'grpc.default_authority': authority,
      'grpc.max_receive_message_length': 64 * 1024 * 1024,
      'grpc.use_local_subchannel_pool': 1,
    });
    this.#stream = this.#client.ListAndWatch({});
    this.#stream.on('data', (response: ListAndWatchResponse__Output) => onDevices(response.devices));
    this.#stream.on('error', onEnd);
    this.#stream.on('end', onEnd);
  }

  async preferred(
    available: readonly string[],
    mustInclude: readonly string[],
    size: number,
  ): Promise<readonly string[]> {
    const response = await callUnary(
      this.#client,
      'GetPreferredAllocation',
      {
        container_requests: [
          { available_deviceIDs: [...available], must_include_deviceIDs: [...mustInclude], allocation_size: size },
        ],
      },
      CALL_TIMEOUT_MS,
    );
    return response?.container_responses[0]?.deviceIDs ?? [];
  }

  async allocate(ids: readonly string[]): Promise<AllocateResponse__Output> {
    const response = await callUnary(
      this.#client,
      'Allocate',
      { container_requests: [{ devicesIDs: [...ids] }] },
      CALL_TIMEOUT_MS,
    );
    if (response === undefined) throw new Error('Allocate answered nothing');
    return response;
  }

  async preStart(ids: readonly string[]): Promise<void> {
    await callUnary(this.#client, 'PreStartContainer', { devicesIDs: [...ids] }, CALL_TIMEOUT_MS);
  }

  close(): void {
    this.#stream.cancel();
    this.#client.close();
  }
}
