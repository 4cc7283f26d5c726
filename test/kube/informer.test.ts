import { test, type Test } from 'tap';
import { systemClock, type Clock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { WatchInformer, INFORMER_TIMING, type ObjectChange, type InformerTiming } from '../../src/kube/informer.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { eventually } from '../harness/eventually.js';
import { apiServer, clientOf, NODE, podObject, QUICK } from './setting.js';

interface Options {
  readonly timing?: Partial<InformerTiming>;
  readonly pageSize?: number;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly isMetadataOnly?: boolean;
}

/** Follows the pods of the node by name; with the real client, the programmable server and short timers. */
function follow(
  t: Test,
  server: ApiServer,
  options: Options = {},
): WatchInformer<string> & { readonly changes: string[] } {
  const watch = new WatchInformer<string>({
    client: clientOf(t, server.url),
    path: '/api/v1/pods',
    fieldSelector: `spec.nodeName=${NODE}`,
    ...(options.isMetadataOnly === true ? { isMetadataOnly: true } : {}),
    keep: (object) => {
      const { metadata, spec } = object as KubeObject & { spec?: { nodeName?: string } };
      if (options.isMetadataOnly === true) return `${metadata.name ?? ''}${spec === undefined ? '' : ' with a spec'}`;
      return spec?.nodeName === NODE ? `${metadata.name ?? ''}${metadata.labels?.v ?? ''}` : null;
    },
    clock: options.clock ?? systemClock,
    log: silentLog(),
    timing: { ...QUICK, ...options.timing },
    pageSize: options.pageSize ?? null,
    random: options.random,
  });
  const changes: string[] = [];
  watch.onChange(({ before, after }: ObjectChange<string>) => changes.push(`${before ?? ''}>${after ?? ''}`));
  t.teardown(() => watch.stop());
  return Object.assign(watch, { changes });
}

async function following(t: Test, server: ApiServer, options?: Options): Promise<ReturnType<typeof follow>> {
  const watch = follow(t, server, options);
  watch.start();
  await eventually(() => watch.silentMs === 0 && server.watches().length === 1, 'the watch');
  return watch;
}

const names = (watch: WatchInformer<string>): string => watch.values().sort().join(' ');
const seen = (watch: WatchInformer<string>, wanted: string): Promise<true> =>
  eventually(() => names(watch) === wanted, `${wanted} (there is ${names(watch)})`);
const relabel = (server: ApiServer, name: string, v: string): KubeObject =>
  server.edit('pods', 'default', name, (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { v } } }));

test('the informer lists existing pods and follows changes, only for its node', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  server.seed('pods', podObject({ name: 'elsewhere', node: 'node2' }));
  const watch = await following(t, server);
  t.equal(names(watch), 'a');
  server.seed('pods', podObject({ name: 'b' }));
  server.seed('pods', podObject({ name: 'late', node: null }));
  await seen(watch, 'a b');
  server.edit('pods', 'default', 'late', (pod) => ({ ...pod, spec: { ...(pod.spec as object), nodeName: NODE } }));
  relabel(server, 'a', '2');
  server.remove('pods', 'default', 'b');
  await seen(watch, 'a2 late');
  t.same(watch.changes, ['>a', '>b', '>late', 'a>a2', 'b>']);
  t.match(server.requests, [
    { verb: 'list', query: { fieldSelector: 'spec.nodeName=node1', resourceVersion: '0' } },
    { verb: 'watch', query: { fieldSelector: 'spec.nodeName=node1', allowWatchBookmarks: 'true' } },
  ]);
  t.equal(server.requests.length, 2);
});

test('an informer of metadata gets no other fields, in lists and in events', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  const watch = await following(t, server, { isMetadataOnly: true });
  await seen(watch, 'a');
  server.seed('pods', podObject({ name: 'b' }));
  await seen(watch, 'a b');
});

test('the cache is not synced before the first list, however long the server takes', async (t) => {
  const server = await apiServer(t);
  server.inject({ verb: 'list' }, { do: 'answer', code: 500 }, 5);
  const watch = follow(t, server);
  watch.start();
  await eventually(() => server.requests.length === 5);
  t.equal(watch.synced, false);
  t.same(watch.values(), []);
  await eventually(() => watch.synced);
  t.equal(watch.counts.failures.get('server-error'), 5);
});

