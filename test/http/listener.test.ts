import { connect, type Socket } from 'node:net';
import { test, type Test } from 'tap';
import { plain, type Answer } from '../../src/http/answer.js';
import { Listener, type HttpRequest, type ListenerOptions, type Route } from '../../src/http/listener.js';
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
    notReady: () => [],
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
  // A busy machine may exceed these limits with another request, too.
  const length = await eventually(async () => {
    const answer = await ask(port, '/length', { method: 'POST', body: 'abcd' }).catch(() => null);
    return answer?.ok === true ? answer.text() : null;
  }, 'an answer to another request');
  t.equal(length, '4\n');
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

test('a connection with nine unanswered requests is closed, and none after the eighth is handled', async (t) => {
  let asked = 0;
  const answer = (): Promise<never> => {
    asked += 1;
    return new Promise(() => undefined);
  };
  const { port } = await listening(t, { route: () => ({ method: 'GET', answer }) });
  const request = 'GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n';
  const patient = await connected(t, port, '127.0.0.2');
  patient.socket.write(request.repeat(8));
  await eventually(() => asked === 8, 'eight requests to be handled');
  t.notOk(patient.closed());
  const greedy = await connected(t, port, '127.0.0.3');
  greedy.socket.write(request.repeat(1_000));
  await eventually(greedy.closed, 'the connection to be closed');
  t.equal(asked, 16);
});

test('bodies of requests whose connection is closed before their answers count no more', async (t) => {
  let read = 0;
  let proceed: (() => void)[] = [];
  const answer = async (request: HttpRequest): Promise<Answer> => {
    await request.body();
    read += 1;
    await new Promise<void>((resolve) => proceed.push(resolve));
    return plain(200, 'read');
  };
  const routes: Readonly<Record<string, Route>> = {
    '/slow': { method: 'POST', answer },
    '/length': { method: 'POST', answer: async (request) => plain(200, String((await request.body()).length)) },
  };
  const { port } = await listening(t, { route: (path) => routes[path] ?? null });
  for (let times = 1; times <= 5; times++) {
    const { socket, closed } = await connected(t, port);
    const post = `POST /slow HTTP/1.1\r\nhost: localhost\r\ncontent-length: 600\r\n\r\n${'x'.repeat(600)}`;
    socket.write(post + post);
    await eventually(() => read === times * 2, 'both bodies to be read');
    socket.destroy();
    await eventually(closed, 'the connection to be closed');
    proceed.forEach((go) => go());
    proceed = [];
  }
  const length = async (): Promise<boolean> =>
    (await ask(port, '/length', { method: 'POST', body: 'x'.repeat(1_000) })).status === 200;
  await eventually(length, 'a body to have room');
});

test('a probe is answered on a connection of its own, also to an address beyond its rate', async (t) => {
  const waiting: string[] = [];
  const connectionRate = { burst: 3, perSecond: 0 };
  const { port } = await listening(t, { notReady: () => waiting, limits: { connectionRate } });
  const said = async (path: string, rest = ''): Promise<string> => {
    const { socket, said, closed } = await connected(t, port);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n${rest}`);
    await eventually(closed, 'the connection to be closed');
    return said();
  };
  t.match(await said('/healthz'), /^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n\r\nok\n$/u);
  waiting.push('not ready');
  t.match(await said('/readyz'), /^HTTP\/1\.1 503 [^]*not ready\n$/u);
  t.equal((await said('/healthz', 'GET /hello HTTP/1.1\r\n\r\n')).match(/HTTP\/1\.1/gu)?.length, 1);
  t.equal(await said('/hello'), '', 'another request beyond the rate gets no answer');
  t.match(await said('/healthz'), /^HTTP\/1\.1 200 /u);
});

test('connections whose work is accepted do not count for the rate of their address, and all others do', async (t) => {
  const { port } = await listening(t, { limits: { connectionRate: { burst: 3, perSecond: 0 } } });
  const post = async (path: string): Promise<string> => {
    const { socket, said, closed } = await connected(t, port);
    socket.end(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi`);
    await eventually(closed, 'the answer');
    return said().slice(9, 12);
  };
  for (let time = 0; time < 10; time++) t.equal(await post('/length'), '200');
  for (let time = 0; time < 3; time++) t.equal(await post('/nothing'), '404');
  t.equal(await post('/length'), '', 'the next connection is closed');
});

test('an address that asks faster than its rate gets 429, and others and work get answers', async (t) => {
  const { port } = await listening(t, { limits: { documentRate: { burst: 2, perSecond: 0 } } });
  const statuses = [];
  for (let times = 0; times < 4; times++) statuses.push((await ask(port, '/hello')).status);
  t.same(statuses, [200, 200, 429, 429]);
  t.equal((await ask(port, '/length', { method: 'POST', body: 'x' })).status, 200);
  t.equal((await ask(port, '/healthz')).status, 200);
  const other = await connected(t, port, '127.0.0.9');
  other.socket.write('GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await eventually(() => other.said().includes('hello'), 'the other address to be answered');
});

test('answers that callers do not read are bounded in sum, and one that is shared counts once', async (t) => {
  const shared = Buffer.alloc(4 << 20, 'x');
  const document = (body: () => Buffer): Route => ({
    method: 'GET',
    answer: () => ({ ...plain(200, ''), body: body() }),
  });
  const routes: Readonly<Record<string, Route>> = {
    '/shared': document(() => shared),
    '/own': document(() => Buffer.alloc(4 << 20, 'y')),
  };
  const { port } = await listening(t, { route: (path) => routes[path] ?? null, limits: { unreadBytes: 9 << 20 } });
  const statusOf = async (path: string): Promise<string> => {
    const socket = connect({ port, host: '127.0.0.1' });
    t.teardown(() => void socket.destroy());
    socket.on('error', () => undefined);
    const first = new Promise<string>((resolve) => {
      socket.once('readable', () => resolve(String((socket.read(12) as Buffer | null)?.toString('latin1'))));
    });
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    return first;
  };
  for (let times = 0; times < 5; times++) t.equal(await statusOf('/shared'), 'HTTP/1.1 200');
  t.equal(await statusOf('/own'), 'HTTP/1.1 200');
  t.equal(await statusOf('/own'), 'HTTP/1.1 503');
});

test('a caller that does not read a long answer in time is disconnected', async (t) => {
  const body = Buffer.alloc(64 << 20, 'x');
  const route: Route = { method: 'GET', answer: () => ({ ...plain(200, ''), body }) };
  const { port } = await listening(t, { route: () => route, limits: { readMs: 200, unreadBytes: 128 << 20 } });
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await eventually(() => socket.readableLength > 0, 'the beginning of the answer');
  await new Promise((resolve) => setTimeout(resolve, 300));
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await eventually(() => socket.destroyed, 'the connection to be closed');
  t.ok(bytes < body.length, `${bytes} bytes`);
});
