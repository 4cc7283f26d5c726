import { Server, ServerCredentials, status, type sendUnaryData, type ServerUnaryCall } from '@grpc/grpc-js';
import type { CriVersion } from '../../../src/agent/runtimes/cri-runtime.js';
import { criProto } from '../../../src/rpc/proto.js';

type Answers = Readonly<Record<string, (request: never) => object>>;

/** Thrown by an answer to end the call with a gRPC status. */
export class Status extends Error {
  constructor(
    readonly code: status,
    details = status[code],
  ) {
    super(details);
  }
}

/** An answer that never arrives. */
export const NEVER = {};

/**
 * Serves a container runtime interface at `socket` in one version only; methods without an answer are unimplemented.
 */
export async function serveCri(socket: string, version: CriVersion, answers: Answers): Promise<{ stop(): void }> {
  const { service } = criProto().runtime.v1.RuntimeService;
  const methods = Object.entries(service).map(
    ([name, method]) =>
      [name, { ...method, path: method.path.replace('/runtime.v1.', `/runtime.${version}.`) }] as const,
  );
  const handlers = Object.entries(answers).map(([name, answer]) => [
    name,
    (call: ServerUnaryCall<never, object>, callback: sendUnaryData<object>) => {
      try {
        const response = answer(call.request);
        if (response !== NEVER) callback(null, response);
      } catch (error) {
        callback({
          code: error instanceof Status ? error.code : status.INTERNAL,
          details: error instanceof Error ? error.message : String(error),
        });
      }
    },
  ]);
  const server = new Server();
  server.addService(Object.fromEntries(methods), Object.fromEntries(handlers) as Record<string, never>);
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    ),
  );
  return { stop: () => server.forceShutdown() };
}