test('after the server closes a watch, a new watch continues without another list', async (t) => {
  const server = await apiServer(t);
  const watch = await following(t, server);
  for (const name of ['a', 'b', 'c']) {
    server.watches()[0]?.end();
    server.seed('pods', podObject({ name }));
    await eventually(() => watch.values().includes(name), name);
    await eventually(() => server.watches().length === 1);
  }
  t.equal(watch.counts.lists, 1);
  t.equal(watch.counts.watches, 4);
});

test('a broken connection loses no event', async (t) => {
  const server = await apiServer(t);
  const watch = await following(t, server);
  server.watches()[0]?.cut();
  server.seed('pods', podObject({ name: 'a' }));
  server.remove('pods', 'default', 'a');
  server.seed('pods', podObject({ name: 'b' }));
  await seen(watch, 'b');
  t.same(watch.changes, ['>a', 'a>', '>b'], 'the informer reports even a pod that came and went meanwhile');
});

test('expired history is replaced by a list, which shows deletions in between', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  const watch = await following(t, server);
  server.watches()[0]?.silence();
  server.remove('pods', 'default', 'a');
  server.seed('pods', podObject({ name: 'b' }));
  server.compact();
  server.watches()[0]?.cut();
  await seen(watch, 'b');
  t.same(watch.changes, ['>a', 'a>', '>b']);
  t.equal(watch.counts.failures.get('expired'), 1);
});

test('the informer recognises 410 as an event and as an answer', async (t) => {
  const server = await apiServer(t);
  const watch = await following(t, server);
  server.watches()[0]?.expire();
  await eventually(() => watch.counts.lists === 2 && server.watches().length === 1);
  server.inject({ verb: 'watch' }, { do: 'answer', code: 410, reason: 'Expired' }, 1);
  server.watches()[0]?.cut();
  await eventually(() => watch.counts.lists === 3);
  server.seed('pods', podObject({ name: 'a' }));
  await seen(watch, 'a');
  t.equal(watch.counts.failures.get('expired'), 2);
});

test('the informer leaves a silent peer after the idle limit, and lists what it missed', async (t) => {
  const server = await apiServer(t);
  const watch = await following(t, server, { timing: { idleMs: 60 } });
  const stream = server.watches()[0];
  stream?.silence();
  server.seed('pods', podObject({ name: 'a' }));
  await seen(watch, 'a');
  t.ok((watch.counts.failures.get('timeout') ?? 0) >= 1);
});

test('bookmarks advance the resourceVersion of a quiet watch', async (t) => {
  const server = await apiServer(t, { bookmarkPeriodMs: 5 });
  const watch = await following(t, server);
  // On a busy machine a bookmark may come later than a compaction, which makes the informer list again.
  await eventually(async () => {
    const { lists, watches } = watch.counts;
    server.seed('nodes', { metadata: { name: `after-${lists}` } });
    await new Promise((resolve) => setTimeout(resolve, 60));
    t.equal(watch.counts.watches, watches);
    server.compact();
    server.watches()[0]?.end();
    await eventually(() => watch.counts.watches > watches && server.watches().length === 1);
    return watch.counts.lists === lists;
  }, 'a bookmark newer than the compaction');
});

test('the informer retries a dead server until the server is back', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  const watch = await following(t, server);
  await server.stop();
  await eventually(() => (watch.counts.failures.get('unreachable') ?? 0) > 3);
  t.equal(names(watch), 'a', 'the cache keeps its objects');
  t.ok(watch.silentMs > 0);
  server.remove('pods', 'default', 'a');
  server.seed('pods', podObject({ name: 'b' }));
  await server.start();
  await seen(watch, 'b');
});

test('the informer detects restored storage by the first bookmark, and lists again', async (t) => {
  const server = await apiServer(t, { bookmarkPeriodMs: 20 });
  server.seed('pods', podObject({ name: 'a' }));
  const watch = await following(t, server);
  server.rewind(3);
  server.remove('pods', 'default', 'a');
  server.watches()[0]?.cut();
  server.seed('pods', podObject({ name: 'b' }));
  await seen(watch, 'b');
  t.ok((watch.counts.failures.get('too-new') ?? 0) >= 1);
  t.notOk(
    server.requests
      .filter((request) => request.verb === 'list')
      .slice(1)
      .some((request) => 'resourceVersion' in request.query),
    'the list comes from the storage, not from a cache',
  );
});

test('the informer rejects a list of a replica that lags behind', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  const watch = await following(t, server, { timing: { relistMs: 0 } });
  const message = 'Timeout: Too large resource version: 1001, current: 900';
  server.inject({ verb: 'list' }, { do: 'answer', code: 504, reason: 'Timeout', message }, 1);
  server.watches()[0]?.cut();
  server.seed('pods', podObject({ name: 'b' }));
  await seen(watch, 'a b');
  t.match(
    server.requests.filter((request) => request.verb === 'list').map((request) => request.query.resourceVersion),
    ['0', '1001', undefined],
  );
});

