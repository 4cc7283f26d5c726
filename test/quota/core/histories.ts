import fc from 'fast-check';
import type { Command, Hard } from '../../../src/quota/index.js';
import type { Amount } from '../../../src/manifests/amount.js';
import type { Group } from '../../../src/quota/core/state/group.js';
import { recordsOf } from '../../../src/quota/core/records/restore.js';
import { toRecord } from '../../../src/quota/core/records/record-format.js';
import type { QuotaState } from '../../../src/quota/core/state/state.js';

/** A command and its time. */
export interface Timed {
  readonly command: Command;
  readonly at: number;
}

const MINUTE = 60_000;
export const GROUPS = ['root', 'a', 'b', 'a1', 'a2', 'other'] as const;
const PARENTS: Readonly<Record<string, string>> = { root: '', a: 'root', b: 'root', a1: 'a', a2: 'a', other: '' };
export const WORKLOADS = ['w0', 'w1', 'w2', 'w3', 'w4'] as const;

const ref = (name: string) => ({ kind: 'Deployment', namespace: 'ns', name });
const quantity = (max: number) => fc.nat(max).map((value) => `${value}`);
const groupName = fc.constantFrom(...GROUPS);
const workload = fc.constantFrom(...WORKLOADS).map(ref);
const type = fc.constantFrom('', 'A3', 'A4', 'A4.big');

/** Possible limits of children: the general keys, and sometimes more. */
const hard = (max: number) =>
  fc.record(
    {
      'limits.cpu': quantity(max),
      'limits.memory': quantity(max),
      'cash/limits.cpu': quantity(20),
      'limits.cpu.A4': quantity(max),
      pods: quantity(max),
    },
    { requiredKeys: ['limits.cpu'] },
  );

/** Absent keys are left out, not undefined. */
const definite = (limits: Readonly<Record<string, string | undefined>>): Hard =>
  JSON.parse(JSON.stringify(limits)) as Hard;

const demand = fc.record({
  workload,
  group: fc.oneof({ weight: 9, arbitrary: groupName }, { weight: 1, arbitrary: fc.constant('') }),
  types: type.map((cpu) => ({ cpu })),
  podSets: fc
    .array(
      fc.record({
        name: fc.constantFrom('x', 'y'),
        count: fc.nat(4),
        limits: fc.record({ cpu: quantity(4), memory: quantity(3) }),
      }),
      { minLength: 1, maxLength: 2 },
    )
    .map((podSets) => podSets.map((podSet, index) => ({ ...podSet, name: index === 0 ? podSet.name : 'z' }))),
});

const elastic = fc.record({
  mode: fc.constantFrom('carved' as const, 'elastic' as const),
  lend: fc.constantFrom<Hard>({}, { 'limits.cpu': 2 }),
  borrow: fc.constantFrom<Hard>({}, { 'limits.cpu': 3 }),
});

/** Only elastic groups have limits on borrowing and lending. */
const modes: fc.Arbitrary<{ readonly mode: 'carved' | 'elastic'; readonly lend?: Hard; readonly borrow?: Hard }> =
  elastic.map(({ mode, lend, borrow }) => (mode === 'carved' ? { mode } : { mode, lend, borrow }));

