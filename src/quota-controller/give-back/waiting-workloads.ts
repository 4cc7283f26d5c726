import type { Clock } from '../../host/clock.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { MERGE_PATCH, type KubeApi } from '../../kube/client.js';
import type { GroupObject } from '../../kube/quota/group-object.js';
import { GROUPS_PATH, itemPath } from '../../kube/quota/names.js';
import {
  MAX_WAITING,
  writeWaiting,
  type WaitingChange,
  type WaitingWorkload,
} from '../../kube/quota/waiting-workload.js';
import { formatQuantity } from '../../manifests/quantity.js';
import { of, total, type Quantities } from '../../manifests/quantities.js';
import { cohortOf, keptKey, readSpec, refKey, type Demand, type QuotaEngine } from '../../quota/internal.js';

export interface WaitingWorkloadsOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly group: (name: string) => GroupObject | null;
  readonly clock: Clock;
  readonly log: StructuredLog;
}

/** A workload counts as waiting from its second refusal within this time on: its client tries again. */
export const RETRY_WITHIN_MS = 300_000;
/** How long a refusal of a recorded workload is not recorded again. */
const REFRESH_MS = 60_000;
/** Refused workloads that this process remembers. */
const MAX_REMEMBERED = 10_000;

interface Refusals {
  readonly first: number;
  last: number;
  /** When they were last written to the group's status; null if never. */
  writtenAt: number | null;
}

/**
 * The workloads that wait for quota, in the status of their groups, where every replica reads them. Workloads of a
 * cohort are recorded if one of its groups reclaims, or their own group preempts: the arbitrator then decides which of
 * them get room first, and the reviews of all replicas refuse requests that would take room that is kept for others.
 */
export class WaitingWorkloads {
  readonly #options: WaitingWorkloadsOptions;
  /** Groups that reclaim, preempt or have waiting workloads. */
  readonly #asking = new Set<string>();
  readonly #refusals = new Map<string, Refusals>();

  constructor(options: WaitingWorkloadsOptions) {
    this.#options = options;
  }

  /** Notes a change of a group's object. */
  groupChanged(name: string): void {
    const object = this.#options.group(name);
    if (object !== null && (asks(object) || object.waiting.size > 0)) this.#asking.add(name);
    else this.#asking.delete(name);
  }

  /** The top of the cohort of a group. */
  cohortOf(name: string): string {
    return cohortOf(name, (each) => {
      const spec = this.#options.group(each)?.spec;
      return spec === undefined ? undefined : { parent: spec.parent ?? '', isElastic: spec.mode === 'elastic' };
    });
  }

  /** Why a demand must leave its group's free room to other workloads; null if it need not. */
  async keptFrom(demand: Demand): Promise<string | null> {
    const { engine, group } = this.#options;
    const all = this.#inCohort(demand.group);
    if (all.every(([, { room }]) => room === null)) return null;
    const key = refKey(demand.workload);
    const own = group(demand.group)?.waiting.get(key)?.room ?? null;
    if (own === 'Kept') return null;
    const others = all.filter(([other, { room }]) => other !== key && (own === null ? room !== null : room === 'Kept'));
    const decision = await engine.admit(demand, { dryRun: true });
    const status = engine.status(demand.group);
    if (!decision.allowed || status === null) return null;
    const kept = total(others.map(([, { amounts }]) => amounts));
    const taken = keptKey({
      adds: numbers(decision.charged),
      room: numbers(status.room),
      unlent: unlentOf(group(demand.group), numbers(status.selfUsed)),
      kept,
    });
    if (taken === null) return null;
    const [first = ''] = others.find(([, { amounts }]) => of(amounts, taken) > 0) ?? [];
    return `RoomKept: ${taken}=${formatQuantity(taken, of(kept, taken))} is kept for workloads that waited before, such as ${first}; try again later`;
  }

