import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { ApiFailure } from './api-failure.js';

/** A pod's HTTP server, as a proxy request names it: `[https:]name[:port]`. */
export interface ProxiedPod {
  readonly namespace: string;
  readonly name: string;
  readonly scheme: 'http' | 'https';
  readonly port: number;
}

export function readProxiedPod(namespace: string, target: string): ProxiedPod {
  const [, scheme, name = '', port] = /^(?:(https?):)?([^:]+)(?::(\d+))?$/u.exec(target) ?? [];
  return { namespace, name, scheme: scheme === 'https' ? 'https' : 'http', port: Number(port ?? 80) };
}

/**
 * Forwards a request as the API server does: without the credentials of its sender, and without verifying the
 * certificate of the pod. `port`: where the pod's server listens on this machine; null if it does not.
 */
export function forwardToPod(
  incoming: IncomingMessage,
  response: ServerResponse,
  { scheme }: ProxiedPod,
  port: number | null,
  path: string,
): Promise<void> {
  const { authorization: _, ...headers } = incoming.headers;
  return new Promise((resolve, reject) => {
    const unreachable = (reason: string): void =>
      reject(new ApiFailure(503, 'ServiceUnavailable', `error trying to reach service: ${reason}`));
    if (port === null) return unreachable('dial tcp 10.0.0.1: connect: connection refused');
    const options = { host: '127.0.0.1', port, path, method: incoming.method, headers, rejectUnauthorized: false };
    const outgoing = scheme === 'https' ? httpsRequest(options) : httpRequest(options);
    outgoing.on('error', (error) => unreachable(error.message));
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on('end', resolve);
    });
    outgoing.end();
  });
}