export const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(groupName, hard(12), modes).map(([name, limits, mode]): Command => ({
      type: 'createGroup',
      name,
      parent: PARENTS[name],
      hard: definite(limits),
      ...mode,
    })),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(groupName, hard(14), modes)
      .map(([name, limits, mode]): Command => ({ type: 'updateGroup', name, hard: definite(limits), ...mode })),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('deleteGroup' as const), name: groupName, force: fc.boolean() }),
  },
  {
    weight: 10,
    arbitrary: fc.tuple(demand, fc.boolean()).map(([asked, dryRun]): Command => ({ type: 'admit', ...asked, dryRun })),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(demand, fc.integer({ min: 1, max: 9 }), fc.constantFrom('o1', 'o2', 'o3'))
      .map(([asked, minutes, operation]): Command => ({
        type: 'reserve',
        ...asked,
        ttlMs: minutes * MINUTE,
        operation,
      })),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('o1', 'o2', 'o3').map((reservation): Command => ({ type: 'confirm', reservation })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('o1', 'o2', 'o3').map((reservation): Command => ({ type: 'cancel', reservation })),
  },
  { weight: 3, arbitrary: workload.map((which): Command => ({ type: 'release', workload: which })) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(workload, fc.nat(6), fc.constantFrom(undefined, 'x'))
      .map(([which, replicas, podSet]): Command => ({ type: 'scale', workload: which, replicas, podSet })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(workload, fc.nat(6), fc.constantFrom('advisory' as const, 'reserve' as const))
      .map(([which, maxReplicas, mode]): Command => ({ type: 'checkHpa', workload: which, maxReplicas, mode })),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(workload, fc.nat(3), fc.nat(40)).map(([which, pod, since]): Command => ({
      type: 'podStarted',
      pod: `${which.name}-${pod}`,
      workload: which,
      since: since * MINUTE,
    })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...WORKLOADS), fc.nat(3), fc.nat(60))
      .map(([which, pod, end]): Command => ({ type: 'podStopped', pod: `${which}-${pod}`, end: end * MINUTE })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        groupName,
        fc.nat(9),
        fc.nat(9),
        fc.integer({ min: 1, max: 9 }),
        fc.constantFrom('topup' as const, 'reset' as const),
        fc.boolean(),
      )
      .map(([group, id, from, long, mode, repeats]): Command => ({
        type: 'grant',
        group,
        id: `grant-${id}`,
        key: 'cash/limits.cpu',
        amount: `${long}`,
        validFrom: from * 10 * MINUTE,
        expiresAt: (from + long) * 10 * MINUTE,
        mode,
        carryOverMax: 2,
        everyMs: repeats ? 30 * MINUTE : undefined,
      })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        groupName,
        groupName,
        fc.nat(4),
        fc.integer({ min: 1, max: 5 }),
        fc.nat(5),
        fc.integer({ min: 6, max: 12 }),
      )
      .map(([lender, borrower, id, cores, from, until]): Command => ({
        type: 'loan',
        id: `loan-${id}`,
        lender,
        borrower,
        amounts: { 'limits.cpu': cores },
        validFrom: from * 10 * MINUTE,
        until: until * 10 * MINUTE,
      })),
  },
  { weight: 1, arbitrary: fc.constant<Command>({ type: 'tick' }) },
);

/** Commands with mostly rising times. */
export const history = (maxLength: number): fc.Arbitrary<readonly Timed[]> =>
  fc.array(fc.tuple(command, fc.integer({ min: -2, max: 8 })), { minLength: 1, maxLength }).map((steps) => {
    let at = 0;
    return steps.map(([each, minutes]) => {
      at = Math.max(0, at + minutes * MINUTE);
      return { command: each, at };
    });
  });

/** Histories whose groups exist from the beginning. */
export const busyHistory = (maxLength: number): fc.Arbitrary<readonly Timed[]> =>
  fc.tuple(fc.constantFrom('carved' as const, 'elastic' as const), history(maxLength)).map(([mode, steps]) => [
    ...(
      [
        ['root', 40],
        ['a', 24],
        ['b', 12],
        ['a1', 10],
        ['a2', 8],
        ['other', 10],
      ] as const
    ).map(([name, size]): Timed => ({
      at: 0,
      command: {
        type: 'createGroup',
        name,
        parent: PARENTS[name],
        mode,
        hard: { 'limits.cpu': size, 'limits.memory': size, 'cash/limits.cpu': size },
      },
    })),
    ...steps,
  ]);

/** The whole state with counters, in a fixed order: equal for equal states. */
export function dump(state: QuotaState): string {
  const plain = (_: string, value: unknown): unknown =>
    typeof value === 'bigint'
      ? `${value}n`
      : value === Infinity
        ? 'Infinity'
        : value === -Infinity
          ? '-Infinity'
          : value;
  const records = [...recordsOf(state)].map((change) => JSON.stringify(toRecord(change, null), plain));
  const counters = [...state.groups.entries()].map(([, group]) => JSON.stringify(countersOf(group), plain));
  return [`${state.revision} ${state.now} ${state.lives}`, ...records.sort(), ...counters.sort()].join('\n');
}

function countersOf(group: Group): unknown {
  const { name, depth, layout, amounts, children, workloads, reserved, pods, budgets } = group;
  const column = (amountAt: (slot: number) => Amount): readonly Amount[] =>
    layout.keys.map((_, slot) => amountAt(slot));
  return {
    name,
    depth,
    hard: column((slot) => amounts.hard(slot)),
    selfUsed: column((slot) => amounts.selfUsed(slot)),
    childSum: column((slot) => amounts.childSum(slot)),
    lent: column((slot) => amounts.lent(slot)),
    spilled: column((slot) => amounts.spilled(slot)),
    subtreeQuota: column((slot) => amounts.subtreeQuota(slot)),
    localQuota: column((slot) => amounts.localQuota(slot)),
    workloads: workloads.size,
    reserved: reserved.size,
    children: [...children].sort(),
    pods: [...pods.entries()].map(([pod]) => pod).sort(),
    cash: budgets.map(({ childSum: sum }) => sum),
  };
}
