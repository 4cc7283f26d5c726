import type { KnownWorkloads } from './known-workloads.js';
import { hashOf } from './cover-text.js';
import { accountOf, type Account, type WorkloadObject } from './workload-object.js';

/** Maximum length of a chain of owners; longer than any kind has. */
export const MAX_OWNERS = 8;

/** An object that is no pod, and its controller. */
export interface OwnerLink {
  readonly uid: string;
  /** Empty where it has none. */
  readonly ownerUid: string;
}

/** Charged owners that ended while something of theirs was left; the oldest are forgotten first. */
const MOST_ENDED = 10_000;

/**
 * The pods that run, and the chains of controllers that lead from them to charged workloads. The pods below a workload
 * are covered by its charge as far as that goes. What loses its charged owner while it exists has come loose: it stays
 * charged to the account of that owner, by itself.
 */
export class OwnedPods {
  readonly #known: KnownWorkloads;
  readonly #pods = new Map<string, WorkloadObject>();
  readonly #ownerOf = new Map<string, string>();
  readonly #below = new Map<string, Set<string>>();
  readonly #loose = new Map<string, Account>();
  readonly #ended = new Map<string, Account>();
  /** What was covered or charged when a replica last ran, by `hashOf`; null once it is compared with what is there. */
  #recalled: ReadonlyMap<number, Account> | null = null;

  constructor(known: KnownWorkloads) {
    this.#known = known;
  }

  pod(uid: string): WorkloadObject | null {
    return this.#pods.get(uid) ?? null;
  }

  /** Uid of the controller of an object; null where it has none, or is not known. */
  ownerOf(uid: string): string | null {
    return this.#ownerOf.get(uid) ?? null;
  }

  /** Whether an object without an owner is to be followed: it had one, or came loose. */
  follows(uid: string): boolean {
    return this.#ownerOf.has(uid) || this.#loose.has(uid) || this.recalled(uid) !== null;
  }

  /** Notes what was covered or charged when a replica last ran, until `null` ends this. */
  recall(accounts: ReadonlyMap<number, Account> | null): void {
    this.#recalled = accounts;
  }

  /** The account that paid for an object when a replica last ran; null for none. */
  recalled(uid: string): Account | null {
    if (this.#recalled === null || this.#recalled.size === 0) return null;
    return this.#recalled.get(hashOf(uid)) ?? null;
  }

  pods(): Iterable<WorkloadObject> {
    return this.#pods.values();
  }

  /** Uids of objects without the label of a group that charged workloads cover, and the accounts of these. */
  *covered(): Generator<readonly [string, Account]> {
    for (const [uid, ownerUid] of this.#ownerOf) {
      const pod = this.#pods.get(uid);
      const root = pod === undefined ? this.rootAbove(ownerUid) : pod.isLabelled ? null : this.rootOf(pod);
      if (root !== null) yield [uid, accountOf(root)];
    }
  }

  /** What an object that came loose is charged to; null for all others. */
  looseAccount(uid: string): Account | null {
    return this.#loose.get(uid) ?? null;
  }

  /** Notes that an object without the label of a group is charged by itself. */
  loosen(uid: string, account: Account): void {
    this.#loose.set(uid, account);
  }

  /** Notes that an object has an owner again that is charged for it, or ended. */
  bind(uid: string): void {
    this.#loose.delete(uid);
  }

  /** Notes a pod as it is now; null for one that ended. */
  putPod(uid: string, pod: WorkloadObject | null): void {
    if (pod === null) this.#pods.delete(uid);
    else this.#pods.set(uid, pod);
    this.#link(uid, pod?.owner?.uid ?? '');
  }

  /** Notes the controller of another object; null for an object that is gone. */
  putLink(uid: string, link: OwnerLink | null): void {
    this.#link(uid, link?.ownerUid ?? '');
  }

  /** A charged workload ended, and what it owned may be left. */
  end(uid: string, account: Account): void {
    if ((this.#below.get(uid)?.size ?? 0) === 0) return;
    this.#ended.set(uid, account);
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= MOST_ENDED) return;
      this.#ended.delete(oldest);
    }
  }

  /** The charged workload whose charge covers a pod; null for none. */
  rootOf({ owner, group, isLabelled }: WorkloadObject): WorkloadObject | null {
    return this.rootAbove(owner?.uid ?? '', isLabelled ? group : '');
  }

  /**
   * The outermost charged workload of a chain of controllers that begins with `uid`. The chain ends at a workload of
   * another group.
   */
  rootAbove(uid: string, group = ''): WorkloadObject | null {
    let [root, named] = [null as WorkloadObject | null, group];
    for (const at of this.#chain(uid)) {
      const workload = this.#known.withUid(at);
      if (workload === null || workload.group === '') continue;
      if (named !== '' && workload.group !== named) break;
      [root, named] = [workload, workload.group];
    }
    return root;
  }

  /** The account of a charged owner that ended, for what it left behind; null for none. */
  heirOf(uid: string): Account | null {
    for (const at of this.#chain(uid)) {
      const account = this.#ended.get(at) ?? this.#loose.get(at);
      if (account !== undefined) return account;
    }
    return null;
  }

  /** The pods below an object, with its own group or without one. */
  podsBelow(uid: string, group: string): readonly WorkloadObject[] {
    const found: WorkloadObject[] = [];
    for (const below of this.#allBelow(uid)) {
      const pod = this.#pods.get(below);
      if (pod !== undefined && (!pod.isLabelled || pod.group === group)) found.push(pod);
    }
    return found;
  }

  /** The pods below an object that name a group. */
  labelledBelow(uid: string): readonly WorkloadObject[] {
    return [...this.#allBelow(uid)]
      .flatMap((below) => this.#pods.get(below) ?? [])
      .filter(({ isLabelled }) => isLabelled);
  }

  /** Uids of the objects below an object that are no pods. */
  *objectsBelow(uid: string): Generator<string> {
    for (const below of this.#allBelow(uid)) if (!this.#pods.has(below)) yield below;
  }

  /** The pods that the charge of a workload has to cover. */
  podsOf({ uid, group }: Pick<WorkloadObject, 'uid' | 'group'>): readonly WorkloadObject[] {
    return this.podsBelow(uid, group).filter((pod) => this.rootOf(pod)?.uid === uid);
  }

  *#chain(from: string): Generator<string> {
    let at = from;
    for (let length = 0; at !== '' && length < MAX_OWNERS; length++) {
      yield at;
      at = this.#ownerOf.get(at) ?? '';
    }
  }

  *#allBelow(uid: string, depth = 0): Generator<string> {
    if (depth === MAX_OWNERS) return;
    for (const below of this.#below.get(uid) ?? []) {
      yield below;
      yield* this.#allBelow(below, depth + 1);
    }
  }

  #link(uid: string, ownerUid: string): void {
    const before = this.#ownerOf.get(uid) ?? '';
    if (before === ownerUid) return;
    const siblings = this.#below.get(before);
    siblings?.delete(uid);
    if (siblings?.size === 0) this.#below.delete(before);
    if (ownerUid === '') return void this.#ownerOf.delete(uid);
    this.#ownerOf.set(uid, ownerUid);
    const others = this.#below.get(ownerUid);
    if (others === undefined) this.#below.set(ownerUid, new Set([uid]));
    else others.add(uid);
  }
}
