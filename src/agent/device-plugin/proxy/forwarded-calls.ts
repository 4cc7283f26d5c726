import { credentials, status, type ClientReadableStream, type ServiceError } from '@grpc/grpc-js';
import { markRefusal } from '../../../gpu/refusal-mark.js';
import type { Clock } from '../../../host/clock.js';
import { Listeners } from '../../../host/listeners.js';
import type { AllocateRequest__Output } from '../../../rpc/gen/v1beta1/AllocateRequest.js';
import type { AllocateResponse } from '../../../rpc/gen/v1beta1/AllocateResponse.js';
import type {
  ListAndWatchResponse,
  ListAndWatchResponse__Output,
} from '../../../rpc/gen/v1beta1/ListAndWatchResponse.js';
import type { PreferredAllocationRequest__Output } from '../../../rpc/gen/v1beta1/PreferredAllocationRequest.js';
import type { PreferredAllocationResponse } from '../../../rpc/gen/v1beta1/PreferredAllocationResponse.js';
import type { PreStartContainerRequest__Output } from '../../../rpc/gen/v1beta1/PreStartContainerRequest.js';
import { devicePluginProto } from '../../../rpc/proto.js';
import { callUnary, RpcRefusal } from '../../../rpc/unary.js';
import type { PluginCalls } from '../plugin-calls.js';

type AgentClient = InstanceType<ReturnType<typeof devicePluginProto>['v1beta1']['DevicePlugin']>;
type Method = 'GetPreferredAllocation' | 'Allocate' | 'PreStartContainer';

/** The kubelet sets no deadline. The proxy gives up on an agent that does not answer within this time. */
const CALL_TIMEOUT_MS = 300_000;
/** After a call fails, the time within which its connection must end for the call to count as broken. */
const BREAK_NOTICE_MS = 1_000;
/** Codes of calls whose connection ended. The agent itself answers INTERNAL only for its own errors. */
const BROKEN: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.CANCELLED, status.INTERNAL, status.UNKNOWN]);

const NOT_RUNNING = 'the agent of this node is not running';

/** A registered agent: its socket, and the stream of its device lists. */
interface Connection {
  readonly client: AgentClient;
  readonly stream: ClientReadableStream<ListAndWatchResponse__Output>;
  /** Resolves when the stream has ended. */
  readonly gone: Promise<void>;
}

export interface ForwardedCallsOptions {
  /** After the last agent has ended: how long calls wait for a new agent, and devices still count as healthy. */
  readonly agentTimeoutMs: number;
  readonly clock: Clock;
  /** Called when an agent connects, when it leaves, and when no agent has connected for `agentTimeoutMs`. */
  readonly onAgent?: (state: 'connected' | 'gone' | 'missing') => void;
}

/**
 * The calls for one resource, answered by the agent that registered last. While no agent is connected, the device list
 * stays unchanged and calls wait. Calls that the leaving agent did not answer are repeated at the next agent. After
 * `agentTimeoutMs`, calls are refused and every device is unhealthy until an agent is back.
 */
export class ForwardedCalls implements PluginCalls {
  readonly #options: ForwardedCallsOptions;
  readonly #listeners = new Listeners();
  #connection: Connection | null = null;
  #connections = new Set<Connection>();
  #devices: ListAndWatchResponse__Output['devices'] = [];
  #missing = false;
  #cancelTimeout: () => void = () => undefined;
  #waiting: { readonly resolve: (connection: Connection) => void; readonly reject: (error: Error) => void }[] = [];

  constructor(options: ForwardedCallsOptions) {
    this.#options = options;
  }

  /** Whether an agent has ever sent a device list. */
  get known(): boolean {
    return this.#devices.length > 0;
  }

