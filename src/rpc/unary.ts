import { Metadata, status, type CallOptions, type requestCallback } from '@grpc/grpc-js';
import type { RpcHandler } from './grpc-call.js';

/** A refusal with a gRPC status; `kubectl describe pod` shows the message. */
export class RpcRefusal extends Error {
  readonly code: status;

  constructor(code: status, message: string) {
    super(message);
    this.name = 'RpcRefusal';
    this.code = code;
  }
}

/**
 * Turns an async function into a handler; `isOver` returns true once the caller no longer waits. Without this a
 * rejection would be unhandled, so that Node ends the daemon, and the caller would wait until its deadline, or forever,
 * as the kubelet's Allocate has none.
 */
export function unary<Request, Response>(
  answer: (request: Request, isOver: () => boolean) => Promise<Response>,
  onFailure: (error: unknown) => void = () => undefined,
): RpcHandler<Request, Response> {
  return (call) => {
    let over = false;
    call.onOver(() => (over = true));
    Promise.resolve()
      .then(() => answer(call.request, () => over))
      .then(
        (response) => {
          call.send(response);
          call.end();
        },
        (error: unknown) => {
          if (!(error instanceof RpcRefusal)) onFailure(error);
          const code = error instanceof RpcRefusal ? error.code : status.INTERNAL;
          call.end(code, error instanceof Error ? error.message : String(error));
        },
      );
  };
}

/** The request and response of a method of a generated client (its last overload is `(request, callback)`). */
type RequestOf<Method> = Method extends (request: infer Request, callback: infer _Callback) => unknown
  ? Request
  : never;
type ResponseOf<Method> = Method extends (request: infer _Request, callback: requestCallback<infer Response>) => unknown
  ? Response
  : never;

/** How long a call waits for a server that is not available yet. */
export interface CallPatience {
  /** Whether to wait for the server until the deadline, even if the last connection attempt failed. */
  readonly waitForReady?: boolean;
}

/** Calls a unary method of a generated client with a deadline; rejects with grpc-js's ServiceError. */
export function callUnary<Client extends object, Name extends keyof Client>(
  client: Client,
  name: Name,
  request: RequestOf<Client[Name]>,
  timeoutMs: number,
  { waitForReady = false }: CallPatience = {},
): Promise<ResponseOf<Client[Name]>> {
  type Call = (
    request: unknown,
    metadata: Metadata,
    options: CallOptions,
    callback: requestCallback<ResponseOf<Client[Name]>>,
  ) => unknown;
  return new Promise((resolve, reject) => {
    (client[name] as Call).call(
      client,
      request,
      new Metadata({ waitForReady }),
      { deadline: Date.now() + timeoutMs },
      (error, response) => {
        if (error !== null) reject(error);
        else resolve(response as ResponseOf<Client[Name]>);
      },
    );
  });
}
