import { MAX_RESERVATIONS } from '../../quota/internal.js';
import type { GroupStatus } from '../../quota/internal.js';
import { conditionsAt, type ConditionState } from '../../kube/condition.js';
import { timestamp } from '../../kube/json.js';
import { usageOf, type GroupObject, type GroupObjectStatus } from '../../kube/quota/group-object.js';

/** The fraction of a ledger limit from which on a condition warns. */
const PRESSED = 0.8;
/** Largest object that etcd accepts. */
const MAX_OBJECT_BYTES = 1_500_000;
/** How many misplaced pods a condition names. */
const NAMED_PODS = 5;

/**
 * Computes the status that a group object should have. `known` is null for a group that the ledger does not have, and
 * `problem` says why. `misplaced` lists pods on other types than declared; null where no policy names types of nodes.
 * `ledgerBytes` is the size of the ledger object. `withoutObject` lists children that only the ledger has.
 */
export function groupReport(
  object: GroupObject,
  known: GroupStatus | null,
  problem: string | null,
  now: number,
  misplaced: readonly string[] | null = null,
  ledgerBytes = 0,
  withoutObject: readonly string[] = [],
): GroupObjectStatus {
  const { generation, status: before } = object;
  const conditions = conditionsAt(
    now,
    [...findingsOf(object, known, problem, misplaced, ledgerBytes), ...withoutObjectFinding(withoutObject)],
    before.conditions,
    generation,
  );
  if (known === null) return { ...before, observedGeneration: generation, conditions };
  const ends = known.exhaustsAt;
  return {
    observedGeneration: generation,
    ...usageOf(known),
    ...(ends === null || !Number.isFinite(ends) || ends > 8.64e15 ? {} : { exhaustsAt: timestamp(ends) }),
    lastReconcileTime: timestamp(now),
    conditions,
  };
}

function findingsOf(
  object: GroupObject,
  known: GroupStatus | null,
  problem: string | null,
  misplaced: readonly string[] | null,
  ledgerBytes: number,
): readonly ConditionState[] {
  const flag = (type: string, keys: readonly string[] | undefined, yes: string, no: string): ConditionState =>
    keys === undefined
      ? { type, status: 'False', reason: no, message: 'no key' }
      : { type, status: 'True', reason: yes, message: keys.length === 0 ? 'the group' : keys.join(', ') };
  const keysOf = (type: GroupStatus['conditions'][number]['type']) =>
    known?.conditions.find((condition) => condition.type === type)?.keys;
  return [
    problem === null && known !== null
      ? {
          type: 'Ready',
          status: 'True',
          reason: 'InLedger',
          message: 'the ledger has the group as its object declares it',
        }
      : {
          type: 'Ready',
          status: 'False',
          reason: 'NotInLedger',
          message: problem ?? 'the group is not in the ledger yet',
        },
    flag('OverQuota', keysOf('OverQuota'), 'UsedBeyondHard', 'WithinHard'),
    flag('CashExhausted', keysOf('CashExhausted'), 'BudgetSpent', 'BudgetLeft'),
    flag('CashLow', levelsOf(known), `Used${levelOf(known)}Percent`, 'BudgetLeft'),
    ...(misplaced === null ? [] : [misplacedFinding(misplaced)]),
    ...(known === null || known.grants.length === 0 ? [] : [grantFinding(known)]),
    ...pressureOf(known, ledgerBytes),
    flag('Terminating', object.terminating ? [] : undefined, 'DeletionRequested', 'NotDeleted'),
  ];
}

/** A ledger that is near one of its limits. */
function pressureOf(known: GroupStatus | null, ledgerBytes: number): readonly ConditionState[] {
  const reservations = known?.reservations ?? 0;
  const messages = [
    ...(reservations < PRESSED * MAX_RESERVATIONS
      ? []
      : [`${reservations} of ${MAX_RESERVATIONS} reservations are open: admitted objects are not observed`]),
    ...(ledgerBytes < PRESSED * MAX_OBJECT_BYTES
      ? []
      : [`the ledger object has ${ledgerBytes} of ${MAX_OBJECT_BYTES} bytes`]),
  ];
  if (messages.length === 0) return [];
  return [{ type: 'LedgerPressure', status: 'True', reason: 'NearLimit', message: messages.join('; ') }];
}