  /**
   * Connects to an agent's socket. The agent answers calls after it has sent its first list; the previous agent answers
   * until then.
   */
  connect(socketPath: string): void {
    const { DevicePlugin } = devicePluginProto().v1beta1;
    const client = new DevicePlugin(`unix:${socketPath}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': 64 * 1024 * 1024,
      // A new agent listens at the path of the previous one and needs its own connection.
      'grpc.use_local_subchannel_pool': 1,
    });
    const stream = client.ListAndWatch({});
    let leave = (): void => undefined;
    const gone = new Promise<void>((resolve) => (leave = resolve));
    const connection: Connection = { client, stream, gone };
    this.#connections.add(connection);
    stream.on('data', (list: ListAndWatchResponse__Output) => this.#listed(connection, list));
    const ended = (): void => {
      if (!this.#connections.delete(connection)) return;
      leave();
      client.close();
      if (this.#connection === connection) this.#left();
    };
    stream.on('error', ended);
    stream.on('end', ended);
  }

  list(): ListAndWatchResponse {
    if (!this.#missing) return { devices: this.#devices };
    return { devices: this.#devices.map((device) => ({ ...device, health: 'Unhealthy' })) };
  }

  onListChanged(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async preferredAllocation(request: PreferredAllocationRequest__Output): Promise<PreferredAllocationResponse> {
    return (await this.#forward('GetPreferredAllocation', request)) as PreferredAllocationResponse;
  }

  /**
   * Waits like the other calls. A List call to pod-resources meanwhile may make the kubelet offer these ids to the next
   * pod too; the agent recognises such an offer (`agent/allocator/forgotten-allocations.ts`).
   */
  async allocate(request: AllocateRequest__Output): Promise<AllocateResponse> {
    return (await this.#forward('Allocate', request)) as AllocateResponse;
  }

  async preStartContainer(request: PreStartContainerRequest__Output): Promise<object> {
    return (await this.#forward('PreStartContainer', request)) as object;
  }

  /** Ends every connection and refuses the calls that wait. */
  close(): void {
    this.#cancelTimeout();
    for (const { stream, client } of this.#connections) {
      stream.on('error', () => undefined);
      stream.cancel();
      client.close();
    }
    this.#connections.clear();
    this.#connection = null;
    this.#refuseWaiting('the device plugin proxy stops');
  }

  #listed(connection: Connection, { devices }: ListAndWatchResponse__Output): void {
    if (!this.#connections.has(connection)) return;
    this.#devices = devices;
    const changedHands = this.#connection !== connection;
    this.#connection = connection;
    this.#missing = false;
    this.#cancelTimeout();
    if (changedHands) this.#options.onAgent?.('connected');
    for (const { resolve } of this.#waiting.splice(0)) resolve(connection);
    this.#tell();
  }

  #left(): void {
    this.#connection = null;
    this.#options.onAgent?.('gone');
    this.#cancelTimeout = this.#options.clock.after(this.#options.agentTimeoutMs, () => {
      this.#missing = true;
      this.#options.onAgent?.('missing');
      this.#refuseWaiting(NOT_RUNNING);
      this.#tell();
    });
  }

  #tell(): void {
    this.#listeners.emit();
  }

  #refuseWaiting(reason: string): void {
    for (const { reject } of this.#waiting.splice(0)) reject(refusal(reason));
  }

  #agent(): Promise<Connection> {
    if (this.#connection !== null) return Promise.resolve(this.#connection);
    if (this.#missing) return Promise.reject(refusal(NOT_RUNNING));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  async #forward(method: Method, request: object): Promise<unknown> {
    for (;;) {
      const connection = await this.#agent();
      try {
        return await this.#call(connection, method, request);
      } catch (error) {
        if (!(await this.#hasBroken(connection, error))) throw error;
      }
    }
  }

  async #call({ client }: Connection, method: Method, request: object): Promise<unknown> {
    try {
      return await callUnary(client, method, request as never, CALL_TIMEOUT_MS);
    } catch (error) {
      const { code, details } = error as ServiceError;
      throw new RpcRefusal(code, details);
    }
  }

  /** Whether a call failed because its connection ended. */
  async #hasBroken({ gone }: Connection, error: unknown): Promise<boolean> {
    if (!BROKEN.has((error as RpcRefusal).code)) return false;
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(BREAK_NOTICE_MS, () => resolve(false));
      void gone.then(() => {
        cancel();
        resolve(true);
      });
    });
  }
}

function refusal(reason: string): RpcRefusal {
  return new RpcRefusal(status.UNAVAILABLE, markRefusal(reason));
}
