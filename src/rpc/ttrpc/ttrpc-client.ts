import { status } from '@grpc/grpc-js';
import type { Clock } from '../../host/clock.js';
import { ttrpcProto } from '../proto.js';
import { RpcRefusal } from '../unary.js';
import { encodeMessage, MESSAGE_TYPE, MessageReader, type TtrpcMessage } from './message.js';

/** Answers to a client are short, and this limits the memory that a peer can use. */
const ANSWER_LIMIT_BYTES = 1024 * 1024;

const OK: number = status.OK;

/** The fields of a loaded protocol's method that a client needs. */
export interface ClientMethod<Request, Response> {
  /** `/package.Service/Method`. */
  readonly path: string;
  requestSerialize(request: Request): Buffer;
  responseDeserialize(bytes: Buffer): Response;
}

interface Waiting {
  readonly answer: (payload: Buffer) => void;
  readonly fail: (error: RpcRefusal) => void;
}

/**
 * Calls methods without streams on one ttrpc connection. Pure apart from `write` and the clock. Every call settles:
 * with the answer, or rejecting with an RpcRefusal when it is refused, late, or the connection is closed.
 */
export class TtrpcClient {
  readonly #write: (message: Buffer) => void;
  readonly #clock: Clock;
  readonly #reader = new MessageReader(ANSWER_LIMIT_BYTES);
  readonly #waiting = new Map<number, Waiting>();
  #nextStream = 1;
  #closed = false;

  /** `write` sends one whole message. */
  constructor(write: (message: Buffer) => void, clock: Clock) {
    this.#write = write;
    this.#clock = clock;
  }

  call<Request, Response>(
    method: ClientMethod<Request, Response>,
    request: Request,
    timeoutMs: number,
  ): Promise<Response> {
    if (this.#closed) return Promise.reject(new RpcRefusal(status.UNAVAILABLE, 'the connection is closed'));
    const [, service, name] = method.path.split('/');
    const streamId = this.#nextStream;
    this.#nextStream += 2;
    const payload = ttrpcProto().ttrpc.Request.serialize({
      service,
      method: name,
      payload: method.requestSerialize(request),
      timeout_nano: String(timeoutMs * 1e6),
    });
    return new Promise<Response>((resolve, reject) => {
      const cancel = this.#clock.after(timeoutMs, () =>
        this.#settle(streamId, ({ fail }) =>
          fail(new RpcRefusal(status.DEADLINE_EXCEEDED, `no answer to ${name} within ${timeoutMs} ms`)),
        ),
      );
      this.#waiting.set(streamId, {
        answer: (bytes) => {
          cancel();
          try {
            resolve(method.responseDeserialize(bytes));
          } catch {
            reject(new RpcRefusal(status.INTERNAL, `the answer to ${name} cannot be read`));
          }
        },
        fail: (error) => {
          cancel();
          reject(error);
        },
      });
      this.#write(encodeMessage({ streamId, type: MESSAGE_TYPE.request, payload }));
    });
  }

  /**
   * Accepts the next bytes of the connection. Throws if they are not answers: the connection cannot be used any more.
   */
  receive(bytes: Uint8Array): void {
    for (const message of this.#reader.feed(bytes)) this.#take(message);
  }

  /** The connection is closed: waiting calls are refused. */
  close(): void {
    this.#closed = true;
    for (const streamId of [...this.#waiting.keys()])
      this.#settle(streamId, ({ fail }) => fail(new RpcRefusal(status.UNAVAILABLE, 'the connection was closed')));
  }

  #take({ streamId, type, payload }: TtrpcMessage): void {
    if (type !== MESSAGE_TYPE.response) throw new Error(`ttrpc: a message of type ${type} where an answer belongs`);
    // The call may have timed out before its answer arrived.
    this.#settle(streamId, ({ answer, fail }) => {
      if (payload === null)
        return fail(new RpcRefusal(status.RESOURCE_EXHAUSTED, `the answer exceeds ${ANSWER_LIMIT_BYTES} bytes`));
      let response;
      try {
        response = ttrpcProto().ttrpc.Response.deserialize(payload);
      } catch {
        return fail(new RpcRefusal(status.INTERNAL, 'the answer cannot be read'));
      }
      if (response.status === null || response.status.code === OK) return answer(response.payload);
      return fail(new RpcRefusal(response.status.code, response.status.message));
    });
  }

  #settle(streamId: number, how: (waiting: Waiting) => void): void {
    const waiting = this.#waiting.get(streamId);
    this.#waiting.delete(streamId);
    if (waiting !== undefined) how(waiting);
  }
}
