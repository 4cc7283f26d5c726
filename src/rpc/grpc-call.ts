import type { status } from '@grpc/grpc-js';

/** One call for its handler. Its methods never throw: messages after the end of the call are dropped. */
export interface RpcCall<Request, Response> {
  readonly request: Request;
  send(message: Response): void;
  /** Ends the call, with OK by default. */
  end(code?: status, details?: string): void;
  /** Calls `listener` once when either side has ended the call. */
  onOver(listener: () => void): void;
}

/** Handles one call. */
export type RpcHandler<Request, Response> = (call: RpcCall<Request, Response>) => void;
