import type { Command, Demand, Resources, Types } from '../../src/quota/index.js';

/** Expected result of a step. */
export interface Expected {
  readonly code: string;
  /** All violated keys. */
  readonly keys?: readonly string[];
  /** For the first violation: hard - used. */
  readonly free?: string;
  readonly maxReplicas?: number;
  readonly warns?: string;
  /** `used` after the step, for some keys: { root: { 'limits.cpu': '6' } }. Cash in unit-hours. */
  readonly used?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly selfUsed?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A row of the specification's tables. */
export interface Step {
  readonly id: string;
  readonly says: string;
  /** Hours since the beginning. */
  readonly hour?: number;
  readonly commands: readonly Command[];
  readonly expected: Expected;
}

/** Consecutive steps on one engine; all commands of `before` must be allowed. */
export interface Scenario {
  readonly before: readonly Command[];
  readonly steps: readonly Step[];
}

export const HOUR = 3_600_000;
const MINUTE = 60_000;

const group = (name: string, hard: Record<string, string | number>, parent = ''): Command => ({
  type: 'createGroup',
  name,
  hard,
  parent,
});
const update = (name: string, hard: Record<string, string | number>): Command => ({ type: 'updateGroup', name, hard });
const cut = (name: string, force = false): Command => ({ type: 'deleteGroup', name, force });
const ref = (name: string) => ({ kind: 'Deployment', namespace: 'default', name });

/** A workload of `count` pods with these limits, which are also the requests of extended resources. */
function pods(
  name: string,
  to: string,
  count: number,
  limits: Resources,
  types: Types = {},
  more: Partial<Demand> = {},
): Command {
  return { type: 'admit', workload: ref(name), group: to, types, podSets: [{ count, limits, requests: {} }], ...more };
}

const cores = (name: string, to: string, count: number, each: number | string = 1, type = ''): Command =>
  pods(name, to, count, { cpu: each }, type === '' ? {} : { cpu: type });
const gpus = (name: string, to: string, count: number, type = '', resource = 'nvidia.com/gpu'): Command =>
  pods(name, to, count, { [resource]: 1 }, type === '' ? {} : { gpu: type });
const scale = (name: string, replicas: number): Command => ({ type: 'scale', workload: ref(name), replicas });
const hpa = (name: string, maxReplicas: number): Command => ({ type: 'checkHpa', workload: ref(name), maxReplicas });
const drop = (name: string): Command => ({ type: 'release', workload: ref(name) });
const start = (pod: string, workload: string, since?: number): Command => ({
  type: 'podStarted',
  pod,
  workload: ref(workload),
  since,
});
const stop = (pod: string, end?: number): Command => ({ type: 'podStopped', pod, end });

const OK = { code: 'OK' } as const;

function step(
  id: string,
  says: string,
  commands: Command | readonly Command[],
  expected: Expected,
  hour?: number,
): Step {
  return {
    id,
    says,
    commands: 'type' in commands ? [commands] : commands,
    expected,
    ...(hour === undefined ? {} : { hour }),
  };
}

const GROUPS: readonly Scenario[] = [
  {
    before: [],
    steps: [
      step('G01', 'a root is created', group('root', { 'limits.cpu': 10 }), OK),
      step('G02', 'a root is not created twice', group('root', { 'limits.cpu': 10 }), { code: 'AlreadyExists' }),
      step('G03', 'an unknown parent', group('x', { 'limits.cpu': 1 }, 'ghost'), { code: 'ParentNotFound' }),
      step('G04', 'the quota of a child is taken from its parent', group('a', { 'limits.cpu': 6 }, 'root'), {
        code: 'OK',
        used: { root: { 'limits.cpu': '6' } },
        selfUsed: { root: { 'limits.cpu': '0' } },
      }),
      step('G05', 'a child that is too large', group('b', { 'limits.cpu': 5 }, 'root'), {
        code: 'ParentExceeded',
        keys: ['limits.cpu'],
        free: '4',
      }),
      step('G06', 'a child that fits exactly', group('b', { 'limits.cpu': 4 }, 'root'), {
        code: 'OK',
        used: { root: { 'limits.cpu': '10' } },
      }),
      step('G08', 'a child grows beyond its parent', update('a', { 'limits.cpu': 7 }), {
        code: 'ParentExceeded',
        keys: ['limits.cpu'],
      }),
      step('G09', 'a child shrinks and returns quota', update('a', { 'limits.cpu': 3 }), {
        code: 'OK',
        used: { root: { 'limits.cpu': '7' } },
      }),
      step(
        'G10',
        'a child stays with its parent',
        { type: 'updateGroup', name: 'a', parent: 'b' },
        { code: 'ParentImmutable' },
      ),
      step('G11', 'only leaves are deleted', cut('root'), { code: 'NotLeaf' }),
      step('G12', 'a deleted leaf returns its quota', cut('a'), { code: 'OK', used: { root: { 'limits.cpu': '4' } } }),
      step('G13', 'a parent is not lowered below its children', update('root', { 'limits.cpu': 3 }), {
        code: 'BelowChildren',
        keys: ['limits.cpu'],
      }),
      step('G13', 'a parent is lowered to the sum of its children', update('root', { 'limits.cpu': 4 }), OK),
    ],
  },
  {
    before: [group('p', { 'limits.cpu': 10, 'limits.cpu.A4': 4 })],
    steps: [
      step('G14', 'a child needs every key of its parent', group('c', { 'limits.cpu': 5 }, 'p'), {
        code: 'MissingParentKey',
      }),
      step(
        'G15',
        'every key is charged to the parent separately',
        group('c', { 'limits.cpu': 5, 'limits.cpu.A4': 2, 'limits.memory': '8Gi' }, 'p'),
        {
          code: 'OK',
          used: { p: { 'limits.cpu': '5', 'limits.cpu.A4': '2' } },
        },
      ),
      step(
        'G16',
        'a parent can not add a key that a child lacks',
        update('p', { 'limits.cpu': 10, 'limits.cpu.A4': 4, 'requests.nvidia.com/gpu': 8 }),
        {
          code: 'ChildMissingKey',
        },
      ),
      step(
        'G17',
        'a key that all children have is charged at once',
        update('p', { 'limits.cpu': 10, 'limits.cpu.A4': 4, 'limits.memory': '16Gi' }),
        {
          code: 'OK',
          used: { p: { 'limits.memory': '8Gi' } },
        },
      ),
      step(
        'G18',
        'a child can not drop a key of its parent',
        update('c', { 'limits.cpu': 5, 'limits.memory': '8Gi' }),
        { code: 'MissingParentKey' },
      ),
      step('G19', 'limits are not negative', group('n', { 'limits.cpu': -1 }), { code: 'NegativeHard' }),
      step('G20', 'limits are quantities', group('n', { 'limits.cpu': '4 cores' }), { code: 'InvalidQuantity' }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 4 }), cores('w', 'g', 4)],
    steps: [
      step('G21', 'quota that own pods use cannot be given to a child', group('c', { 'limits.cpu': 1 }, 'g'), {
        code: 'ParentExceeded',
        keys: ['limits.cpu'],
      }),
      step('G22', 'a group with workloads stays', cut('g'), { code: 'HasWorkloads' }),
      step('G22', 'a group with workloads is deleted by force', cut('g', true), OK),
    ],
  },
];

