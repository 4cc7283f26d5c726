import { test } from 'tap';
import { Quota, formatAmount, type QuotaEvent } from '../../../../src/quota/index.js';

const MINUTE = 60_000;

function office() {
  let now = 0;
  const quota = new Quota({ clock: () => now });
  const events: QuotaEvent[] = [];
  quota.on((event) => events.push(event));
  quota.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  quota.createGroup({ name: 'h', hard: { 'limits.cpu': 10 } });
  return {
    quota,
    events,
    at: (minute: number): void => {
      now = minute * MINUTE;
      quota.execute({ type: 'tick' });
    },
    used: (group = 'g') => formatAmount('limits.cpu', quota.status(group)?.used.get('limits.cpu') ?? -1n),
  };
}

const asks = (count: number, group = 'g', name = 'w') => ({
  workload: { kind: 'Job', name },
  group,
  podSets: [{ count, limits: { cpu: 1 } }],
});

test('a reservation counts as used until it expires', (t) => {
  const { quota, used, at, events } = office();
  const decision = quota.reserve(asks(8), MINUTE, 'op');
  t.equal(decision.reservation, 'op');
  t.equal(used(), '8');
  const refused = quota.admit(asks(3, 'g', 'other'));
  t.equal(refused.code, 'QuotaExceeded');
  t.equal(refused.hints.freeAt, MINUTE, 'the answer says when there is room again');
  at(1);
  t.equal(used(), '0');
  t.ok(events.some(({ type, subject }) => type === 'reservationExpired' && subject === 'Job//w'));
  t.equal(quota.confirm('op').code, 'ReservationNotFound');
  t.end();
});

test('a confirmed reservation stays', (t) => {
  const { quota, used, at } = office();
  quota.reserve(asks(8), MINUTE, 'op');
  t.equal(quota.confirm('op').code, 'OK');
  at(5);
  t.equal(used(), '8');
  t.equal(quota.status('g')?.workloads, 1);
  t.equal(quota.confirm('op').code, 'ReservationNotFound', 'once');
  t.end();
});

test('a repeated operation extends its reservation', (t) => {
  const { quota, used, at } = office();
  quota.reserve(asks(8), 2 * MINUTE, 'op');
  at(1);
  t.equal(quota.reserve(asks(8), 2 * MINUTE, 'op').code, 'OK');
  t.equal(used(), '8');
  at(2);
  t.equal(used(), '8');
  at(3);
  t.equal(used(), '0');
  t.end();
});

test('several operations on one workload reserve the largest of their demands', (t) => {
  const { quota, used } = office();
  quota.admit(asks(2));
  quota.reserve(asks(5), MINUTE, 'up');
  quota.reserve(asks(4), MINUTE, 'less');
  t.equal(used(), '5');
  t.equal(quota.reserve(asks(11), MINUTE, 'much').code, 'QuotaExceeded');
  quota.confirm('less');
  t.equal(used(), '5', 'the other may still come');
  quota.cancel('up');
  t.equal(used(), '4');
  t.end();
});

test('an operation that is repeated with a smaller demand reserves less', (t) => {
  const { quota, used } = office();
  quota.reserve(asks(5), MINUTE, 'op');
  quota.reserve(asks(2), MINUTE, 'op');
  t.equal(used(), '2');
  t.same(quota.refresh().drift, []);
  t.end();
});

test('a smaller demand frees quota only when it is confirmed', (t) => {
  const { quota, used, at } = office();
  quota.admit(asks(6));
  quota.reserve(asks(2), MINUTE, 'down');
  t.equal(used(), '6');
  at(2);
  t.equal(used(), '6', 'it never came');
  quota.reserve(asks(2), MINUTE, 'down');
  quota.confirm('down');
  t.equal(used(), '2');
  t.end();
});

test('a move is charged to the new group before the old group is released', (t) => {
  const { quota, used } = office();
  quota.admit(asks(6));
  quota.reserve(asks(6, 'h'), MINUTE, 'move');
  t.same([used('g'), used('h')], ['6', '6']);
  quota.confirm('move');
  t.same([used('g'), used('h')], ['0', '6']);
  t.end();
});

test('an admission replaces its reservation, and a release ends it', (t) => {
  const { quota, used } = office();
  quota.reserve(asks(6), MINUTE, 'op');
  t.equal(quota.admit(asks(10)).code, 'OK');
  t.equal(used(), '10');
  t.equal(quota.status('g')?.reservations, 0);
  quota.release({ kind: 'Job', name: 'w' });
  quota.reserve(asks(6), MINUTE, 'op');
  quota.release({ kind: 'Job', name: 'w' });
  t.equal(used(), '0');
  t.end();
});

test('an operation belongs to one workload, and a group has a maximum of operations', (t) => {
  const { quota } = office();
  t.equal(quota.reserve(asks(1), MINUTE, 'op').code, 'OK');
  t.equal(quota.reserve(asks(1, 'g', 'other'), MINUTE, 'op').code, 'InvalidDemand');
  t.equal(quota.reserve(asks(1), 0, 'zero').code, 'InvalidTime');
  t.equal(quota.reserve(asks(1, 'nope'), MINUTE).code, 'GroupNotFound');
  t.equal(quota.reserve(asks(1, ''), MINUTE).code, 'NotManaged');
  for (let index = 1; index < 1024; index++) quota.reserve(asks(0, 'g', `w${index}`), MINUTE);
  t.equal(quota.reserve(asks(0, 'g', 'last'), MINUTE).code, 'TooManyReservations');
  t.equal(quota.reserve(asks(2), MINUTE, 'op').code, 'OK', 'one that is there may be renewed');
  t.end();
});
