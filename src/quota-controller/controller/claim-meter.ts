import { type Command, refKey, type QuotaEngine } from '../../quota/index.js';
import type { Clock } from '../../host/clock.js';
import { without, union, type Interval } from './interval.js';
import type { PodObject } from '../workloads/pod-object.js';
import type { WorkloadObject } from '../workloads/workload-object.js';

export interface ClaimMeterOptions {
  readonly engine: QuotaEngine;
  /** A workload by its `refKey`; null for none with a group. */
  readonly workload: (key: string) => WorkloadObject | null;
  /** Executes a command; rejects on a conflict. */
  readonly execute: (command: Command) => Promise<boolean>;
  /** When a meter last watched pods before this one, milliseconds; null if unknown. */
  readonly lastWatchedAt: number | null;
  readonly clock: Clock;
}

/** A use of a claim in the ledger, stored as a record of a pod. */
interface Segment extends Interval {
  readonly id: string;
  /** Uid of a pod that uses the claim in this time; other pods may use it too. */
  readonly pod: string;
}

const PREFIX = 'claim/';
const CLAIM_KIND = 'ResourceClaim.resource.k8s.io';

/**
 * Charges the hours of ResourceClaims that pods share: the time in which at least one pod uses the claim, once. The
 * ledger keeps these times as long as a pod exists that used the claim, so that a new leader charges exactly the times
 * that its predecessor missed.
 */
export class ClaimMeter {
  readonly #options: ClaimMeterOptions;
  /** Times of use, by claim and by uid of the pod. */
  readonly #uses = new Map<string, Map<string, Interval>>();
  /** Uids of deleted pods, by claim. */
  readonly #deleted = new Map<string, Set<string>>();
  readonly #segments = new Map<string, Map<string, Segment>>();

  constructor(options: ClaimMeterOptions) {
    this.#options = options;
  }

  /** Whether a pod record or a queue item belongs to a claim. */
  static isAbout(id: string): boolean {
    return id.startsWith(PREFIX);
  }

  /** Loads a use from the ledger. */
  load(id: string, interval: Interval): void {
    const at = id.lastIndexOf('@');
    this.#segmentsOf(id.slice(0, at)).set(id, { id, pod: id.slice(at + 1).replace(/\++$/, ''), ...interval });
  }

