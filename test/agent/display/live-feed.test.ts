import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { test } from 'tap';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { allocation, gpu, node, served, slice, viewOf } from './fixture.js';
import { Scene } from './scene.js';

const GPU = gpu(0);

/** A reader of the stream that sends nothing but its request: a raw connection. */
async function reader(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write('GET /api/stream HTTP/1.1\r\nhost: localhost\r\n\r\n');
  return socket;
}

/** The received events, as [event, data] pairs. */
function collect(socket: Socket): [string, Record<string, unknown>][] {
  const events: [string, Record<string, unknown>][] = [];
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    // HTTP chunks have their sizes between them; events are found by their own separators.
    rest += chunk.replaceAll(/\r\n[0-9a-f]+\r\n|\r\n/gu, '');
    const messages = rest.split('\n\n');
    rest = messages.pop() ?? '';
    for (const message of messages) {
      const [, name, data] = /event: (\w+)\ndata: ([^]*)$/u.exec(message) ?? [];
      if (name !== undefined && data !== undefined) events.push([name, JSON.parse(data) as Record<string, unknown>]);
    }
  });
  return events;
}

test('a reader gets the whole state once, then the changes and the usage', async (t) => {
  const clock = new ManualClock();
  let state = node({ atMs: clock.now(), gpus: [GPU] });
  const { server, journal } = await served(
    t,
    viewOf(() => ({ ...state, atMs: clock.now() })),
    { clock },
  );
  journal.note({ level: 'info', kind: 'Before', message: 'm' });
  const socket = await reader(server.port);
  t.teardown(async () => void socket.destroy());
  const events = collect(socket);
  await eventually(() => events.length === 3);
  t.same(
    events.map(([name]) => name),
    ['hello', 'state', 'usage'],
  );
  t.match(events[0]?.[1], { periodMs: 2000, events: [{ kind: 'Before' }] });
  const tick = async (count: number): Promise<void> => {
    clock.advance(1_000);
    await eventually(() => events.length === count);
  };
  await tick(6);
  t.same(
    events.slice(3).map(([name]) => name),
    ['state', 'usage', 'event'],
    'the first sample has nothing to compare with',
  );
  await tick(7);
  t.same(events.at(-1)?.[0], 'usage', 'no change');
  state = node({ gpus: [GPU], allocations: [allocation('new', [slice(GPU, { usedPercent: 12.34 })])] });
  journal.note({ level: 'info', kind: 'Started', message: 'new' });
  await tick(10);
  t.same(
    events.slice(7).map(([name]) => name),
    ['state', 'usage', 'event'],
  );
  t.match(events[7]?.[1], { allocations: [{ slices: [{ share: 30 }] }] });
  t.same((events[8]?.[1] as { slices: unknown[] }).slices, [
    { usedPercent: 12.3, usedMemoryBytes: 0, throttledSeconds: 0 },
  ]);
});

test('a reader that stops reading loses events, does not delay others, and is disconnected', async (t) => {
  const clock = new ManualClock();
  const scene = new Scene({ gpus: 16, slices: 500 });
  let looks = 0;
  const view = viewOf(() => {
    looks += 1;
    // Every sample has another state: each reader gets all of it each second.
    return { ...scene.snapshot(), version: String(looks) };
  });
  const { server, feed } = await served(t, view, { clock });
  const dead = await reader(server.port);
  dead.pause();
  const alive = await reader(server.port);
  const events = collect(alive);
  t.teardown(async () => {
    dead.destroy();
    alive.destroy();
  });
  await eventually(() => feed.readers === 2 && events.length >= 3);
  for (let second = 1; second <= 60; second++) {
    clock.advance(1_000);
    await eventually(() => events.filter(([name]) => name === 'usage').length >= second + 1, `second ${second}`);
  }
  await eventually(() => feed.readers === 1, 'the stalled reader to be disconnected');
  t.equal(looks, 62, 'each new reader causes one sample, and all readers together cause one per second');
  t.equal(events.filter(([name]) => name === 'state').length, 61, 'the other reader missed no event');
});

test('without readers the node is sampled for the history only', async (t) => {
  const clock = new ManualClock();
  const { history } = await served(
    t,
    viewOf(() => node({ atMs: clock.now(), gpus: [{ ...GPU, usedPercent: 50, usedMemoryBytes: null }] })),
    { clock },
  );
  clock.advance(600_000);
  const { used, memory } = history.gpus()[GPU.uuid] ?? { used: [], memory: [] };
  t.equal(used.length, 150);
  t.ok(used.every((percent) => percent === 50) && memory.every((mib) => mib === null));
});

test('a failing view writes a log line, and the feed continues', async (t) => {
  const clock = new ManualClock();
  let broken = false;
  const view = viewOf(() => {
    if (broken) throw new Error('no');
    return node({ gpus: [GPU] });
  });
  const { server } = await served(t, view, { clock });
  const socket = await reader(server.port);
  t.teardown(async () => void socket.destroy());
  const events = collect(socket);
  await eventually(() => events.length === 3);
  broken = true;
  clock.advance(3_000);
  broken = false;
  clock.advance(1_000);
  await eventually(() => events.length > 3);
  t.pass();
});

test('readers beyond the limit are refused', async (t) => {
  const { base, feed, get } = await served(
    t,
    viewOf(() => node({ gpus: [GPU] })),
  );
  const abort = new AbortController();
  const streams = await Promise.all(
    Array.from({ length: 64 }, () => fetch(`${base}/api/stream`, { signal: abort.signal })),
  );
  t.equal(feed.readers, 64);
  t.match(await get('/api/stream'), { text: /^event: busy/ });
  abort.abort();
  for (const stream of streams) await stream.body?.cancel().catch(() => undefined);
  await eventually(() => feed.readers === 0);
});
