import { randomBytes } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'tap';
import type { Greeting } from '../../../../src/abi/greeting.js';
import { systemClock, type Clock } from '../../../../src/host/clock.js';
import { LimitedLog } from '../../../../src/host/limited-log.js';
import { silentLog } from '../../../../src/host/log.js';
import type { PeerCredentials } from '../../../../src/host/peer-credentials.js';
import {
  ConnectionBudget,
  SliceSocket,
  SOCKET_LIMITS,
  type SocketLimits,
} from '../../../../src/agent/slices/compat/slice-socket.js';
import { vcudaProto } from '../../../../src/rpc/proto.js';
import { unary } from '../../../../src/rpc/unary.js';
import { ManualClock } from '../../../manual-clock.js';
import { scratchDirectory } from '../../../scratch.js';
import { closed, greetingBytes, register, say } from '../container-client.js';
import { eventually } from '../../../harness/eventually.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

interface Opened {
  readonly path: string;
  readonly socket: SliceSocket;
  readonly sessions: Set<{ readonly peer: PeerCredentials; readonly greeting: Greeting }>;
  readonly callers: (number | null)[];
}

async function opened(
  t: Teardown,
  limits: Partial<SocketLimits> = {},
  budget = new ConnectionBudget(10_000),
  clock: Clock = systemClock,
): Promise<Opened> {
  const path = join(await scratchDirectory(t), 'vcuda.sock');
  const sessions: Opened['sessions'] = new Set();
  const callers: (number | null)[] = [];
  const socket = new SliceSocket({
    path,
    budget,
    clock,
    log: new LimitedLog(silentLog(), clock),
    limits: { ...SOCKET_LIMITS, ...limits },
    handlers: {
      greeted(peer, greeting) {
        const session = { peer, greeting };
        sessions.add(session);
        return () => sessions.delete(session);
      },
      service: (peer) => ({
        definition: vcudaProto().vcuda.VCUDAService.service,
        handlers: {
          RegisterVDevice: unary(async () => {
            callers.push(peer.pid);
            return {};
          }),
        },
      }),
    },
  });
  await socket.start();
  t.teardown(() => socket.stop());
  return { path, socket, sessions, callers };
}

test('a greeting has the pid from the kernel, whatever pid it contains', async (t) => {
  const { path, sessions } = await opened(t);
  const socket = await say(path, greetingBytes(1, 3, 77));
  await eventually(() => sessions.size === 1, 'the greeting');
  t.match(
    [...sessions],
    [{ peer: { pid: process.pid, uid: process.getuid?.() }, greeting: { pid: 1, slot: 3, startTicks: 77 } }],
  );
  socket.destroy();
  await eventually(() => sessions.size === 0, 'the end of the session');
});