  /** All known claims. */
  claims(): ReadonlySet<string> {
    return new Set([...this.#uses.keys(), ...this.#segments.keys()]);
  }

  /** Records the claims that a pod uses, and returns them. */
  note({ uid, namespace, claims, startedAt, endedAt }: PodObject): readonly string[] {
    if (startedAt === null) return [];
    const keys = claims.flatMap(({ claimName }) => (claimName === '' ? [] : [keyOf(namespace, claimName)]));
    for (const key of keys) {
      const uses = this.#uses.get(key) ?? new Map<string, Interval>();
      this.#uses.set(key, uses.set(uid, { start: startedAt, end: Math.max(startedAt, endedAt ?? Infinity) }));
    }
    return keys;
  }

  /** Records that a pod, which ended at `end` at the latest, was deleted; returns its claims. */
  noteDeleted(pod: PodObject, end: number): readonly string[] {
    const keys = this.note({ ...pod, endedAt: end });
    for (const key of keys) this.#deleted.set(key, (this.#deleted.get(key) ?? new Set()).add(pod.uid));
    return keys;
  }

  /** Whether the group of a claim is known; the claim may be observed later than its pods. */
  isKnown(claim: string): boolean {
    return this.#workload(claim) !== null;
  }

  /** Updates the ledger to the times in which pods use a claim. */
  async reconcile(claim: string): Promise<void> {
    const uses = this.#uses.get(claim) ?? new Map<string, Interval>();
    const deleted = new Set(this.#deleted.get(claim));
    const segments = this.#segmentsOf(claim);
    for (const segment of [...segments.values()])
      if (segment.end === Infinity) await this.#end(segments, segment, uses);
    for (const missing of without(union(uses.values()), union(segments.values())))
      for (let at = missing.start; at < missing.end;) {
        // The pod with the longest use among the pods that use the claim at this time.
        const [pod, { end }] = [...uses]
          .filter(([, use]) => use.start <= at && use.end > at)
          .reduce((longest, next) => (next[1].end > longest[1].end ? next : longest));
        if (!(await this.#charge(claim, segments, pod, { start: at, end: Math.min(end, missing.end) }))) break;
        at = Math.min(end, missing.end);
      }
    for (const uid of deleted) {
      uses.delete(uid);
      this.#deleted.get(claim)?.delete(uid);
    }
    await this.#forget(segments, uses);
    if (uses.size === 0 && segments.size === 0) {
      this.#uses.delete(claim);
      this.#deleted.delete(claim);
      this.#segments.delete(claim);
    }
  }

  /** Ends a use in the ledger that continues although its pod has ended. */
  async #end(segments: Map<string, Segment>, segment: Segment, uses: ReadonlyMap<string, Interval>): Promise<void> {
    const { lastWatchedAt, clock, execute } = this.#options;
    const { id, start, pod } = segment;
    const now = clock.now();
    const use = uses.get(pod);
    // A pod that was deleted while no meter watched used the claim at least until a meter last watched.
    const end = Math.max(start, use?.end ?? Math.min(lastWatchedAt ?? now, now));
    if (end === Infinity) return;
    const next = Math.min(now, ...[...uses.values()].filter((other) => other.end > end).map((other) => other.start));
    const isCertain = use !== undefined || next <= end;
    await execute({ type: 'podStopped', pod: id, end, retain: true, ...(isCertain ? {} : { uncertainUntil: next }) });
    segments.set(id, { ...segment, end });
  }

  /** Charges a use that is missing in the ledger; false where no budget counts it. */
  async #charge(
    claim: string,
    segments: Map<string, Segment>,
    pod: string,
    { start, end }: Interval,
  ): Promise<boolean> {
    const { engine, execute, clock } = this.#options;
    const workload = this.#workload(claim);
    const demand = workload?.demand ?? null;
    if (workload === null || demand === null || (engine.status(workload.group)?.burnRate.size ?? 0) === 0) return false;
    let id = `${claim}@${pod}`;
    while (segments.has(id)) id += '+';
    const { namespace, name } = workload;
    const isCharged = await execute({
      type: 'podStarted',
      pod: id,
      workload: { kind: CLAIM_KIND, namespace, name },
      group: workload.group,
      types: demand.types ?? {},
      since: Math.min(start, clock.now()),
      requests: demand.podSets[0]?.requests ?? {},
    });
    if (!isCharged) return false;
    segments.set(id, { id, pod, start, end: Infinity });
    if (end === Infinity) return true;
    await execute({ type: 'podStopped', pod: id, end, retain: true });
    segments.set(id, { id, pod, start, end });
    return true;
  }

  /** Removes uses from the ledger that ended before all existing pods began. */
  async #forget(segments: Map<string, Segment>, uses: ReadonlyMap<string, Interval>): Promise<void> {
    const earliest = Math.min(...[...uses.values()].map(({ start }) => start));
    for (const { id, end } of [...segments.values()]) {
      if (end > earliest || end === Infinity) continue;
      await this.#options.execute({ type: 'podForgotten', pod: id });
      segments.delete(id);
    }
  }

  #workload(claim: string): WorkloadObject | null {
    return this.#options.workload(claim.slice(PREFIX.length));
  }

  #segmentsOf(claim: string): Map<string, Segment> {
    const segments = this.#segments.get(claim) ?? new Map<string, Segment>();
    this.#segments.set(claim, segments);
    return segments;
  }
}

function keyOf(namespace: string, name: string): string {
  return `${PREFIX}${refKey({ kind: CLAIM_KIND, namespace, name })}`;
}
