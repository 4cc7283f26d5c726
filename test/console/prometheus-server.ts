import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from '../harness/certificate.js';

interface Scope {
  teardown(action: () => Promise<void>): void;
}

type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => void;

/** A server on loopback; with a certificate it speaks HTTPS. Returns its URL. */
export async function listening(t: Scope, handler: Handler, certificate: Certificate | null = null): Promise<URL> {
  const answer = (request: IncomingMessage, response: ServerResponse): void =>
    handler(request, response, new URL(request.url ?? '/', 'http://server'));
  const server =
    certificate === null
      ? createServer(answer)
      : createSecureServer({ cert: certificate.certificate, key: certificate.key }, answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return new URL(`${certificate === null ? 'http' : 'https'}://127.0.0.1:${port}/`);
}

/** One series of an answer: its labels, and its value at a moment in seconds; null where it has none. */
export interface GivenSeries {
  readonly metric: Readonly<Record<string, string>>;
  readonly at: (seconds: number) => number | string | null;
}

/**
 * Answers range queries in the form that Prometheus documents: a matrix of pairs of seconds and text. `asked` collects
 * the queries.
 */
export function rangeHandler(seriesOf: (query: string) => readonly GivenSeries[], asked: URL[] = []): Handler {
  return (_request, response, url) => {
    asked.push(url);
    const [start, end, step] = ['start', 'end', 'step'].map((key) => Number(url.searchParams.get(key))) as [
      number,
      number,
      number,
    ];
    const moments = Array.from({ length: Math.round((end - start) / step) + 1 }, (_, at) => start + at * step);
    const result = seriesOf(url.searchParams.get('query') ?? '').map(({ metric, at }) => ({
      metric,
      values: moments.flatMap((seconds) => {
        const value = at(seconds);
        return value === null ? [] : [[seconds, String(value)]];
      }),
    }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }));
  };
}