/** Children that the ledger charges to the group, and that the API server does not have. */
function withoutObjectFinding(children: readonly string[]): readonly ConditionState[] {
  if (children.length === 0) return [];
  const message = `the API server does not have ${children.slice(0, NAMED_PODS).join(', ')}: a child ends with its workloads, and holds quota of this group until then`;
  return [{ type: 'ChildWithoutObject', status: 'True', reason: 'NotInApiServer', message }];
}

function misplacedFinding(pods: readonly string[]): ConditionState {
  if (pods.length === 0)
    return { type: 'Misplaced', status: 'False', reason: 'AsDeclared', message: 'every pod runs on the declared type' };
  const more = pods.length > NAMED_PODS ? `; and ${pods.length - NAMED_PODS} more` : '';
  return {
    type: 'Misplaced',
    status: 'True',
    reason: 'OtherType',
    message: `${pods.slice(0, NAMED_PODS).join('; ')}${more}`,
  };
}

function grantFinding({ grants }: GroupStatus): ConditionState {
  const refused = grants.filter((grant) => grant.refused !== '');
  return refused.length === 0
    ? { type: 'GrantRefused', status: 'False', reason: 'Granted', message: 'no grant' }
    : {
        type: 'GrantRefused',
        status: 'True',
        reason: 'NotPaid',
        message: refused
          .map(({ name, refused: reason }) => `${name}: ${reason}`)
          .join('; ')
          .slice(0, 1000),
      };
}

/** The highest level that a budget of the group has reached: 0, 80, 90 or 100. */
export function levelOf(known: GroupStatus | null): number {
  return Math.max(0, ...budgetsOf(known).map(({ level }) => level));
}

function levelsOf(known: GroupStatus | null): readonly string[] | undefined {
  const low = budgetsOf(known).filter(({ level }) => level > 0);
  return low.length === 0 ? undefined : low.map(({ key, level }) => `${key} ${level}%`);
}

function budgetsOf(known: GroupStatus | null): readonly { readonly key: string; readonly level: number }[] {
  return known?.budgets ?? [];
}

/** When a budget of the group reaches its next level at the current rate, milliseconds; null where none does. */
export function nextLevelOf(known: GroupStatus | null): number | null {
  const times = (known?.budgets ?? []).flatMap(({ nextLevelAt }) => nextLevelAt ?? []);
  return times.length === 0 ? null : Math.min(...times);
}

/**
 * Whether a new report must be written: a field other than usage and times changed, or usage changed and the last
 * report is old.
 */
export function isWorthWriting(
  before: GroupObjectStatus,
  after: GroupObjectStatus,
  periodMs: number,
  now: number,
): boolean {
  // Used hours change all the time while pods run, and otherwise only when a pod is observed late.
  const isRunning = (key: string): boolean => [before, after].some(({ burnRate }) => (burnRate?.[key] ?? '0') !== '0');
  const content = ({
    lastReconcileTime: _,
    exhaustsAt: _at,
    budget: _budget,
    borrowedHours: _borrowed,
    used,
    selfUsed,
    budgets,
    ...rest
  }: GroupObjectStatus): string =>
    sorted({
      ...rest,
      used: settledOf(used, isRunning),
      selfUsed: settledOf(selfUsed, isRunning),
      budgets: budgets?.map(({ key, granted, next }) => [key, granted, next]),
    });
  if (content(before) !== content(after)) return true;
  const isOld = now - Date.parse(before.lastReconcileTime ?? '1970-01-01T00:00:00Z') >= periodMs * 0.9;
  return isOld && sorted({ ...before, lastReconcileTime: '' }) !== sorted({ ...after, lastReconcileTime: '' });
}

/** Leaves out the used hours of keys that running pods use. */
function settledOf(amounts: GroupObjectStatus['used'], isRunning: (key: string) => boolean): unknown {
  return Object.fromEntries(
    Object.entries(amounts ?? {}).filter(([key]) => !key.startsWith('cash/') || !isRunning(key)),
  );
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
