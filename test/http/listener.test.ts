import { connect, type Socket } from 'node:net';
import { test, type Test } from 'tap';
import { plain } from '../../src/http/answer.js';
import { Listener, type ListenerOptions, type Route } from '../../src/http/listener.js';
import { silentLog } from '../../src/host/log.js';
import { eventually } from '../harness/eventually.js';

async function listening(t: Test, options: Partial<ListenerOptions> = {}): Promise<Listener> {
  const routes: Readonly<Record<string, Route>> = {
    '/hello': { method: 'GET', answer: () => plain(200, 'hello') },
    '/length': { method: 'POST', answer: async (request) => plain(200, String((await request.body()).length)) },
    '/broken': {
      method: 'GET',
      answer: () => {
        throw new Error('a secret detail');
      },
    },
    '/never': { method: 'GET', answer: () => new Promise(() => undefined) },
  };
  const listener = new Listener({
    address: '127.0.0.1',
    port: 0,
    tls: null,
    route: (path) => (Object.hasOwn(routes, path) ? (routes[path] as Route) : null),
    log: silentLog(),
    ...options,
    limits: { bodyBytes: 1_000, bodiesBytes: 1_500, ...options.limits },
  });
  await listener.start();
  t.teardown(() => listener.stop(0));
  return listener;
}

interface Connection {
  readonly socket: Socket;
  readonly said: () => string;
  readonly closed: () => boolean;
}

async function connected(t: Test, port: number, from = '127.0.0.1'): Promise<Connection> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  let [said, closed] = ['', false];
  socket.setEncoding('latin1').on('data', (chunk: string) => (said += chunk));
  socket.on('error', () => undefined);
  socket.once('close', () => (closed = true));
  t.teardown(() => void socket.destroy());
  await new Promise<void>((resolve) => {
    socket.once('connect', () => resolve());
    socket.once('close', () => resolve());
  });
  return { socket, said: () => said, closed: () => closed };
}

const ask = (port: number, path: string, init?: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, init);

test('an internal error is answered without its reason', async (t) => {
  const { port } = await listening(t);
  const response = await ask(port, '/broken');
  t.equal(response.status, 500);
  t.notMatch(await response.text(), /secret/);
});

test('the server closes a connection that sends no request within the time limit', async (t) => {
  const { port } = await listening(t, { limits: { headerMs: 100, requestMs: 200 } });
  const silent = await connected(t, port);
  const slow = await connected(t, port);
  slow.socket.write('GET /hello HTTP/1.1\r\nhost: localhost\r\nx-slow: ');
  await eventually(() => silent.closed() && slow.closed(), 'both to be closed');
  t.match(slow.said(), /^HTTP\/1\.1 408 /);
});

test('the server does not wait for a body that does not arrive', async (t) => {
  const { port } = await listening(t, { limits: { headerMs: 100, requestMs: 200 } });
  const { socket, closed } = await connected(t, port);
  socket.write('POST /length HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nabc');
  await eventually(closed, 'the connection to be closed');
  t.equal(await (await ask(port, '/length', { method: 'POST', body: 'abcd' })).text(), '4\n');
});

