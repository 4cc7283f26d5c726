import { test } from 'tap';
import { ClusterModel, MAX_EVENTS } from '../../src/console/cluster-model.js';
import { eventRow } from '../../src/console/event-row.js';
import { groupRow } from '../../src/console/group-row.js';
import type { EventRow } from '../../src/console/rows.js';
import { readAllocation } from '../../src/kube/quota/allocation-object.js';
import { readConsumer } from '../../src/kube/quota/consumer-object.js';
import { readGroup } from '../../src/kube/quota/group-object.js';
import { allocationObject, condition, consumerObject, eventObject, groupObject } from './quota-objects.js';

test('a group shows limits with their use, and the hours of its budgets', (t) => {
  const row = groupRow(
    readGroup(
      groupObject('research', {
        parent: 'company',
        hard: { 'requests.nvidia.com/gpu': '8', 'cash/requests.nvidia.com/gpu': '700', pods: '0' },
        status: {
          hard: { 'requests.nvidia.com/gpu': '8', 'cash/requests.nvidia.com/gpu': '700' },
          used: { 'requests.nvidia.com/gpu': '6', 'cash/requests.nvidia.com/gpu': '601.98' },
          selfUsed: { 'requests.nvidia.com/gpu': '2' },
          burnRate: { 'cash/requests.nvidia.com/gpu': '6' },
          exhaustsAt: '2026-10-01T10:00:00Z',
          budgets: [{ key: 'cash/requests.nvidia.com/gpu', granted: '700', used: '601.98', left: '98.02' }],
          workloads: 3,
          conditions: [
            condition('Ready', 'True', 'in the ledger'),
            condition('CashLow', 'True', 'cash/requests.nvidia.com/gpu 80%'),
            condition('OverQuota', 'False', 'no key'),
          ],
        },
      }),
    ),
  );
  t.match(row, { name: 'research', parent: 'company', workloads: 3, exhaustsAtMs: Date.UTC(2026, 9, 1, 10) });
  t.same(row.limits, [
    { key: 'pods', hard: '0' },
    { key: 'requests.nvidia.com/gpu', hard: '8', used: '6', selfUsed: '2', part: 0.75 },
  ]);
  t.same(row.hours, [
    { key: 'requests.nvidia.com/gpu', hard: '700', used: '601.98', part: 0.86, left: '98.02', rate: '6' },
  ]);
  t.same(row.notes, ['CashLow: cash/requests.nvidia.com/gpu 80%']);
  t.end();
});

test('a group that the quota service has not reported shows its limits, and says so', (t) => {
  const row = groupRow(readGroup(groupObject('new', { hard: { 'limits.cpu': '10' } })));
  t.same(row.limits, [{ key: 'limits.cpu', hard: '10' }]);
  t.same(row.notes, ['the quota service has not reported this group yet']);
  t.end();
});

test('a consumer is joined from its Consumer and its Allocation, in either order and without either', (t) => {
  const consumer = readConsumer(
    consumerObject('vision', { weight: 2, reserved: { 'nvidia.com/gpu': 4 }, parent: 'app' }),
  );
  const allocation = readAllocation(
    allocationObject('vision', {
      deserved: { 'nvidia.com/gpu': '4' },
      allocated: { 'nvidia.com/gpu': '6' },
      dominantShare: '0.750',
      overused: ['nvidia.com/gpu'],
      reclaimAt: '2026-10-01T10:00:30.000Z',
      reclaimedFor: { second: '2026-10-01T09:00:00.000Z' },
      conditions: [condition('ReservedGuaranteed', 'False', 'the reservations of all consumers exceed the cluster')],
    }),
  );
  const joined = {
    name: 'vision',
    parent: 'app',
    weight: 2,
    part: 0.75,
    reclaimAtMs: Date.UTC(2026, 9, 1, 10, 0, 30),
    reclaimedFor: [{ name: 'second', atMs: Date.UTC(2026, 9, 1, 9) }],
    amounts: [{ resource: 'nvidia.com/gpu', reserved: '4', deserved: '4', allocated: '6', isOverused: true }],
    notes: ['the reservations of all consumers exceed the cluster'],
  };
  for (const consumerFirst of [true, false]) {
    const model = new ClusterModel();
    const row = () => model.all().shares[0]?.row ?? null;
    if (consumerFirst) model.setConsumer('vision', consumer);
    model.setAllocation('vision', allocation);
    if (!consumerFirst) {
      t.match(row(), { name: 'vision', parent: '', weight: 1 }, 'a namespace without a Consumer');
      model.setConsumer('vision', consumer);
    }
    t.match(row(), joined);
    model.setAllocation('vision', null);
    t.match(row(), { name: 'vision', parent: 'app', amounts: [{ reserved: '4', isOverused: false }] });
    t.notOk('reclaimAtMs' in (row() ?? {}));
    model.setConsumer('vision', null);
    t.equal(row(), null);
  }
  t.end();
});

test('an amount of a Consumer that cannot be read is a note', (t) => {
  const model = new ClusterModel();
  model.setConsumer('a', readConsumer(consumerObject('a', { hard: { cpu: 'many' } })));
  t.match(model.all().shares[0]?.row, { notes: [/^not accepted: hard: cpu: /] });
  t.end();
});

test('an event names its object, and belongs to its namespace', (t) => {
  t.match(
    eventRow(eventObject('a', 'GPULimitRefused', 'main: 40 is more than 30', { pod: 'train', type: 'Warning' })),
    {
      namespace: 'default',
      level: 'warning',
      kind: 'GPULimitRefused',
      message: 'default/train: main: 40 is more than 30',
      object: { kind: 'Pod', namespace: 'default', name: 'train' },
    },
  );
  t.match(eventRow(eventObject('b', 'ReclaimEnded', 'no pod waits')), {
    namespace: 'default',
    level: 'info',
    message: 'BizGroupResourceQuota research: no pod waits',
    object: { namespace: '' },
  });
  for (const broken of [null, {}, { metadata: { uid: 'a' } }, []]) t.equal(eventRow(broken), null);
  t.end();
});

test('only the newest events are kept, whatever the order in which they come', (t) => {
  const event = (at: number): EventRow => ({
    ...{ uid: `e${at}`, namespace: 'a', level: 'info', kind: 'GPUAssigned', message: '', count: 1, atMs: at },
    object: { kind: 'Pod', namespace: 'a', name: 'p' },
  });
  const model = new ClusterModel();
  const times = Array.from({ length: MAX_EVENTS + 50 }, (_, at) => (at * 7919) % (MAX_EVENTS + 50));
  for (const at of times) model.setEvent(`e${at}`, event(at));
  const kept = model.all().events.flatMap(({ row }) => row?.atMs ?? []);
  t.equal(kept.length, MAX_EVENTS);
  t.equal(Math.min(...kept), 50);
  model.setEvent('e60', null);
  t.equal(model.all().events.length, MAX_EVENTS - 1);
  t.end();
});