test('large collections arrive in pages, and an expired page restarts the list', async (t) => {
  const server = await apiServer(t);
  for (let i = 0; i < 25; i += 1) server.seed('pods', podObject({ name: `p${String(i).padStart(2, '0')}` }));
  server.inject({ verb: 'list' }, { do: 'delay', ms: 0 }, 2);
  server.inject({ verb: 'list' }, { do: 'answer', code: 410, reason: 'Expired' }, 1);
  const watch = await following(t, server, { pageSize: 10 });
  t.equal(watch.values().length, 25);
  const lists = server.requests.filter((request) => request.verb === 'list');
  t.same(
    lists.map((request) => 'continue' in request.query),
    [false, true, true, false, true, true],
  );
});

test('a paged list shows one moment, and the watch continues from there', async (t) => {
  const server = await apiServer(t);
  for (const name of ['a', 'b', 'c', 'd']) server.seed('pods', podObject({ name }));
  server.inject(
    { verb: 'list' },
    {
      do: 'distort',
      change: (list) => {
        server.remove('pods', 'default', 'd');
        server.clearFaults();
        return list;
      },
    },
  );
  const watch = await following(t, server, { pageSize: 2 });
  await seen(watch, 'a b c');
  t.same(watch.changes, ['>a', '>b', '>c', '>d', 'd>']);
});

const LIES: readonly (readonly [string, string])[] = [
  ["a proxy's page", '<html>\n'],
  ['null', 'null\n'],
  ['a bare string', '"ADDED"\n'],
  ['an event of an unknown type', '{"type":"SURPRISE","object":{"metadata":{"uid":"x","resourceVersion":"5"}}}\n'],
  ['an event without object', '{"type":"ADDED"}\n'],
  ['an object without metadata', '{"type":"ADDED","object":{}}\n'],
  ['an error without a code', '{"type":"ERROR","object":null}\n'],
  ['half an event', '{"type":"ADDED","obj'],
];

test('invalid data on the watch closes the connection', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  const watch = await following(t, server);
  for (const [what, text] of LIES) {
    const before = watch.counts.watches;
    server.watches()[0]?.sendText(text);
    if (text.endsWith('\n')) await eventually(() => watch.counts.watches > before, what);
    else server.watches()[0]?.cut();
    await eventually(() => watch.counts.watches > before && server.watches().length === 1, what);
    t.equal(names(watch), 'a', what);
  }
});

test('an invalid list is not accepted', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  for (const body of [
    'null',
    '[]',
    '{}',
    '{"metadata":{}}',
    '{"metadata":{"resourceVersion":"5"},"items":"many"}',
    '{"metadata":{"resourceVersion":7},"items":[]}',
  ]) {
    server.inject({ verb: 'list' }, { do: 'answer', code: 200, body }, 1);
  }
  const watch = await following(t, server);
  t.equal(names(watch), 'a');
  t.equal(watch.counts.failures.get('malformed'), 6);
});

test('the cache never holds objects of other nodes or invalid objects', async (t) => {
  const server = await apiServer(t);
  const watch = await following(t, server);
  const event = (type: string, object: unknown): void => server.watches()[0]?.send({ type, object });
  event('ADDED', { metadata: { name: 'x', uid: 'x', resourceVersion: '1001' }, spec: { nodeName: 'node2' } });
  event('ADDED', { metadata: { name: 'y', resourceVersion: '1002' }, spec: { nodeName: NODE } });
  event('DELETED', { metadata: { name: 'z', uid: 'z', resourceVersion: '1003' } });
  event('ADDED', { metadata: { name: 'a', uid: 'a', resourceVersion: '1004' }, spec: { nodeName: NODE } });
  event('MODIFIED', { metadata: { name: 'a', uid: 'a', resourceVersion: '1005' }, spec: { nodeName: 'node2' } });
  await eventually(() => watch.changes.length === 2);
  t.same(watch.changes, ['>a', 'a>']);
});

test('the informer does not report a repeated event', async (t) => {
  const server = await apiServer(t);
  const watch = await following(t, server);
  const pod = server.seed('pods', podObject({ name: 'a' }));
  server.watches()[0]?.send({ type: 'MODIFIED', object: pod });
  server.seed('pods', podObject({ name: 'b' }));
  await seen(watch, 'a b');
  t.same(watch.changes, ['>a', '>b']);
});

