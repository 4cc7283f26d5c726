import type { ServerResponse } from 'node:http';
import { ApiFailure } from './api-failure.js';
import type { FaultEffect } from './fault.js';

/** Sends a complete answer: text unchanged, everything else as JSON. */
export function send(
  response: ServerResponse,
  code: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(code, {
    'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

/** Announces the complete answer, sends half of it and breaks the connection. */
export function truncate(response: ServerResponse, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.write(text.slice(0, text.length / 2), () => response.socket?.destroy());
}

/** Applies a fault before the request is processed; true when the request is finished. */
export async function interfere(fault: FaultEffect, response: ServerResponse): Promise<boolean> {
  switch (fault.do) {
    case 'hang':
      return true;
    case 'reset':
      response.socket?.destroy();
      return true;
    case 'answer': {
      const headers: Record<string, string> =
        fault.retryAfterSeconds === undefined ? {} : { 'retry-after': String(fault.retryAfterSeconds) };
      if (fault.body === undefined)
        throw new ApiFailure(
          fault.code,
          fault.reason ?? 'InternalError',
          fault.message ?? `fault on command: ${fault.code}`,
          undefined,
          headers,
        );
      send(response, fault.code, fault.body, headers);
      return true;
    }
    case 'delay':
      await new Promise((resolve) => setTimeout(resolve, fault.ms).unref());
      return false;
    case 'lose-answer':
    case 'truncate':
    case 'distort':
      return false;
  }
}
