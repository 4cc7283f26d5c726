import { test, type Test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { Events, type EventNote, type EventSubject } from '../../src/kube/events.js';
import { WorkQueue } from '../../src/kube/work-queue.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { hastyClock } from './hasty-clock.js';
import { apiServer, clientOf, NODE } from './setting.js';

const POD: EventSubject = { kind: 'Pod', namespace: 'team', name: 'train', uid: 'u1', container: 'main' };
const NOTE: EventNote = { type: 'Warning', reason: 'GPURefused', message: 'no GPU has 50 cores free' };

function recording(
  t: Test,
  server: ApiServer,
): { readonly events: Events; readonly queue: WorkQueue; readonly clock: ManualClock } {
  const queue = new WorkQueue({ clock: hastyClock, log: silentLog(), concurrency: 1 });
  const clock = new ManualClock(Date.UTC(2026, 10, 21, 10));
  t.teardown(() => queue.stop());
  return { events: new Events({ client: clientOf(t, server.url), queue, nodeName: NODE, clock }), queue, clock };
}

const idle = (queue: WorkQueue): Promise<true> => eventually(() => queue.counts.waiting === 0);

test('an event says what happened to which container, who says so and when', async (t) => {
  const server = await apiServer(t);
  const { events, queue } = recording(t, server);
  events.record(POD, NOTE);
  await idle(queue);
  t.match(server.all('events'), [
    {
      metadata: { namespace: 'team', name: /^train\.[0-9a-f]{16}$/ },
      involvedObject: {
        apiVersion: 'v1',
        kind: 'Pod',
        namespace: 'team',
        name: 'train',
        uid: 'u1',
        fieldPath: 'spec.containers{main}',
      },
      type: 'Warning',
      reason: 'GPURefused',
      message: 'no GPU has 50 cores free',
      count: 1,
      firstTimestamp: '2026-11-21T10:00:00Z',
      lastTimestamp: '2026-11-21T10:00:00Z',
      source: { component: 'gpu-manager', host: NODE },
      reportingComponent: 'gpu-manager',
      reportingInstance: NODE,
    },
  ]);
});

test('an event on the node goes to the default namespace', async (t) => {
  const server = await apiServer(t);
  const { events, queue } = recording(t, server);
  events.record(
    { kind: 'Node', namespace: '', name: NODE, uid: NODE },
    { type: 'Warning', reason: 'GPULost', message: 'GPU 3 fell off the bus' },
  );
  await idle(queue);
  t.match(server.all('events'), [{ metadata: { namespace: 'default' }, involvedObject: { kind: 'Node', name: NODE } }]);
});

test('the same event counts up for ten minutes, then begins anew', async (t) => {
  const server = await apiServer(t);
  const { events, queue, clock } = recording(t, server);
  for (let i = 0; i < 3; i += 1) {
    events.record(POD, NOTE);
    await idle(queue);
    clock.advance(60_000);
  }
  t.match(server.all('events'), [
    { count: 3, firstTimestamp: '2026-11-21T10:00:00Z', lastTimestamp: '2026-11-21T10:02:00Z' },
  ]);
  clock.advance(600_000);
  events.record(POD, NOTE);
  await idle(queue);
  t.match(
    server
      .all('events')
      .map((event) => event.count)
      .sort(),
    [1, 3],
  );
});

test('repeats that pile up while the server is away become one write', async (t) => {
  const server = await apiServer(t);
  const { events, queue } = recording(t, server);
  await server.stop();
  for (let i = 0; i < 20; i += 1) events.record(POD, NOTE);
  await server.start();
  await idle(queue);
  const [event] = server.all('events');
  t.equal(server.all('events').length, 1);
  t.equal(event?.count, 20);
});

test('an event whose answer was lost is not made twice', async (t) => {
  const server = await apiServer(t);
  const { events, queue } = recording(t, server);
  server.inject({ verb: 'create' }, { do: 'lose-answer' }, 1);
  events.record(POD, NOTE);
  await idle(queue);
  t.match(server.all('events'), [{ count: 1 }]);
});

test('an event that the server has forgotten is made anew', async (t) => {
  const server = await apiServer(t);
  const { events, queue } = recording(t, server);
  events.record(POD, NOTE);
  await idle(queue);
  server.remove('events', 'team', server.all('events')[0]?.metadata.name ?? '');
  events.record(POD, NOTE);
  await idle(queue);
  t.match(server.all('events'), [{ count: 2 }]);
});

test('many different messages for one reason are told as one', async (t) => {
  const server = await apiServer(t);
  const { events, queue } = recording(t, server);
  for (let i = 0; i < 20; i += 1) {
    events.record(POD, { ...NOTE, message: `attempt ${i}` });
    await idle(queue);
  }
  t.equal(server.all('events').length, 11);
  t.match(
    server.all('events').filter((event) => String(event.message).startsWith('more events')),
    [{ count: 10 }],
  );
});

test('a pod that causes a flood is cut off, others are not', async (t) => {
  const server = await apiServer(t);
  const { events, queue, clock } = recording(t, server);
  for (let i = 0; i < 100; i += 1) events.record(POD, NOTE);
  events.record({ ...POD, name: 'other', uid: 'u2' }, NOTE);
  await idle(queue);
  t.equal(events.suppressed, 75);
  t.equal(server.all('events').find((event) => event.metadata.name?.startsWith('other'))?.count, 1);
  clock.advance(300_000);
  events.record(POD, NOTE);
  events.record(POD, NOTE);
  t.equal(events.suppressed, 76, 'one more every five minutes');
});

test('messages are cut to what the server keeps, names too', async (t) => {
  const server = await apiServer(t);
  const { events, queue } = recording(t, server);
  events.record({ ...POD, name: 'x'.repeat(253) }, { ...NOTE, message: 'y'.repeat(5_000) });
  await idle(queue);
  const [event] = server.all('events');
  t.equal(String(event?.message).length, 1_024);
  t.ok((event?.metadata.name?.length ?? 999) <= 253);
});