const WORKLOADS: readonly Scenario[] = [
  {
    before: [group('g', { 'limits.cpu': 10, 'limits.cpu.A4': 4 })],
    steps: [
      step('A01', 'typed requests charge the type and the general key', cores('a', 'g', 4, 1, 'A4'), {
        code: 'OK',
        used: { g: { 'limits.cpu': '4', 'limits.cpu.A4': '4' } },
      }),
      step('A02', 'the type is full', cores('b', 'g', 1, 1, 'A4'), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu.A4'],
        free: '0',
      }),
      step('A03', 'the general key has room', cores('c', 'g', 6), {
        code: 'OK',
        used: { g: { 'limits.cpu': '10', 'limits.cpu.A4': '4' } },
      }),
      step('A04', 'the general key is full for every type', cores('d', 'g', 1, 1, 'A3'), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
      }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 10, 'limits.cpu.A4': 100 })],
    steps: [
      step('A05', 'the general key bounds the typed one', cores('a', 'g', 11, 1, 'A4'), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
        maxReplicas: 10,
      }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 10 }), cores('first', 'g', 1)],
    steps: [
      step('A06', 'of two workloads that fit only alone, one is admitted', [cores('a', 'g', 5), cores('b', 'g', 5)], {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
        used: { g: { 'limits.cpu': '6' } },
      }),
      step('A07', 'a workload that fits only in part is refused', cores('w', 'g', 3, 2), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
        maxReplicas: 2,
        used: { g: { 'limits.cpu': '6' } },
      }),
      step('A08', 'a workload that fits is admitted as a whole', cores('w', 'g', 2, 2), {
        code: 'OK',
        used: { g: { 'limits.cpu': '10' } },
      }),
      step('A09', 'scaling down releases', scale('w', 1), { code: 'OK', used: { g: { 'limits.cpu': '8' } } }),
      step('A10', 'a repeated admission charges nothing', cores('w', 'g', 1, 2), {
        code: 'OK',
        used: { g: { 'limits.cpu': '8' } },
      }),
      step('A11', 'a group may be shrunk below its use', update('g', { 'limits.cpu': 5 }), {
        code: 'OK',
        warns: 'OverQuota',
      }),
      step('A11', 'a shrunk group admits no new workload', cores('new', 'g', 1), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
      }),
      step('A11', 'a shrunk group allows scaling down', scale('a', 3), {
        code: 'OK',
        used: { g: { 'limits.cpu': '6' } },
      }),
      step('A11', 'a shrunk group allows a new image', cores('a', 'g', 3), {
        code: 'OK',
        used: { g: { 'limits.cpu': '6' } },
      }),
      step('A12', 'a deleted workload is released', drop('a'), { code: 'OK', used: { g: { 'limits.cpu': '3' } } }),
      step('A13', 'a completed workload is released', drop('w'), { code: 'OK', used: { g: { 'limits.cpu': '1' } } }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 10 })],
    steps: [
      step('A14', 'an unknown group', cores('a', 'nope', 1), { code: 'GroupNotFound' }),
      step('A15', 'no group', cores('a', '', 1), { code: 'NotManaged' }),
      step('A16', 'the label of a charged workload cannot be removed', [cores('a', 'g', 1), cores('a', '', 1)], {
        code: 'LabelRemoved',
      }),
      step('A17', 'a workload without replicas charges nothing', cores('zero', 'g', 0, 100), {
        code: 'OK',
        used: { g: { 'limits.cpu': '1' } },
      }),
      step('A18', 'a limited resource must be stated', pods('mute', 'g', 1, { memory: '1Gi' }), {
        code: 'MustSpecify',
      }),
      step('A19', 'a negative request is refused', cores('neg', 'g', 1, -1), { code: 'NegativeQuantity' }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 4, 'limits.cpu.A3': 4, 'limits.cpu.A4': 4 }), cores('a', 'g', 4, 1, 'A3')],
    steps: [
      step('A20', 'another type of the same size fits into a full group', cores('a', 'g', 4, 1, 'A4'), {
        code: 'OK',
        used: { g: { 'limits.cpu': '4', 'limits.cpu.A3': '0', 'limits.cpu.A4': '4' } },
      }),
    ],
  },
  {
    before: [group('g1', { 'limits.cpu': 4 }), group('g2', { 'limits.cpu': 2 }), cores('a', 'g1', 4)],
    steps: [
      step('A21', 'a workload moves only to where it fits', cores('a', 'g2', 4), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
        used: { g1: { 'limits.cpu': '4' } },
      }),
      step('A22', 'a smaller workload moves', [scale('a', 2), cores('a', 'g2', 2)], {
        code: 'OK',
        used: { g1: { 'limits.cpu': '0' }, g2: { 'limits.cpu': '2' } },
      }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 4, 'limits.cpu.A4': 1 })],
    steps: [
      step('A23', 'types are compared exactly', cores('a', 'g', 2, 1, 'a4'), {
        code: 'OK',
        used: { g: { 'limits.cpu': '2', 'limits.cpu.A4': '0' } },
      }),
    ],
  },
  {
    before: [group('g', { 'requests.nvidia.com/gpu': 8, 'requests.nvidia.com/gpu.A30': 2 })],
    steps: [
      step('A24', 'too many GPUs of a type', gpus('a', 'g', 3, 'A30'), {
        code: 'QuotaExceeded',
        keys: ['requests.nvidia.com/gpu.A30'],
      }),
      step('A25', 'all GPUs of a type', gpus('a', 'g', 2, 'A30'), OK),
      step('A26', 'a type without a key charges the general key', gpus('b', 'g', 6, 'V100'), {
        code: 'OK',
        used: { g: { 'requests.nvidia.com/gpu': '8', 'requests.nvidia.com/gpu.A30': '2' } },
      }),
      step('A27', 'another resource is not a type of this one', gpus('c', 'g', 5, '', 'nvidia.com/gpu.shared'), {
        code: 'OK',
        used: { g: { 'requests.nvidia.com/gpu': '8' } },
      }),
      step('A28', 'a resource with the same prefix is not a type of it', gpus('d', 'g', 1, '', 'nvidia.com/gpumem'), {
        code: 'OK',
        used: { g: { 'requests.nvidia.com/gpu': '8' } },
      }),
    ],
  },
  {
    before: [group('g', { 'requests.tencent.com/vcuda-core': 250, 'requests.tencent.com/vcuda-core.T4': 100 })],
    steps: [
      step('A29', 'hundredths of a GPU', pods('a', 'g', 2, { 'tencent.com/vcuda-core': 50 }, { gpu: 'T4' }), OK),
      step(
        'A29',
        'hundredths of a type that is full',
        pods('b', 'g', 1, { 'tencent.com/vcuda-core': 50 }, { gpu: 'T4' }),
        {
          code: 'QuotaExceeded',
          keys: ['requests.tencent.com/vcuda-core.T4'],
        },
      ),
    ],
  },
  {
    before: [group('g', { 'limits.memory': '64Gi', 'limits.memory.A4': '16Gi' })],
    steps: [
      step('A31a', 'typed memory', pods('a', 'g', 2, { memory: '8Gi' }, { memory: 'A4' }), OK),
      step('A31b', 'typed memory is exhausted', pods('b', 'g', 1, { memory: '1Mi' }, { memory: 'A4' }), {
        code: 'QuotaExceeded',
        keys: ['limits.memory.A4'],
      }),
      step('A31c', 'a cpu type does not apply to memory', pods('c', 'g', 1, { memory: '48Gi' }, { cpu: 'A4' }), {
        code: 'OK',
        used: { g: { 'limits.memory': '64Gi', 'limits.memory.A4': '16Gi' } },
      }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 10, 'limits.cpu.A4': 8, 'limits.cpu.A4.big': 2 })],
    steps: [
      step('A32a', 'types of types charge all levels', cores('a', 'g', 2, 1, 'A4.big'), {
        code: 'OK',
        used: { g: { 'limits.cpu': '2', 'limits.cpu.A4': '2', 'limits.cpu.A4.big': '2' } },
      }),
      step('A32b', 'the most specific type is full first', cores('b', 'g', 1, 1, 'A4.big'), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu.A4.big'],
      }),
      step('A32c', 'its sibling type has room', cores('c', 'g', 6, 1, 'A4.small'), OK),
    ],
  },
  {
    before: [group('p', { 'limits.cpu': 10 }), group('c', { 'limits.cpu': 6 }, 'p')],
    steps: [
      step('A33', 'a group with children admits workloads, too', cores('a', 'p', 4), {
        code: 'OK',
        used: { p: { 'limits.cpu': '10' } },
        selfUsed: { p: { 'limits.cpu': '4' } },
      }),
      step('A34', 'a parent admits only what its children leave', cores('b', 'p', 1), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
      }),
      step('A35', 'unused quota of a child is not lent', scale('a', 5), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
        maxReplicas: 4,
      }),
    ],
  },
  {
    before: [group('g', { 'limits.cpu': 20 }), cores('a', 'g', 4, 2)],
    steps: [
      step('H01', 'an autoscaler whose maximum fits', hpa('a', 10), { code: 'OK', used: { g: { 'limits.cpu': '8' } } }),
      step('H02', 'an autoscaler whose maximum does not fit', hpa('a', 11), {
        code: 'QuotaExceeded',
        keys: ['limits.cpu'],
        maxReplicas: 10,
      }),
      step('H03', 'usage of other workloads counts', [cores('other', 'g', 6), hpa('a', 7)], OK),
      step('H04', 'less room is left', hpa('a', 8), { code: 'QuotaExceeded', keys: ['limits.cpu'], maxReplicas: 7 }),
      step('H05', 'scaling up to it charges', scale('a', 7), { code: 'OK', used: { g: { 'limits.cpu': '20' } } }),
    ],
  },
];