  /**
   * Notes that a demand was refused for lack of quota, or of room that is not kept for others. A queued workload waits
   * from its first refusal on. `priorityOf` is asked where its group preempts.
   */
  refused(demand: Demand, priorityOf: () => Promise<number>, isQueued = false): void {
    const { clock, group, engine } = this.#options;
    if (!this.#isRecorded(demand.group)) return;
    const key = refKey(demand.workload);
    const now = clock.now();
    const known = group(demand.group)?.waiting.get(key);
    const before = this.#refusals.get(key);
    const isAgain = before !== undefined && now - before.last < RETRY_WITHIN_MS;
    const refusals: Refusals = isAgain ? before : { first: now, last: now, writtenAt: null };
    refusals.last = now;
    this.#refusals.delete(key);
    this.#refusals.set(key, refusals);
    if (this.#refusals.size > MAX_REMEMBERED)
      for (const oldest of this.#refusals.keys()) if (this.#refusals.delete(oldest)) break;
    const isRecent = now - (refusals.writtenAt ?? known?.asked ?? -Infinity) < REFRESH_MS;
    if (isRecent || (known === undefined && !isAgain && !isQueued)) return;
    if (known === undefined && (group(demand.group)?.waiting.size ?? 0) >= MAX_WAITING) return;
    const { keys } = engine.explain(demand);
    const amounts = new Map(
      keys.flatMap(({ group: at, key: each, requested }): readonly [string, number][] =>
        at === demand.group && requested > 0n && !each.startsWith('cash/') ? [[each, Number(requested)]] : [],
      ),
    );
    refusals.writtenAt = now;
    // The arbitrator may be changing the rest of the entry.
    const entry = { amounts, since: known?.since ?? refusals.first, asked: now };
    void this.#record(demand.group, key, entry, priorityOf);
  }

  /** Notes that a workload was admitted. */
  admitted(demand: Demand): void {
    const key = refKey(demand.workload);
    const isWritten = (this.#refusals.get(key)?.writtenAt ?? null) !== null;
    this.#refusals.delete(key);
    if (isWritten || this.#options.group(demand.group)?.waiting.has(key) === true)
      void this.write(demand.group, new Map([[key, null]]));
  }

  /** Writes entries of a group; null removes one. Returns whether they were written, and never rejects. */
  async write(group: string, entries: ReadonlyMap<string, WaitingChange | null>): Promise<boolean> {
    const { api, log } = this.#options;
    const waiting = Object.fromEntries(
      [...entries].map(([key, entry]) => [key, entry === null ? null : writeWaiting(entry)]),
    );
    const path = `${itemPath(GROUPS_PATH, group)}/status`;
    const answer = await api.request({
      method: 'PATCH',
      path,
      body: { status: { waiting } },
      contentType: MERGE_PATCH,
    });
    if (!answer.ok && answer.code !== 'not-found')
      log.warn({ group, code: answer.code, reason: answer.message }, 'recording waiting workloads failed');
    return answer.ok;
  }

  /** Records a refused workload, in a group that preempts with its priority. */
  async #record(group: string, key: string, entry: WaitingChange, priorityOf: () => Promise<number>): Promise<void> {
    const preempts = this.#options.group(group)?.preemption === 'LowerPriority';
    const priority = preempts ? await priorityOf().catch(() => 0) : undefined;
    await this.write(group, new Map([[key, priority === undefined ? entry : { ...entry, priority }]]));
  }

  /** Whether the group preempts, or a group of its cohort reclaims. */
  #isRecorded(name: string): boolean {
    if (this.#asking.size === 0) return false;
    if (this.#options.group(name)?.preemption === 'LowerPriority') return true;
    const top = this.cohortOf(name);
    return [...this.#asking].some(
      (each) => this.#options.group(each)?.reclaim !== 'Never' && this.cohortOf(each) === top,
    );
  }

  #inCohort(name: string): readonly (readonly [string, WaitingWorkload])[] {
    if (this.#asking.size === 0) return [];
    const top = this.cohortOf(name);
    return [...this.#asking].flatMap((each) => {
      const waiting = this.#options.group(each)?.waiting;
      return waiting === undefined || waiting.size === 0 || this.cohortOf(each) !== top ? [] : [...waiting];
    });
  }
}

/** Whether workloads are stopped for waiting ones of a group. */
function asks({ reclaim, preemption }: GroupObject): boolean {
  return reclaim !== 'Never' || preemption !== 'Never';
}

/** The unused amounts of the part that a group lends to nobody. */
function unlentOf(object: GroupObject | null, used: Quantities): Quantities {
  const spec = object === null ? null : readSpec(object.spec);
  if (spec?.ok !== true) return new Map();
  return new Map(
    [...spec.lend].map(([key, lend]) => [
      key,
      Math.max(0, Number(spec.hard.get(key) ?? 0) - Number(lend) - of(used, key)),
    ]),
  );
}

/** Amounts of a group without its budgets of hours. */
export function numbers(amounts: ReadonlyMap<string, bigint>): Quantities {
  return new Map(
    [...amounts].flatMap(([key, amount]): readonly [string, number][] =>
      key.startsWith('cash/') ? [] : [[key, Number(amount)]],
    ),
  );
}
