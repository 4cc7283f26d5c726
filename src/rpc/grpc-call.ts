import type { status } from '@grpc/grpc-js';

/**
 * One call, as the method that answers it sees it. Nothing here throws: what is said after the call is over is dropped.
 */
export interface RpcCall<Request, Response> {
  readonly request: Request;
  send(message: Response): void;
  /** Ends the call; OK unless a code is given. */
  end(code?: status, details?: string): void;
  /** Calls back once when the call has ended, on either side. */
  onOver(listener: () => void): void;
}

/** Answers one call. */
export type RpcHandler<Request, Response> = (call: RpcCall<Request, Response>) => void;
