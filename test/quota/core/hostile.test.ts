import fc from 'fast-check';
import { test } from 'tap';
import { Quota, type Command } from '../../../src/quota/index.js';
import { QuotaState } from '../../../src/quota/core/state/state.js';
import { DEFAULT_POLICY } from '../../../src/quota/core/state/policy.js';
import { execute } from '../../../src/quota/core/execute.js';
import { dump } from './histories.js';

function prepared(): QuotaState {
  const state = new QuotaState(DEFAULT_POLICY);
  execute(state, { type: 'createGroup', name: 'g', hard: { 'limits.cpu': 10, pods: 5 } }, 0);
  execute(
    state,
    {
      type: 'admit',
      workload: { kind: 'Job', name: 'w' },
      group: 'g',
      podSets: [{ count: 1, limits: { cpu: 1, memory: '1Gi' } }],
    },
    0,
  );
  return state;
}

const REFUSED: readonly (readonly [string, Command, string])[] = [
  ['a negative limit', { type: 'createGroup', name: 'x', hard: { 'limits.cpu': '-1' } }, 'NegativeHard'],
  ['a limit beyond 64 bits', { type: 'createGroup', name: 'x', hard: { 'limits.memory': '8Ei' } }, 'QuantityTooLarge'],
  ['a key that limits nothing', { type: 'createGroup', name: 'x', hard: { 'limit.cpu': 1 } }, 'UnknownKey'],
  [
    'a key out of a prototype',
    { type: 'createGroup', name: 'x', hard: JSON.parse('{"__proto__": 1}') as Record<string, number> },
    'UnknownKey',
  ],
  [
    'thousands of keys',
    {
      type: 'createGroup',
      name: 'x',
      hard: Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`a.b/c${at}`, 1])),
    },
    'UnknownKey',
  ],
  [
    'a borrowing limit of a carved group',
    { type: 'createGroup', name: 'x', hard: { pods: 1 }, borrow: { pods: 1 } },
    'UnknownKey',
  ],
  [
    'a borrowing limit of another key',
    { type: 'createGroup', name: 'x', mode: 'elastic', hard: { pods: 1 }, borrow: { 'limits.cpu': 1 } },
    'UnknownKey',
  ],
  ['an empty name', { type: 'createGroup', name: '', hard: {} }, 'InvalidName'],
  ['a name that is too long', { type: 'createGroup', name: 'a'.repeat(64), hard: {} }, 'InvalidName'],
  ['a name with a path', { type: 'createGroup', name: '../etc', hard: {} }, 'InvalidName'],
  ['its own parent', { type: 'createGroup', name: 'x', parent: 'x', hard: {} }, 'ParentNotFound'],
  ['a new parent', { type: 'updateGroup', name: 'g', parent: 'g' }, 'ParentImmutable'],
  ['a group that is not there', { type: 'deleteGroup', name: 'nope' }, 'GroupNotFound'],
  [
    'a workload with a path for a name',
    { type: 'admit', workload: { kind: 'Job', name: 'a/b' }, group: 'g', podSets: [] },
    'InvalidName',
  ],
  [
    'a kind with a path',
    { type: 'admit', workload: { kind: 'Job/a', name: 'b' }, group: 'g', podSets: [] },
    'InvalidName',
  ],
  [
    'a workload without a name',
    { type: 'admit', workload: { kind: 'Job', name: '' }, group: 'g', podSets: [] },
    'InvalidName',
  ],
  [
    'a uid with a line end',
    { type: 'admit', workload: { kind: 'Job', name: 'b', uid: 'a\nb' }, group: 'g', podSets: [] },
    'InvalidName',
  ],
  [
    'minus one pods',
    { type: 'admit', workload: { kind: 'Job', name: 'x' }, group: 'g', podSets: [{ count: -1, limits: { cpu: 1 } }] },
    'InvalidCount',
  ],
  [
    'half a pod',
    { type: 'admit', workload: { kind: 'Job', name: 'x' }, group: 'g', podSets: [{ count: 0.5, limits: { cpu: 1 } }] },
    'InvalidCount',
  ],
  [
    'a negative request that would offset another',
    {
      type: 'admit',
      workload: { kind: 'Job', name: 'x' },
      group: 'g',
      podSets: [
        { count: 1, limits: { cpu: 1 } },
        { name: 'y', count: 1, limits: { cpu: -1 } },
      ],
    },
    'NegativeQuantity',
  ],
  [
    'more than 64 bits in all',
    {
      type: 'admit',
      workload: { kind: 'Job', name: 'x' },
      group: 'g',
      podSets: [{ count: 1000, limits: { cpu: 1, memory: '1Ei' } }],
    },
    'QuantityTooLarge',
  ],
  [
    'a resource with a separator in its name',
    {
      type: 'admit',
      workload: { kind: 'Job', name: 'x' },
      group: 'g',
      podSets: [{ count: 1, limits: { 'cpu<memory': 1 } }],
    },
    'UnknownKey',
  ],
  [
    'a resource named like a quota key',
    {
      type: 'admit',
      workload: { kind: 'Job', name: 'x' },
      group: 'g',
      podSets: [{ count: 1, limits: { 'requests.cpu': 1 } }],
    },
    'UnknownKey',
  ],
  [
    'a type with a space',
    {
      type: 'admit',
      workload: { kind: 'Job', name: 'x' },
      group: 'g',
      types: { cpu: 'A4 gpu:T4' },
      podSets: [{ count: 1, limits: { cpu: 1 } }],
    },
    'InvalidType',
  ],
  [
    'two pod sets of one name',
    { type: 'admit', workload: { kind: 'Job', name: 'x' }, group: 'g', podSets: [{ count: 1 }, { count: 1 }] },
    'InvalidDemand',
  ],
  [
    'a request and another limit of a card',
    {
      type: 'admit',
      workload: { kind: 'Job', name: 'x' },
      group: 'g',
      podSets: [{ count: 1, requests: { 'nvidia.com/gpu': 1 }, limits: { 'nvidia.com/gpu': 2 } }],
    },
    'InvalidQuantity',
  ],
  [
    'a count of objects with a path',
    { type: 'admit', workload: { kind: 'Job', name: 'x' }, group: 'g', objects: '../x', podSets: [] },
    'InvalidName',
  ],
  [
    'replicas beyond counting',
    { type: 'scale', workload: { kind: 'Job', name: 'w' }, replicas: 2 ** 53 },
    'InvalidCount',
  ],
  [
    'replicas beyond 64 bits',
    { type: 'scale', workload: { kind: 'Job', name: 'w' }, replicas: Number.MAX_SAFE_INTEGER },
    'QuantityTooLarge',
  ],
  [
    'pods that a workload does not have',
    { type: 'scale', workload: { kind: 'Job', name: 'w' }, replicas: 1, podSet: 'worker' },
    'PodSetNotFound',
  ],
  ['a pod without an id', { type: 'podStarted', pod: '', workload: { kind: 'Job', name: 'w' } }, 'InvalidName'],
  [
    'a pod at no time',
    { type: 'podStarted', pod: 'p', workload: { kind: 'Job', name: 'w' }, since: NaN },
    'InvalidTime',
  ],
  ['a pod of nobody', { type: 'podStarted', pod: 'p', workload: { kind: 'Job', name: 'nobody' } }, 'WorkloadNotFound'],
  [
    'a pod of a group that is not there',
    { type: 'podStarted', pod: 'p', workload: { kind: 'Job', name: 'nobody' }, group: 'nope', limits: {} },
    'GroupNotFound',
  ],
];

