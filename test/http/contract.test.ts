import { Agent, request } from 'node:https';
import { connect } from 'node:tls';
import { connect as connectTcp, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'tap';
import { eventually } from '../harness/eventually.js';
import { AUTHORITY, PROGRAMS, type Served } from './servers.js';

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly host?: string;
  readonly body?: string;
  /** A body of so many spaces instead. */
  readonly bodyBytes?: number;
  readonly from?: string;
  readonly agent?: Agent;
}

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

function ask({ port }: Served, { method = 'GET', path, host, body, bodyBytes, from, agent }: Asked): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(host === undefined ? {} : { host }),
      ...(bodyBytes === undefined ? {} : { 'content-length': bodyBytes }),
    };
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        headers,
        ca: AUTHORITY,
        agent: agent ?? false,
        servername: 'localhost',
        ...(from === undefined ? {} : { localAddress: from }),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
        response.on('error', reject);
      },
    );
    outgoing.on('error', reject);
    if (bodyBytes === undefined) outgoing.end(body);
    else Readable.from(spaces(bodyBytes)).pipe(outgoing);
  });
}

/**
 * In pieces, each when the one before was sent: encrypting 128 MiB at once would hold up the server, which shares this
 * process, for longer than it waits for a handshake.
 */
function* spaces(bytes: number): Iterable<Buffer> {
  const piece = Buffer.alloc(1 << 20, ' ');
  for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, left);
}

/** Idle connections from one address. */
function silentConnections({ port }: Served, count: number, from: string): Promise<Socket[]> {
  return Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Socket>((resolve) => {
          const socket = connectTcp({ port, host: '127.0.0.1', localAddress: from });
          socket.on('error', () => undefined);
          socket.once('connect', () => resolve(socket));
          socket.once('close', () => resolve(socket));
        }),
    ),
  );
}

for (const { name, serve } of PROGRAMS) {
  test(`${name}: a probe reports that the program is alive and whether it is ready`, async (t) => {
    const ready = await serve(t, true);
    t.match(await ask(ready, { path: '/healthz' }), { status: 200, text: 'ok\n' });
    t.match(await ask(ready, { path: '/readyz' }), { status: 200, text: 'ok\n' });
    t.match(await ask(ready, { path: '/healthz', method: 'HEAD' }), { status: 200, text: '' });
    const waiting = await serve(t, false);
    t.match(
      await ask(waiting, { path: '/readyz' }),
      { status: 503, text: /^\w.*\n$/ },
      'the answer names what the program waits for',
    );
    t.match(await ask(waiting, { path: '/healthz' }), { status: 200 });
  });

  test(`${name}: a connection stays open longer than Go's clients, which do not repeat a POST, keep it`, async (t) => {
    const agent = new Agent({ keepAlive: true });
    t.teardown(() => agent.destroy());
    const { headers } = await ask(await serve(t, true), { path: '/metrics', agent });
    const [, seconds] = /^timeout=(\d+)$/.exec(String(headers['keep-alive'])) ?? [];
    t.ok(Number(seconds) > 90, `keep-alive: ${String(headers['keep-alive'])}`);
  });

  test(`${name}: metrics have the content type of their exposition format`, async (t) => {
    const { status, headers } = await ask(await serve(t, true), { path: '/metrics' });
    t.equal(status, 200);
    t.match(headers['content-type'], /^text\/plain; version=0\.0\.4/);
  });

  test(`${name}: a path that answers only GET refuses other methods with 405`, async (t) => {
    const server = await serve(t, true);
    for (const path of ['/healthz', '/metrics'])
      t.match(
        await ask(server, { path, method: 'POST', body: '{}' }),
        { status: 405, headers: { allow: 'GET, HEAD' } },
        path,
      );
    t.match(await ask(server, { path: '/nothing' }), { status: 404 });
    if (server.takesBodies !== null)
      t.match(await ask(server, { path: server.takesBodies }), { status: 405, headers: { allow: 'POST' } });
  });

  test(`${name}: a request with an unreadable path is refused, and is no server error`, async (t) => {
    t.match(await ask(await serve(t, true), { path: '//' }), { status: 400 });
  });

  test(`${name}: answers forbid content sniffing and caching`, async (t) => {
    const { headers } = await ask(await serve(t, true), { path: '/readyz' });
    t.match(headers, { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
  });

  test(`${name}: a server on loopback answers only to names of loopback`, async (t) => {
    t.match(await ask(await serve(t, true), { path: '/metrics', host: 'evil.example' }), { status: 421 });
  });

  test(`${name}: the server refuses TLS below 1.2`, async (t) => {
    const { port } = await serve(t, true);
    const failed = await new Promise<boolean>((resolve) => {
      const socket = connect({
        port,
        host: '127.0.0.1',
        ca: AUTHORITY,
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'DEFAULT@SECLEVEL=0',
      });
      socket.once('secureConnect', () => resolve(false));
      socket.once('error', () => resolve(true));
    });
    t.ok(failed);
  });

  test(`${name}: the server answers a body beyond the limit with 413`, async (t) => {
    const server = await serve(t, true);
    const { takesBodies: path, mostBodyBytes } = server;
    if (path === null) return t.pass('the program accepts no bodies');
    t.match(await ask(server, { path, method: 'POST', bodyBytes: mostBodyBytes + 1 }), { status: 413 });
    return undefined;
  });

  test(`${name}: one address with many connections does not keep out others`, async (t) => {
    const server = await serve(t, true);
    const sockets = await silentConnections(server, 600, '127.0.0.2');
    t.teardown(async () => sockets.forEach((socket) => socket.destroy()));
    t.match(await ask(server, { path: '/healthz' }), { status: 200 });
    const closed = () => sockets.filter((socket) => socket.destroyed || socket.readyState !== 'open').length;
    await eventually(() => closed() >= 300, 'the server to close most of the connections');
  });
}
