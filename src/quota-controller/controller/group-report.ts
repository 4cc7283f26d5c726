import { MAX_RESERVATIONS } from '../../quota/internal.js';
import type { GroupStatus, UnchargedGpus } from '../../quota/internal.js';
import { conditionsAt, type ConditionState } from '../../kube/condition.js';
import { timestamp } from '../../kube/json.js';
import { usageOf, type GroupObject, type GroupObjectStatus } from '../../kube/quota/group-object.js';

/** The fraction of a ledger limit from which on a condition warns. */
const PRESSED = 0.8;
/** Largest object that etcd accepts. */
const MAX_OBJECT_BYTES = 1_500_000;
/** How many pods or workloads a condition names. */
const NAMED = 5;

/** What a report says of a group beside its status in the ledger. */
export interface GroupFacts {
  /** Pods on other types than declared; null where no policy names types of nodes. */
  readonly misplaced: readonly string[] | null;
  /** Size of the ledger object. */
  readonly ledgerBytes: number;
  /** Children that only the ledger has. */
  readonly withoutObject: readonly string[];
  /** Workloads with GPUs that no key of the group charges. */
  readonly unchargedGpus: readonly UnchargedGpus[];
}

const NO_FACTS: GroupFacts = { misplaced: null, ledgerBytes: 0, withoutObject: [], unchargedGpus: [] };

/**
 * Computes the status that a group object should have. `known` is null for a group that the ledger does not have, and
 * `problem` says why.
 */
export function groupReport(
  object: GroupObject,
  known: GroupStatus | null,
  problem: string | null,
  now: number,
  facts: Partial<GroupFacts> = {},
): GroupObjectStatus {
  const { generation, status: before } = object;
  const findings = findingsOf(object, known, problem, { ...NO_FACTS, ...facts });
  const conditions = conditionsAt(now, findings, before.conditions, generation);
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
  { misplaced, ledgerBytes, withoutObject, unchargedGpus }: GroupFacts,
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
    ...withoutObjectFinding(withoutObject),
    ...unchargedFinding(unchargedGpus),
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
  const message = `the API server does not have ${children.slice(0, NAMED).join(', ')}: a child ends with its workloads, and holds quota of this group until then`;
  return [{ type: 'ChildWithoutObject', status: 'True', reason: 'NotInApiServer', message }];
}

/** Workloads whose GPUs the group does not limit. */
function unchargedFinding(workloads: readonly UnchargedGpus[]): readonly ConditionState[] {
  if (workloads.length === 0) return [];
  const resources = [...new Set(workloads.flatMap((workload) => workload.resources))].sort();
  const named = workloads.slice(0, NAMED).map(({ workload }) => workload);
  const more = workloads.length > NAMED ? ` and ${workloads.length - NAMED} more` : '';
  const message = `no key of the group charges ${resources.join(', ')} of ${named.join(', ')}${more}; add the key gpus, which counts GPUs of every resource`;
  return [{ type: 'GpusNotCharged', status: 'True', reason: 'NoKey', message }];
}

function misplacedFinding(pods: readonly string[]): ConditionState {
  if (pods.length === 0)
    return { type: 'Misplaced', status: 'False', reason: 'AsDeclared', message: 'every pod runs on the declared type' };
  const more = pods.length > NAMED ? `; and ${pods.length - NAMED} more` : '';
  return {
    type: 'Misplaced',
    status: 'True',
    reason: 'OtherType',
    message: `${pods.slice(0, NAMED).join('; ')}${more}`,
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
