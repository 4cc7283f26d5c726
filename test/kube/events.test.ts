import { test, type Test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { Events, podSubject, type EventNote, type EventReporter, type EventSubject } from '../../src/kube/events.js';
import { WorkQueue } from '../../src/kube/work-queue.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { hastyClock } from './hasty-clock.js';
import { apiServer, clientOf, NODE } from './setting.js';

const POD = podSubject({ namespace: 'team', name: 'train', uid: 'u1' }, 'main');
const GROUP: EventSubject = {
  apiVersion: 'quota.gpu-manager.io/v1alpha1',
  kind: 'BizGroupResourceQuota',
  namespace: '',
  name: 'research',
  uid: 'g1',
};
const NOTE: EventNote = { type: 'Warning', reason: 'GPURefused', message: 'no GPU has 50 cores free' };

/** The programs that report events; each statement below holds for all of them. */
const REPORTERS: Readonly<
  Record<string, { readonly reporter: EventReporter; readonly source: object; readonly subject: EventSubject }>
> = {
  'the agent': {
    reporter: { component: 'gpu-manager', instance: NODE, host: NODE },
    source: { component: 'gpu-manager', host: NODE },
    subject: POD,
  },
  'the quota controller': {
    reporter: { component: 'gpu-manager-quota', instance: 'quota-0', host: null },
    source: { component: 'gpu-manager-quota' },
    subject: GROUP,
  },
};

const idle = (queue: WorkQueue): Promise<true> => eventually(() => queue.counts.waiting === 0);

for (const [who, { reporter, source, subject }] of Object.entries(REPORTERS)) {
  const recording = (
    t: Test,
    server: ApiServer,
  ): { readonly events: Events; readonly queue: WorkQueue; readonly clock: ManualClock } => {
    const queue = new WorkQueue({ clock: hastyClock, log: silentLog(), concurrency: 1 });
    const clock = new ManualClock(Date.UTC(2026, 10, 21, 10));
    t.teardown(() => queue.stop());
    return { events: new Events({ api: clientOf(t, server.url), queue, reporter, clock }), queue, clock };
  };

  test(`${who}: an event names its object, its reporter and its time`, async (t) => {
    const server = await apiServer(t);
    const { events, queue } = recording(t, server);
    events.record(subject, NOTE);
    await idle(queue);
    const [event] = server.all('events');
    t.match(event, {
      type: 'Warning',
      reason: 'GPURefused',
      message: 'no GPU has 50 cores free',
      count: 1,
      firstTimestamp: '2026-11-21T10:00:00Z',
      lastTimestamp: '2026-11-21T10:00:00Z',
      reportingComponent: reporter.component,
      reportingInstance: reporter.instance,
    });
    t.match(event?.metadata.name, /\.[0-9a-f]{16}$/);
    t.same(event?.['source'], source);
  });

  test(`${who}: an equal event raises the count for ten minutes, and then starts a new event`, async (t) => {
    const server = await apiServer(t);
    const { events, queue, clock } = recording(t, server);
    for (let i = 0; i < 3; i += 1) {
      events.record(subject, NOTE);
      await idle(queue);
      clock.advance(60_000);
    }
    t.match(server.all('events'), [
      { count: 3, firstTimestamp: '2026-11-21T10:00:00Z', lastTimestamp: '2026-11-21T10:02:00Z' },
    ]);
    clock.advance(600_000);
    events.record(subject, NOTE);
    await idle(queue);
    t.match(
      server
        .all('events')
        .map((event) => event.count)
        .sort(),
      [1, 3],
    );
  });

  test(`${who}: repeats that wait for the server become one write`, async (t) => {
    const server = await apiServer(t);
    const { events, queue } = recording(t, server);
    await server.stop();
    for (let i = 0; i < 20; i += 1) events.record(subject, NOTE);
    await server.start();
    await idle(queue);
    t.match(server.all('events'), [{ count: 20 }]);
    t.equal(server.all('events').length, 1);
  });

  test(`${who}: an event whose answer was lost is not created twice`, async (t) => {
    const server = await apiServer(t);
    const { events, queue } = recording(t, server);
    server.inject({ verb: 'create' }, { do: 'lose-answer' }, 1);
    events.record(subject, NOTE);
    await idle(queue);
    t.match(server.all('events'), [{ count: 1 }]);
    t.equal(server.all('events').length, 1);
  });

  test(`${who}: an event that the server has expired is created anew`, async (t) => {
    const server = await apiServer(t);
    const { events, queue } = recording(t, server);
    events.record(subject, NOTE);
    await idle(queue);
    const { namespace = '', name = '' } = server.all('events')[0]?.metadata ?? {};
    server.remove('events', namespace, name);
    events.record(subject, NOTE);
    await idle(queue);
    t.match(server.all('events'), [{ count: 2 }]);
  });

  test(`${who}: many messages with one reason become one event`, async (t) => {
    const server = await apiServer(t);
    const { events, queue } = recording(t, server);
    for (let i = 0; i < 20; i += 1) {
      events.record(subject, { ...NOTE, message: `attempt ${i}` });
      await idle(queue);
    }
    t.equal(server.all('events').length, 11);
    t.match(
      server.all('events').filter((event) => String(event.message).startsWith('more events')),
      [
        {
          count: 10,
          message: `more events of this kind; see the log of ${reporter.component} on ${reporter.instance}`,
        },
      ],
    );
  });

  test(`${who}: many events of one object are limited, and events of other objects are written`, async (t) => {
    const server = await apiServer(t);
    const { events, queue, clock } = recording(t, server);
    for (let i = 0; i < 100; i += 1) events.record(subject, NOTE);
    events.record({ ...subject, name: 'other', uid: 'u2' }, NOTE);
    await idle(queue);
    t.equal(events.suppressed, 75);
    t.equal(server.all('events').find((event) => event.metadata.name?.startsWith('other'))?.count, 1);
    clock.advance(300_000);
    events.record(subject, NOTE);
    events.record(subject, NOTE);
    t.equal(events.suppressed, 76, 'the limit admits one more event every five minutes');
  });

  test(`${who}: messages and names are truncated to the server's limits`, async (t) => {
    const server = await apiServer(t);
    const { events, queue } = recording(t, server);
    events.record({ ...subject, name: 'x'.repeat(253) }, { ...NOTE, message: 'y'.repeat(5_000) });
    await idle(queue);
    const [event] = server.all('events');
    t.equal(String(event?.message).length, 1_024);
    t.ok((event?.metadata.name?.length ?? 999) <= 253);
  });
}

test('an event names the container of a pod, and has no namespace for a cluster-scoped object', async (t) => {
  const server = await apiServer(t);
  const queue = new WorkQueue({ clock: hastyClock, log: silentLog(), concurrency: 1 });
  t.teardown(() => queue.stop());
  const { reporter } = REPORTERS['the agent']!;
  const events = new Events({ api: clientOf(t, server.url), queue, reporter, clock: new ManualClock() });
  events.record(POD, NOTE);
  events.record(GROUP, NOTE);
  await idle(queue);
  const about = (namespace: string): unknown =>
    server.all('events').find((event) => event.metadata.namespace === namespace)?.['involvedObject'];
  t.same(about('team'), {
    apiVersion: 'v1',
    kind: 'Pod',
    namespace: 'team',
    name: 'train',
    uid: 'u1',
    fieldPath: 'spec.containers{main}',
  });
  t.same(about('default'), {
    apiVersion: 'quota.gpu-manager.io/v1alpha1',
    kind: 'BizGroupResourceQuota',
    name: 'research',
    uid: 'g1',
  });
});
