import { test } from 'tap';
import { Quota, type Demand } from '../../../../src/quota/index.js';

const at = (uid: string, version: number) => ({ kind: 'Deployment.apps', namespace: 'ns', name: 'web', uid, version });
const demand = (uid: string, version: number, count: number, group = 'g'): Demand => ({
  workload: at(uid, version),
  group,
  podSets: [{ count, limits: { cpu: 1 } }],
});

function quota(): Quota {
  const engine = new Quota();
  for (const name of ['g', 'h']) engine.createGroup({ name, hard: { 'limits.cpu': 10 } });
  return engine;
}

const see = (engine: Quota, uid: string, version: number, count: number, group = 'g') =>
  engine.execute({ type: 'observe', workload: at(uid, version), group, demand: demand(uid, version, count, group) });
const lose = (engine: Quota, uid: string, version: number) =>
  engine.execute({ type: 'observe', workload: at(uid, version), group: 'g', demand: null });
const used = (engine: Quota, group = 'g') => Number(engine.status(group)?.used.get('limits.cpu') ?? 0n) / 1000;

test('an existing object is charged, even beyond the quota', (t) => {
  const engine = quota();
  t.equal(see(engine, 'u', 5, 12).code, 'OK');
  t.equal(used(engine), 12);
  t.same(
    engine.status('g')?.conditions.map(({ type }) => type),
    ['OverQuota'],
  );
  t.end();
});

test('an observed object replaces its reservation', (t) => {
  const engine = quota();
  engine.reserve(demand('u', 0, 4), 60_000, 'create');
  t.equal(used(engine), 4);
  see(engine, 'u', 5, 4);
  t.equal(engine.status('g')?.reservations, 0);
  t.equal(used(engine), 4);
  t.end();
});

test('an admitted change that arrives in another form keeps no reservation', (t) => {
  const engine = quota();
  see(engine, 'u', 5, 2);
  engine.reserve(demand('u', 5, 9), 60_000, 'to nine');
  engine.reserve(demand('u', 5, 3), 60_000, 'to three');
  t.equal(used(engine), 9);
  see(engine, 'u', 6, 3);
  t.equal(used(engine), 3);
  t.end();
});

test('an old observation neither reduces a newer charge nor replaces a later reservation', (t) => {
  const engine = quota();
  see(engine, 'u', 5, 8);
  see(engine, 'u', 7, 3);
  engine.reserve(demand('u', 7, 8), 60_000, 'back to eight');
  see(engine, 'u', 5, 8);
  see(engine, 'u', 7, 3);
  t.equal(engine.status('g')?.reservations, 1);
  t.equal(used(engine), 8);
  t.end();
});

test('a deleted object is released, a new object of the same name is not', (t) => {
  const engine = quota();
  see(engine, 'old', 5, 3);
  engine.reserve(demand('new', 0, 4), 60_000, 'create anew');
  t.equal(used(engine), 4);
  t.equal(lose(engine, 'old', 9).code, 'OK');
  t.equal(used(engine), 4, 'the new one is still reserved');
  see(engine, 'new', 11, 4);
  t.equal(lose(engine, 'old', 9).code, 'NotManaged');
  t.equal(used(engine), 4);
  t.end();
});

test('an object that moved is charged to its new group', (t) => {
  const engine = quota();
  see(engine, 'u', 5, 3);
  engine.reserve(demand('u', 5, 3, 'h'), 60_000, 'move');
  t.same([used(engine), used(engine, 'h')], [3, 3], 'charged there before it is given back here');
  see(engine, 'u', 6, 3, 'h');
  t.same([used(engine), used(engine, 'h')], [0, 3]);
  t.same(engine.refresh().drift, []);
  t.end();
});

test('a repeated observation changes nothing', (t) => {
  const engine = quota();
  see(engine, 'u', 5, 3);
  const { revision } = engine;
  see(engine, 'u', 5, 3);
  see(engine, 'u', 8, 3);
  t.equal(engine.revision, revision);
  t.end();
});