test('a greeting may arrive byte by byte', async (t) => {
  const { path, sessions } = await opened(t);
  const socket = await say(path, new Uint8Array());
  for (const byte of greetingBytes(1, 0)) {
    socket.write(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await eventually(() => sessions.size === 1, 'the greeting');
  t.match([...sessions], [{ greeting: { pid: 1, slot: 0 } }]);
  socket.destroy();
});

test('gRPC uses the same socket, and every call has the pid of its connection', async (t) => {
  const { path, callers } = await opened(t);
  const greeted = await say(path, greetingBytes(1, 0));
  await register(path, { container_id: 'c' });
  await register(path, { container_id: 'c' });
  t.same(callers, [process.pid, process.pid]);
  greeted.destroy();
});

const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

for (const [what, bytes] of [
  ['noise', randomBytes(4_096).fill(0xff, 0, 1)],
  ['a greeting of another version', Buffer.concat([greetingBytes(1, 0).fill(9, 8, 9)])],
  ['a greeting for a slot that does not exist', greetingBytes(1, 512)],
  ['a greeting with a further byte', Buffer.concat([greetingBytes(1, 0), Buffer.of(0)])],
  ['HTTP/1', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
  ['HTTP/2 without end', Buffer.concat([HTTP2_PREFACE, Buffer.alloc(20_000)])],
  ['HTTP/2 followed by noise', Buffer.concat([HTTP2_PREFACE, randomBytes(2_000)])],
] as const) {
  test(`${what} ends its own connection and nothing else`, async (t) => {
    const { path, sessions } = await opened(t);
    const living = await say(path, greetingBytes(1, 0));
    await eventually(() => sessions.size === 1, 'the greeting');
    await closed(await say(path, bytes));
    t.equal(sessions.size, 1);
    t.equal(living.destroyed, false);
    await register(path, { container_id: 'c' });
    living.destroy();
  });
}

test('a client that sends bytes after the greeting is disconnected', async (t) => {
  const { path, sessions } = await opened(t);
  const socket = await say(path, greetingBytes(1, 0));
  await eventually(() => sessions.size === 1, 'the greeting');
  socket.write('more');
  await closed(socket);
  await eventually(() => sessions.size === 0, 'the end of the session');
  t.equal(socket.bytesRead, 0, 'the server never answers a greeting');
});

for (const [what, bytes] of [
  ['no bytes', 0],
  ['an incomplete greeting', 16],
] as const) {
  test(`a client that sends ${what} is disconnected in time`, async (t) => {
    const { path } = await opened(t, { greetMs: 50 });
    await closed(await say(path, greetingBytes(1, 0).subarray(0, bytes)));
    t.pass('closed by the agent');
  });
}

test('an idle gRPC connection is closed in time', async (t) => {
  const { path } = await opened(t, { rpcMs: 50 });
  await closed(await say(path, HTTP2_PREFACE));
  t.pass('closed by the agent');
});

test('the number of connections of a container is limited', async (t) => {
  const { path, sessions, socket: limited } = await opened(t, { sessions: 4, silent: 3, rpcs: 2 });
  const all: Socket[] = [];
  const open = async (bytes: Uint8Array): Promise<Socket> => {
    const socket = await say(path, bytes);
    all.push(socket);
    return socket;
  };
  for (let count = 0; count < 4; count += 1) {
    await open(greetingBytes(1, count));
    await eventually(() => sessions.size === count + 1, 'a session');
  }
  await closed(await open(greetingBytes(1, 4)));
  for (let count = 0; count < 2; count += 1) await open(HTTP2_PREFACE);
  await closed(await open(HTTP2_PREFACE));
  for (let count = 0; count < 3; count += 1) await open(new Uint8Array());
  await closed(await open(greetingBytes(1, 5)));
  t.equal(sessions.size, 4);
  t.same(limited.refusals, { floods: 0, connections: 3 });
  for (const socket of all) socket.destroy();
  await eventually(() => sessions.size === 0, 'the end of all sessions');
  await open(greetingBytes(1, 0));
  await eventually(() => sessions.size === 1, 'a session after all others left');
  for (const socket of all) socket.destroy();
});

test('the number of connections of all containers together is limited, and closing one frees it', async (t) => {
  const budget = new ConnectionBudget(3);
  const one = await opened(t, {}, budget);
  const other = await opened(t, {}, budget);
  const sockets: Socket[] = [];
  for (const { path } of [one, one, other]) sockets.push(await say(path, greetingBytes(1, 0)));
  await eventually(() => one.sessions.size + other.sessions.size === 3, 'three sessions');
  await closed(await say(other.path, greetingBytes(1, 0)));
  sockets[0]?.destroy();
  await eventually(() => one.sessions.size === 1, 'the end of one session');
  sockets.push(await say(other.path, greetingBytes(1, 0)));
  await eventually(() => other.sessions.size === 2, 'a session in its place');
  t.equal(one.sessions.size, 1);
  for (const socket of sockets) socket.destroy();
});

test('a container that opens all connections it can leaves half of them for others', async (t) => {
  const budget = new ConnectionBudget(80);
  const greedy = await opened(t, {}, budget);
  const other = await opened(t, {}, budget);
  const sockets: Socket[] = [];
  for (let count = 0; count < 60; count += 1) sockets.push(await say(greedy.path, greetingBytes(1, count)));
  await eventually(
    () => greedy.sessions.size + greedy.socket.refusals.connections === 60,
    'every connection to be taken or cut off',
  );
  t.equal(greedy.sessions.size, 40);
  for (let count = 0; count < 31; count += 1) sockets.push(await say(other.path, greetingBytes(1, count)));
  await eventually(() => other.sessions.size === 31, 'the connections of the other container');
  t.equal(other.socket.refusals.connections, 0);
  for (const socket of sockets) socket.destroy();
});

const HASTY = { rate: { burst: 20, perSecond: 20, penaltyMs: 100, longestPenaltyMs: 100 } };

test('a flood closes the socket of its container for a while, and existing sessions stay connected', async (t) => {
  const clock = new ManualClock();
  const { path, sessions, socket: shut } = await opened(t, HASTY, undefined, clock);
  const other = await opened(t, HASTY, undefined, clock);
  const living = await say(path, greetingBytes(1, 0));
  await eventually(() => sessions.size === 1, 'the greeting');
  const flood: Socket[] = [];
  let refused = 0;
  while (refused === 0) {
    const socket = connect(path);
    flood.push(socket);
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve);
      socket.once('error', () => {
        refused += 1;
        resolve();
      });
    });
  }
  t.equal(sessions.size, 1, 'the session continues');
  t.match(shut.refusals, { floods: 1 });
  t.match(other.socket.refusals, { floods: 0, connections: 0 });
  const neighbour = await say(other.path, greetingBytes(1, 0));
  await eventually(() => other.sessions.size === 1, 'a session of another container');
  for (const socket of flood) socket.destroy();
  await eventually(async () => {
    clock.advance(HASTY.rate.longestPenaltyMs);
    const socket = await say(path, greetingBytes(1, 1)).catch(() => null);
    await new Promise((resolve) => setTimeout(resolve, 20));
    return socket !== null && !socket.destroyed && sessions.size === 2;
  }, 'the socket to open again');
  t.equal((await stat(path)).mode & 0o777, 0o666);
  t.equal(living.destroyed, false);
  living.destroy();
  neighbour.destroy();
});

test('stopping while the socket is closed leaves no socket file behind and opens none later', async (t) => {
  const clock = new ManualClock();
  const rate = { burst: 0, perSecond: 0, penaltyMs: 30, longestPenaltyMs: 30 };
  const { path, socket } = await opened(t, { rate }, undefined, clock);
  await closed(await say(path, greetingBytes(1, 0)));
  t.equal(socket.open, true);
  await socket.stop();
  clock.advance(2 * rate.penaltyMs);
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.same(await readdir(join(path, '..')), []);
});

test('starting twice has the effect of starting once', async (t) => {
  const { path, socket, sessions } = await opened(t);
  const living = await say(path, greetingBytes(1, 0));
  await eventually(() => sessions.size === 1, 'the greeting');
  const before = (await stat(path)).ino;
  await socket.start();
  t.equal((await stat(path)).ino, before);
  t.equal(living.destroyed, false);
  living.destroy();
});