for (const [what, command, code] of REFUSED) {
  test(`${what} is refused and changes nothing`, (t) => {
    const state = prepared();
    const before = dump(state);
    const decision = execute(state, command, 0);
    t.equal(decision.code, code, decision.message);
    t.notOk(decision.allowed);
    t.ok(decision.message.length < 1000);
    t.equal(dump(state), before);
    t.end();
  });
}

test('an invalid time is refused', (t) => {
  const state = prepared();
  for (const at of [NaN, -1, 0.5, Infinity, 2 ** 53]) t.equal(execute(state, { type: 'tick' }, at).code, 'InvalidTime');
  t.end();
});

test('a tree beyond the maximum depth is refused', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'g0', hard: {} });
  for (let depth = 1; depth < 64; depth++)
    t.ok(quota.createGroup({ name: `g${depth}`, parent: `g${depth - 1}`, hard: {} }).allowed);
  t.equal(quota.createGroup({ name: 'g64', parent: 'g63', hard: {} }).code, 'TooDeep');
  t.end();
});

test('amounts beyond 2^53 are exact', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'g', hard: { 'limits.memory': 2n ** 63n - 1n } });
  const admit = (name: string, memory: bigint) =>
    quota.admit({ workload: { kind: 'Job', name }, group: 'g', podSets: [{ count: 1, limits: { memory } }] });
  t.equal(admit('a', 2n ** 62n).code, 'OK');
  t.equal(admit('b', 2n ** 62n).violations[0]?.short, 1n);
  t.equal(admit('b', 2n ** 62n - 1n).code, 'OK');
  t.equal(quota.status('g')?.used.get('limits.memory'), 2n ** 63n - 1n);
  t.end();
});

test('every text in a demand gives a decision', (t) => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom('__proto__', 'constructor', 'toString', 'cpu', 'g', '1', '../..', '\u0000', 'cpu<', ' '),
  );
  fc.assert(
    fc.property(text, text, text, text, text, text, (kind, name, group, resource, quantity, type) => {
      const state = prepared();
      const before = dump(state);
      const decision = execute(
        state,
        {
          type: 'admit',
          workload: { kind, name },
          group,
          types: { [type]: type, cpu: type },
          podSets: [{ count: 1, requests: { [resource]: quantity }, limits: { cpu: quantity } }],
        },
        0,
      );
      return decision.message.length < 2000 && (decision.allowed || dump(state) === before);
    }),
    { numRuns: 1000 },
  );
  t.end();
});