test('connections are limited for each address and in sum, and the newest connection is served', async (t) => {
  const { port } = await listening(t, { limits: { connections: 6, connectionsPerAddress: 4 } });
  const first = await Promise.all(Array.from({ length: 10 }, () => connected(t, port, '127.0.0.2')));
  await eventually(() => first.filter(({ closed }) => closed()).length === 6, 'those beyond its share to be closed');
  const second = await connected(t, port, '127.0.0.3');
  second.socket.write('GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await eventually(() => second.said().includes('hello'), 'another address to be answered');
  const third = await Promise.all(Array.from({ length: 4 }, () => connected(t, port, '127.0.0.4')));
  const isOpen = ({ closed }: Connection): boolean => !closed();
  const open = (): Connection[] => [...first, second, ...third].filter(isOpen);
  await eventually(() => open().length === 6, 'those beyond the sum to be closed');
  t.equal(third.filter(isOpen).length, 4, 'the newest connections stay');
  t.ok(isOpen(second), 'a connection with an earlier request stays longer than connections without one');
  third.concat(first).forEach(({ socket }) => socket.destroy());
  await eventually(async () => {
    const { said, socket } = await connected(t, port, '127.0.0.2');
    socket.end('GET /hello HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    return eventually(() => said().includes('hello'), 'an answer', 200).catch(() => false);
  }, 'connections that were closed to count no more');
});

test('new connections do not close a request in progress', async (t) => {
  let asked = 0;
  const answer = (): Promise<never> => {
    asked += 1;
    return new Promise(() => undefined);
  };
  const { port } = await listening(t, {
    limits: { connections: 2, connectionsPerAddress: 2 },
    route: () => ({ method: 'GET', answer }),
  });
  const asking = await Promise.all([connected(t, port), connected(t, port)]);
  for (const { socket } of asking) socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await eventually(() => asked === 2, 'both requests to come');
  const late = await connected(t, port);
  await eventually(late.closed, 'the new connection to be closed');
  t.same(
    asking.map(({ closed }) => closed()),
    [false, false],
  );
});

test('an unread body ends its connection', async (t) => {
  const { port } = await listening(t);
  const { socket, said, closed } = await connected(t, port);
  socket.write('POST /nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n');
  await eventually(closed, 'the connection to be closed');
  t.match(said(), /^HTTP\/1\.1 404 [^]*connection: close/i);
});

test('the bodies of one address are limited in sum, and the bodies of others are read meanwhile', async (t) => {
  const { port } = await listening(t, { limits: { bodiesBytesPerAddress: 1_000, bodiesBytes: 5_000 } });
  const post = 'POST /length HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900\r\n\r\n';
  const hoarder = await connected(t, port, '127.0.0.2');
  hoarder.socket.write(`${post}${'x'.repeat(800)}`);
  const lengthFrom = async (from: string): Promise<string> => {
    const { socket, said } = await connected(t, port, from);
    socket.write(`${post}${'x'.repeat(900)}`);
    await eventually(() => said().includes('\r\n\r\n'), 'an answer');
    return said().slice(0, 12);
  };
  await eventually(async () => (await lengthFrom('127.0.0.2')) === 'HTTP/1.1 503', 'a second body to be refused');
  t.equal(await lengthFrom('127.0.0.3'), 'HTTP/1.1 200');
});

test('failures are logged a few times and then counted, without the query of the request', async (t) => {
  const lines: object[] = [];
  const log = { error: (fields: object) => lines.push(fields), warn: (fields: object) => lines.push(fields) };
  const { port } = await listening(t, { log });
  for (let times = 0; times < 200; times++) await ask(port, '/broken?token=secret');
  t.ok(lines.length > 0 && lines.length <= 10, `${lines.length} lines`);
  t.match(lines[0], { method: 'GET', path: '/broken' });
});

test('a body is limited, with and without an announced length, and the client gets an error', async (t) => {
  const { port } = await listening(t);
  const chunked = { duplex: 'half', body: new Blob(['x'.repeat(1_500)]).stream() } as RequestInit;
  for (const init of [{ body: 'x'.repeat(1_001) }, { body: 'x'.repeat(9_000) }, chunked]) {
    const response = await ask(port, '/length', { method: 'POST', ...init });
    t.equal(response.status, 413);
    t.match(await response.text(), /larger than 1000 bytes/);
  }
  t.equal((await ask(port, '/length', { method: 'POST', body: 'x'.repeat(1_000) })).status, 200);
});

test('concurrent bodies are limited in sum, and answered requests free their part', async (t) => {
  const { port } = await listening(t);
  const { socket, said } = await connected(t, port);
  socket.write(`POST /length HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n${'x'.repeat(900)}`);
  const body = 'x'.repeat(800);
  await eventually(async () => (await ask(port, '/length', { method: 'POST', body })).status === 503, 'a refusal');
  socket.write('x'.repeat(100));
  await eventually(() => said().includes('1000'), 'the first body to be answered');
  for (let times = 0; times < 5; times++)
    t.equal((await ask(port, '/length', { method: 'POST', body })).status, 200, 'the limit has room again');
});

test('a stop ends unanswered requests after the time limit, and returns', async (t) => {
  const listener = await listening(t);
  const { socket, closed } = await connected(t, listener.port);
  socket.write('GET /never HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await eventually(async () => (await ask(listener.port, '/hello')).ok, 'the listener to answer');
  await listener.stop(20);
  await eventually(closed, 'the connection to be cut');
  await t.rejects(ask(listener.port, '/hello'));
});

test('an answer of parts of its body is not changed by bodies that come before it is read', async (t) => {
  const mirror: Route = {
    method: 'POST',
    answer: async (request) => {
      const bytes = await request.bytes();
      const headers = { 'content-length': String(bytes.length) };
      return { ...plain(200, ''), headers, stream: (response) => response.end(bytes) };
    },
  };
  const limits = { bodyBytes: 32 << 20, bodiesBytes: 128 << 20 };
  const { port } = await listening(t, { route: () => mirror, limits });
  const length = 16 << 20;
  const send = async (fill: string): Promise<Response> =>
    ask(port, '/mirror', { method: 'POST', body: Buffer.alloc(length, fill) });
  const unread = await send('a');
  for (const fill of ['b', 'c'])
    t.ok(Buffer.from(await (await send(fill)).arrayBuffer()).equals(Buffer.alloc(length, fill)));
  t.ok(Buffer.from(await unread.arrayBuffer()).equals(Buffer.alloc(length, 'a')));
});