test('the informer lists again from time to time without an error', async (t) => {
  const server = await apiServer(t);
  const watch = await following(t, server, { timing: { relistMs: 0 } });
  server.inject({ verb: 'watch' }, { do: 'distort', change: (event) => ({ ...event, type: 'BOOKMARK' }) }, 1);
  server.watches()[0]?.end();
  await eventually(() => server.watches().length === 1 && watch.counts.watches === 2);
  server.seed('pods', podObject({ name: 'a' }));
  t.equal(names(watch), '', 'the event was lost');
  server.watches()[0]?.end();
  await seen(watch, 'a');
});

test('a listener that throws does not end the watch', async (t) => {
  const server = await apiServer(t);
  const watch = follow(t, server);
  watch.onChange(() => {
    throw new Error('listener');
  });
  watch.start();
  server.seed('pods', podObject({ name: 'a' }));
  await seen(watch, 'a');
  server.seed('pods', podObject({ name: 'b' }));
  await seen(watch, 'a b');
  t.equal(watch.counts.watches, 1);
});

/** A clock that records waits and ends them at once. */
function impatientClock(waits: number[]): Clock {
  return {
    now: () => 0,
    after(delayMs, action) {
      waits.push(delayMs);
      const handle = setImmediate(action);
      return () => clearImmediate(handle);
    },
    every: () => () => undefined,
  };
}

test('after failures the informer waits 1 to 30 s, doubled and jittered, and never less than the minimum', async (t) => {
  const server = await apiServer(t);
  server.inject({ verb: 'list' }, { do: 'answer', code: 503 }, 12);
  const run = async (random: () => number): Promise<number[]> => {
    const waits: number[] = [];
    const watch = follow(t, server, { clock: impatientClock(waits), random, timing: INFORMER_TIMING });
    watch.start();
    await eventually(() => waits.length >= 7);
    await watch.stop();
    return waits.slice(0, 7);
  };
  t.same(await run(() => 1), [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  server.inject({ verb: 'list' }, { do: 'answer', code: 503 }, 12);
  t.same(await run(() => 0), [1_000, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
});

test('the informer respects the retry delay of the server, up to a limit', async (t) => {
  const server = await apiServer(t);
  server.inject({ verb: 'list' }, { do: 'answer', code: 429, retryAfterSeconds: 20 }, 1);
  server.inject({ verb: 'list' }, { do: 'answer', code: 429, retryAfterSeconds: 86_400 }, 1);
  const waits: number[] = [];
  const watch = follow(t, server, { clock: impatientClock(waits), random: () => 1, timing: INFORMER_TIMING });
  watch.start();
  await eventually(() => watch.synced);
  t.same(waits.slice(0, 2), [20_000, 60_000]);
});

test('the informer limits its requests to a server that closes every watch at once', async (t) => {
  const server = await apiServer(t);
  const waits: number[] = [];
  const watch = follow(t, server, { clock: impatientClock(waits), random: () => 1, timing: INFORMER_TIMING });
  watch.start();
  const closing = setInterval(() => server.watches()[0]?.end(), 1);
  t.teardown(() => clearInterval(closing));
  await eventually(() => waits.length >= 6);
  t.same(waits.slice(0, 6), [1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
});

test('a stop ends the informer while it lists, watches or waits', async (t) => {
  const server = await apiServer(t);
  const watching = await following(t, server);
  await watching.stop();
  await eventually(() => server.watches().length === 0);

  const waiting = follow(t, server, { timing: { ...QUICK, floorMs: 3_600_000 } });
  server.inject({ verb: 'list' }, { do: 'reset' }, 2);
  waiting.start();
  await eventually(() => (waiting.counts.failures.get('unreachable') ?? 0) === 1);
  await waiting.stop();

  const idle = follow(t, server);
  await idle.stop();
  t.equal(idle.synced, false);
});

test('a waiter for the cache resolves once the cache is synced and its objects are reported, or when the informer stops', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  const watch = follow(t, server);
  let isSynced = false;
  const waiting = watch.whenSynced().then(() => {
    isSynced = true;
    return [...watch.changes];
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(isSynced, false);
  watch.start();
  t.same(await waiting, ['>a'], 'the waiter resolves after the objects were reported');
  await watch.whenSynced();
  const never = follow(t, server);
  const stopped = never.whenSynced();
  await never.stop();
  await stopped;
  t.equal(never.synced, false);
});