const CASH: readonly Scenario[] = [
  {
    before: [group('g', { 'cash/limits.cpu': 100 }), cores('a', 'g', 2), start('a-0', 'a', 0), start('a-1', 'a', 0)],
    steps: [
      step(
        'C01',
        'two cores for fifty hours are a hundred',
        [stop('a-0'), stop('a-1')],
        { code: 'OK', used: { g: { 'cash/limits.cpu': '100' } } },
        50,
      ),
      step(
        'C02',
        'a budget that is reached is spent',
        cores('b', 'g', 1),
        { code: 'CashExhausted', keys: ['cash/limits.cpu'] },
        50,
      ),
    ],
  },
  {
    before: [group('g', { 'cash/limits.cpu': 100 }), cores('old', 'g', 1, 2), start('old-0', 'old', 0)],
    steps: [
      step(
        'C03',
        'cash asks whether there is some, not whether it lasts',
        cores('a', 'g', 1, 500),
        { code: 'OK', used: { g: { 'cash/limits.cpu': '99.98' } } },
        49.99,
      ),
      step('C03', 'running pods continue with an exhausted budget', start('a-0', 'a'), { code: 'OK' }, 49.99),
      step(
        'C03',
        'beyond the budget',
        { type: 'tick' },
        { code: 'OK', used: { g: { 'cash/limits.cpu': '601.98' } } },
        50.99,
      ),
    ],
  },
  {
    before: [group('g', { 'cash/limits.cpu': 100 }), cores('a', 'g', 500), start('a-0', 'a', 0), scale('a', 500)],
    steps: [
      step('C04', 'an exhausted budget lets workloads shrink', scale('a', 10), OK, 101),
      step(
        'C05',
        'not grow',
        scale('a', 11),
        { code: 'CashExhausted', keys: ['cash/limits.cpu'], maxReplicas: 10 },
        101,
      ),
    ],
  },
  {
    before: [
      group('g', { 'cash/requests.nvidia.com/gpu': 1000, 'cash/requests.nvidia.com/gpu.A100': 400 }),
      pods('a', 'g', 1, { 'nvidia.com/gpu': 10 }, { gpu: 'A100' }),
      start('a-0', 'a', 0),
    ],
    steps: [
      step(
        'C06',
        'card-hours by type',
        stop('a-0'),
        {
          code: 'OK',
          used: { g: { 'cash/requests.nvidia.com/gpu': '400', 'cash/requests.nvidia.com/gpu.A100': '400' } },
        },
        40,
      ),
      step(
        'C07',
        'those of one type are spent',
        gpus('b', 'g', 1, 'A100'),
        { code: 'CashExhausted', keys: ['cash/requests.nvidia.com/gpu.A100'] },
        40,
      ),
      step('C08', 'budgets of other types have hours left', gpus('c', 'g', 1, 'T4'), OK, 40),
    ],
  },
  {
    before: [group('g', { 'cash/limits.cpu': 0 })],
    steps: [
      step('C09', 'a budget of zero is exhausted', cores('a', 'g', 1), {
        code: 'CashExhausted',
        keys: ['cash/limits.cpu'],
      }),
    ],
  },
  {
    before: [group('g', { 'cash/limits.cpu': 100 }), cores('a', 'g', 1, 4)],
    steps: [
      step(
        'C10',
        'a pod seen late counts from its scheduling',
        start('a-0', 'a', 2 * MINUTE),
        { code: 'OK', used: { g: { 'cash/limits.cpu': '0.5333' } } },
        10 / 60,
      ),
      step(
        'C11',
        'an end seen late takes back what came after it',
        stop('a-0', 7 * MINUTE),
        { code: 'OK', used: { g: { 'cash/limits.cpu': '0.3333' } } },
        20 / 60,
      ),
    ],
  },
  {
    before: [
      group('p', { 'cash/limits.cpu': 1000 }),
      group('c', { 'cash/limits.cpu': 100 }, 'p'),
      cores('a', 'c', 1, 60),
      start('a-0', 'a', 0),
    ],
    steps: [
      step(
        'C12',
        'a budget is not lowered below its use',
        [stop('a-0'), drop('a'), update('c', { 'cash/limits.cpu': 50 })],
        {
          code: 'CashBelowUsed',
          keys: ['cash/limits.cpu'],
          used: { p: { 'cash/limits.cpu': '100' } },
        },
        1,
      ),
      step(
        'C13',
        'a budget is lowered to its usage',
        update('c', { 'cash/limits.cpu': 60 }),
        { code: 'OK', used: { p: { 'cash/limits.cpu': '60' } } },
        1,
      ),
      step('C14', 'a child with usage is deleted', cut('c'), { code: 'OK' }, 1),
      step(
        'C15',
        'the usage of a deleted child counts in its parent',
        { type: 'tick' },
        {
          code: 'OK',
          used: { p: { 'cash/limits.cpu': '60' } },
          selfUsed: { p: { 'cash/limits.cpu': '60' } },
        },
        2,
      ),
    ],
  },
  {
    before: [
      group('g', { 'limits.cpu': 2000, 'cash/limits.cpu': 1000 }),
      cores('a', 'g', 1, 1000),
      start('a-0', 'a', 0),
    ],
    steps: [
      step(
        'C16',
        'free cores do not help when the budget is exhausted',
        [stop('a-0'), drop('a'), cores('b', 'g', 1)],
        { code: 'CashExhausted', keys: ['cash/limits.cpu'] },
        1,
      ),
      step(
        'C17',
        'a larger budget helps',
        [update('g', { 'limits.cpu': 2000, 'cash/limits.cpu': 1010 }), cores('b', 'g', 1)],
        OK,
        1,
      ),
    ],
  },
  {
    before: [group('g', { 'limits.memory': '4Gi', 'cash/limits.cpu': 0 })],
    steps: [
      step(
        'C18',
        'an exhausted budget of an unrequested resource does not matter',
        pods('a', 'g', 1, { memory: '1Gi' }),
        OK,
      ),
    ],
  },
];

/** The tables of groups, workloads and budgets. */
export const SCENARIOS: readonly Scenario[] = [...GROUPS, ...WORKLOADS, ...CASH];
