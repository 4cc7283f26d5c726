import { test } from 'tap';
import {
  arbitrate,
  createEngine,
  JournalStore,
  MemoryStore,
  Quota,
  ShapeError,
  type Command,
} from '../../../src/quota/index.js';
import { scratchDirectory } from '../../scratch.js';

const workload = { kind: 'Job', name: 'w' };

/** Invalid commands of a JavaScript program, with the field that is wrong. */
const MISSHAPEN: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /^a command: expected an object, found a value of type undefined/],
  ['tick', /^a command: expected an object/],
  [{ type: 'admit', group: 'g', podSets: [] }, /^admit: workload: required field is missing/],
  [{ type: 'admit', workload: 'Job/w', group: 'g', podSets: [] }, /^admit: workload: expected an object/],
  [
    { type: 'admit', workload: { kind: 'Job', name: 5 }, group: 'g', podSets: [] },
    /^admit: workload\.name: expected a string/,
  ],
  [{ type: 'admit', workload, group: 'g', podSets: 5 }, /^admit: podSets: expected a list/],
  [
    { type: 'admit', workload, group: 'g', podSets: [{ count: '5' }] },
    /^admit: podSets\[0\]\.count: expected a number/,
  ],
  [
    { type: 'admit', workload, group: 'g', podSets: [{ count: 1, limit: { cpu: 1 } }] },
    /^admit: podSets\[0\]\.limit: unknown field/,
  ],
  [
    { type: 'admit', workload, group: 'g', podSets: [{ count: 1, limits: 'cpu=1' }] },
    /^admit: podSets\[0\]\.limits: expected an object/,
  ],
  [{ type: 'admit', workload, group: 'g', podSets: [null] }, /^admit: podSets\[0\]: expected an object, found null/],
  [{ type: 'admit', workload, group: null, podSets: [] }, /^admit: group: expected a string, found null/],
  [{ type: 'admit', workload, group: 'g', podSets: [], types: { gpu: 4 } }, /^admit: types\.gpu: expected a string/],
  [{ type: 'createGroup', name: 'h' }, /^createGroup: hard: required field is missing/],
  [{ type: 'createGroup', name: 'h', hard: [] }, /^createGroup: hard: expected an object, found a list/],
  [{ type: 'createGroup', name: 'h', hard: {}, parent: 7 }, /^createGroup: parent: expected a string/],
  [{ type: 'updateGroup', name: 'g', force: 'yes' }, /^updateGroup: force: expected true or false/],
  [{ type: 'scale', workload, replicas: '3' }, /^scale: replicas: expected a number/],
  [{ type: 'grant', id: 'a', group: 'g', key: 'cash/limits.cpu' }, /^grant: amount: required field is missing/],
  [
    { type: 'loan', id: 'a', lender: 'g', borrower: 'h', amounts: {}, until: 'tomorrow' },
    /^loan: until: expected a number/,
  ],
  [{ type: 'podStarted', pod: 1, workload }, /^podStarted: pod: expected a string/],
  [{ type: 'observe', workload, group: 'g' }, /^observe: demand: required field is missing/],
  [{ type: 'tick', actor: {} }, /^tick: actor: expected a string/],
];

/** Commands of the right shape with invalid values. */
const UNKNOWN: readonly (readonly [unknown, string, RegExp])[] = [
  [
    { type: 'admitt', workload, group: 'g', podSets: [] },
    'InvalidCommand',
    /unknown command "admitt"; expected one of createGroup, /,
  ],
  [{ type: 'constructor' }, 'InvalidCommand', /"constructor"/],
  [{}, 'InvalidCommand', /^unknown command undefined/],
  [
    { type: 'createGroup', name: 'h', hard: {}, mode: 'loose' },
    'InvalidMode',
    /unknown mode "loose"; expected one of carved, elastic/,
  ],
  [{ type: 'checkHpa', workload, maxReplicas: 1, mode: 'gate' }, 'InvalidMode', /expected one of advisory, reserve/],
  [
    { type: 'grant', id: 'a', group: 'g', key: 'cash/limits.cpu', amount: 1, mode: 7 },
    'InvalidMode',
    /unknown mode "7"; expected one of topup, reset/,
  ],
  [{ type: 'createGroup', name: 5, hard: {} }, 'InvalidName', /name: expected a string, found "5"/],
  [{ type: 'deleteGroup', name: 5 }, 'InvalidName', /found "5"/],
  [{ type: 'updateGroup', hard: {} }, 'InvalidName', /found undefined/],
];

test('a command of the wrong shape rejects with the name of its field, and changes nothing', async (t) => {
  for (const store of [new MemoryStore(), await JournalStore.open(await scratchDirectory(t))]) {
    const engine = await createEngine({ store, clock: () => 1 });
    await engine.createGroup({ name: 'g', hard: { 'limits.cpu': 4, 'cash/limits.cpu': 4 } });
    const before = JSON.stringify([...engine.records()].map(({ kind, key }) => [kind, key]));
    for (const [command, message] of MISSHAPEN)
      await t.rejects(engine.execute(command as Command), { name: 'ShapeError', message }, String(message));
    for (const [command, code, message] of UNKNOWN) {
      const decision = await engine.execute(command as Command);
      t.match(decision, { allowed: false, code });
      t.match(decision.message, message);
    }
    t.equal(JSON.stringify([...engine.records()].map(({ kind, key }) => [kind, key])), before);
    t.match(await engine.admit({ workload, group: 'g', podSets: [{ count: 1, limits: { cpu: 4 } }] }), {
      allowed: true,
    });
    await engine.close();
  }
});

test('the engine without a store throws the same', (t) => {
  const quota = new Quota();
  for (const [command, message] of MISSHAPEN)
    t.throws(() => quota.execute(command as Command, 1), { name: 'ShapeError', message });
  for (const [command, code] of UNKNOWN) t.match(quota.execute(command as Command, 1), { allowed: false, code });
  t.throws(() => quota.admit({} as never), ShapeError);
  t.throws(() => quota.explain(null as never), { message: 'explain: expected an object, found null' });
  t.throws(() => quota.simulate([{ command: { type: 'tick', actor: 1 } as never }]), /tick: actor/);
  t.end();
});

test('an option that does not exist is refused by name, and a closed engine refuses commands', async (t) => {
  // As JavaScript would: TypeScript refuses these.
  const odd = { stroe: 1 } as object;
  await t.rejects(createEngine(odd), { name: 'ShapeError', message: /createEngine: unknown option "stroe"; expected/ });
  await t.rejects(createEngine({ policy: odd }), { message: /createEngine: policy: unknown option "stroe"/ });
  t.throws(() => new Quota(odd), { name: 'ShapeError' });
  await t.rejects(JournalStore.open('unused', odd), { message: /JournalStore: unknown option/ });
  t.throws(
    () =>
      arbitrate(
        { now: 0, capacity: new Map(), consumers: [], pods: [], pending: new Map(), disruptions: new Map() },
        undefined,
        odd,
      ),
    {
      message: /arbitrate: unknown option "stroe"/,
    },
  );
  const engine = await createEngine();
  await engine.createGroup({ name: 'g', hard: { pods: 1 } });
  await t.rejects(engine.deleteGroup('g', { froce: true } as object), { message: 'deleteGroup: froce: unknown field' });
  await engine.close();
  await t.rejects(engine.tick(), { message: /the engine is closed/ });
});
