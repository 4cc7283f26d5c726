import type { Informer } from '../../kube/informer.js';
import type { KubeObject } from '../../kube/object.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { refOfKey, type EvaluationOptions } from '../../quota/internal.js';
import { readObject, servedKind, type ServedKind } from '../workloads/kinds.js';
import type { KnownWorkloads } from '../workloads/known-workloads.js';
import type { OwnedPods, OwnerLink } from '../workloads/owned-pods.js';
import {
  accountOf,
  inAccount,
  isPodKind,
  isRunning,
  type Account,
  type WorkloadObject,
} from '../workloads/workload-object.js';

export interface OwnerWatchOptions {
  readonly api: WatchableApi;
  readonly owned: OwnedPods;
  readonly known: KnownWorkloads;
  readonly kinds: () => readonly ServedKind[];
  readonly evaluation: () => Pick<EvaluationOptions, 'groupLabel'>;
  /** Reads an object as it is charged; null where it is not charged. */
  readonly read: (kind: ServedKind, object: KubeObject) => WorkloadObject | null;
  /** Called with an object that is charged by itself from now on, or no longer. */
  readonly changed: (before: WorkloadObject | null, after: WorkloadObject | null) => void;
  /** Called with the uid of a workload whose pods changed. */
  readonly reconsider: (uid: string) => void;
  /** Called with the uid of an object that came loose, and that `look` has to read. */
  readonly loosened: (uid: string) => void;
}

/** An object that is no pod, with its controller. */
interface Link extends OwnerLink {
  readonly kind: ServedKind;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Watches the pods, and the controllers of all objects that a workload may own. Tells which workloads are to be charged
 * anew because of their pods, and charges by itself what came loose from a charged owner.
 */
export class OwnerWatch {
  readonly #options: OwnerWatchOptions;
  /** By path of the kind. */
  readonly #informers = new Map<string, Informer<Link>>();
  /** Objects that came loose, and are no pods. */
  readonly #looseLinks = new Map<string, Link>();
  /** By uid of an object that came loose: the charged workload that it left while that one existed. */
  readonly #left = new Map<string, string>();

  constructor(options: OwnerWatchOptions) {
    this.#options = options;
  }

  informers(): Iterable<Informer<unknown>> {
    return this.#informers.values();
  }

  /** Creates the informers of new kinds, and stops those of kinds that are not served any more. */
  serve(kinds: readonly ServedKind[]): readonly Informer<unknown>[] {
    for (const [path, informer] of this.#informers) {
      if (kinds.some((kind) => kind.path === path)) continue;
      this.#informers.delete(path);
      for (const link of informer.values()) this.#linkChanged(link, null);
      void informer.stop();
    }
    return kinds
      .filter((kind) => isOwner(kind) && !this.#informers.has(kind.path))
      .map((kind) => {
        const keep = (object: unknown): Link | null => this.#readLink(kind, object as KubeObject);
        const informer = this.#options.api.informer({ path: kind.path, isMetadataOnly: true, keep });
        informer.onChange(({ before, after }) => this.#linkChanged(before, after));
        this.#informers.set(kind.path, informer);
        return informer;
      });
  }

  /** Whether a pod is to be known: it names a group, or may belong to a workload that does. */
  concerns(pod: WorkloadObject): boolean {
    return pod.group !== '' || (isRunning(pod) && (pod.owner !== null || this.#options.owned.follows(pod.uid)));
  }

  /** Charges by itself what came loose from a charged owner while no replica ran. Rejects if the API server fails. */
  async settleRecalled(): Promise<void> {
    const { owned, known } = this.#options;
    const links = [...this.#informers.values()].flatMap((informer) => informer.values());
    for (const link of links) {
      const account = owned.recalled(link.uid);
      const isOwned = owned.rootAbove(link.ownerUid) !== null || known.withUid(link.uid)?.isLabelled === true;
      if (account === null || isOwned) continue;
      owned.loosen(link.uid, account);
      this.#looseLinks.set(link.uid, link);
      await this.look(link.uid);
    }
    for (const pod of owned.pods()) {
      const account = pod.isLabelled || owned.rootOf(pod) !== null ? null : owned.recalled(pod.uid);
      if (account === null) continue;
      owned.loosen(pod.uid, account);
      this.#settlePod(pod.uid, pod, null);
    }
    owned.recall(null);
  }

  podChanged(before: WorkloadObject | null, after: WorkloadObject | null): void {
    const { owned, reconsider } = this.#options;
    const uid = (after ?? before)?.uid ?? '';
    const left = before === null ? null : owned.rootOf(before);
    owned.putPod(uid, after);
    this.#settlePod(uid, after, left);
    const root = after === null ? null : owned.rootOf(after);
    if (left !== null && (left.uid !== root?.uid || !isAlike(before, after))) reconsider(left.uid);
    if (root !== null && root.uid !== left?.uid) reconsider(root.uid);
  }

  /**
   * Reads what came loose from a workload that has ended, and returns what of it is charged by itself: the workload is
   * released after that. Rejects if the API server fails.
   */
  async leftFrom(uid: string): Promise<readonly WorkloadObject[]> {
    const { owned, known } = this.#options;
    const loose = [...this.#left].filter(([, root]) => root === uid).map(([object]) => object);
    for (const object of loose) await this.look(object);
    const all = loose.flatMap((object) => [object, ...owned.podsBelow(object, '').map((pod) => pod.uid)]);
    return all.flatMap((object) => known.withUid(object) ?? []);
  }

  /** Notes that a workload that has ended is released. */
  released(uid: string): void {
    for (const [object, root] of this.#left) if (root === uid) this.#left.delete(object);
  }

  /** What a charged workload owned is charged by itself from now on. */
  ended(workload: WorkloadObject): void {
    this.#options.owned.end(workload.uid, accountOf(workload));
    this.#settleBelow(workload.uid);
  }

  /** Reads an object that came loose, and charges it as it is. */
  async look(uid: string): Promise<void> {
    const { api, owned, known, read, changed } = this.#options;
    const link = this.#looseLinks.get(uid);
    const account = owned.looseAccount(uid);
    if (link === undefined || account === null) return;
    const object = await readObject(api, link.kind, link.namespace, link.name);
    const was = known.withUid(uid);
    const is = object?.metadata?.uid === uid ? read(link.kind, object) : null;
    const isBound = is !== null && owned.rootAbove(link.ownerUid) !== null;
    if (is === null || isBound) {
      this.#looseLinks.delete(uid);
      owned.bind(uid);
      if (is === null) owned.end(uid, account);
    }
    if (is === null || isBound) return was === null ? this.#settleBelow(uid) : changed(was, null);
    changed(was, is);
    this.#settleBelow(uid);
  }

  /**
   * Whether a charged object that no list of labelled objects has is there: then it came loose, and is charged by
   * itself. Rejects if the API server fails.
   */
  async isLeft({ key, uid }: { readonly key: string; readonly uid: string }, account: Account): Promise<boolean> {
    const { api, owned, kinds, read, changed } = this.#options;
    const { namespace = '', name } = refOfKey(key);
    const kind = servedKind(kinds(), key);
    if (kind !== null && isPodKind(kind)) {
      const pod = owned.pod(uid);
      if (pod === null || pod.isLabelled || owned.rootOf(pod) !== null) return false;
      owned.loosen(uid, account);
      this.#settlePod(uid, pod, null);
      return true;
    }
    const object = kind === null ? null : await readObject(api, kind, namespace, name);
    if (kind !== null && object?.metadata?.uid === uid) {
      if (!isOwner(kind)) return read(kind, object) !== null;
      owned.loosen(uid, account);
      this.#looseLinks.set(uid, linkOf(kind, object));
      changed(null, read(kind, object));
      return true;
    }
    const was = this.#options.known.withUid(uid);
    owned.bind(uid);
    this.#looseLinks.delete(uid);
    owned.end(uid, account);
    if (was === null) this.#settleBelow(uid);
    else changed(was, null);
    return false;
  }

  #linkChanged(before: Link | null, after: Link | null): void {
    const { owned, known, reconsider, loosened } = this.#options;
    const link = after ?? before;
    if (link === null) return;
    const { uid } = link;
    const left = before === null ? null : owned.rootAbove(before.ownerUid);
    const account = left === null ? owned.heirOf(before?.ownerUid ?? '') : accountOf(left);
    owned.putLink(uid, after);
    const root = after === null ? null : owned.rootAbove(after.ownerUid);
    if (owned.looseAccount(uid) !== null) {
      this.#looseLinks.set(uid, link);
      return loosened(uid);
    }
    if (before?.ownerUid === after?.ownerUid) return;
    if (root === null && account !== null && known.withUid(uid)?.isLabelled !== true) {
      if (after === null) owned.end(uid, account);
      else {
        owned.loosen(uid, account);
        this.#looseLinks.set(uid, after);
        if (left !== null) this.#left.set(uid, left.uid);
        loosened(uid);
      }
    }
    this.#settleBelow(uid);
    for (const workload of [left, root]) if (workload !== null) reconsider(workload.uid);
  }

  #settleBelow(uid: string): void {
    const { owned } = this.#options;
    for (const pod of owned.podsBelow(uid, '')) this.#settlePod(pod.uid, pod, null);
    for (const pod of owned.labelledBelow(uid)) this.#options.reconsider(pod.uid);
  }

  /** Charges a pod by itself, or no longer; `left` is the workload that covered it. */
  #settlePod(uid: string, pod: WorkloadObject | null, left: WorkloadObject | null): void {
    const { owned, known, changed } = this.#options;
    const isCovered = pod !== null && owned.rootOf(pod) !== null;
    const isBound = pod === null || pod.isLabelled || isCovered;
    const account = isBound
      ? null
      : (owned.looseAccount(uid) ?? (left === null ? owned.heirOf(pod.owner?.uid ?? '') : accountOf(left)));
    if (account === null) owned.bind(uid);
    else owned.loosen(uid, account);
    if (account === null) this.#left.delete(uid);
    else if (left !== null) this.#left.set(uid, left.uid);
    const was = known.withUid(uid);
    const isCharged = pod !== null && pod.group !== '' && (pod.isLabelled || !isCovered);
    const is = pod !== null && account !== null ? inAccount(pod, account) : isCharged ? pod : null;
    if (
      (was !== null || is !== null) &&
      !(was !== null && is !== null && was.version === is.version && was.group === is.group)
    )
      changed(was, is);
  }

  /** An object without a controller is followed only if it names no group, and had a controller or came loose. */
  #readLink(kind: ServedKind, object: KubeObject): Link | null {
    const { owned, evaluation } = this.#options;
    const link = linkOf(kind, object);
    if (link.uid === '') return null;
    if (link.ownerUid !== '') return link;
    const { groupLabel = GROUP_LABEL } = evaluation();
    return (object.metadata?.labels?.[groupLabel] ?? '') === '' && owned.follows(link.uid) ? link : null;
  }
}

/** Whether objects of a kind may own pods, and are no pods. */
function isOwner(kind: ServedKind): boolean {
  return !isPodKind(kind) && kind.evaluator.amounts === undefined && kind.evaluator.labels === undefined;
}

function linkOf(kind: ServedKind, { metadata }: KubeObject): Link {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const { uid = '', namespace = '', name = '' } = metadata ?? {};
  return { uid, ownerUid: owner?.uid ?? '', kind, namespace, name };
}

/** Whether two states of a pod are charged alike. */
function isAlike(before: WorkloadObject | null, after: WorkloadObject | null): boolean {
  return before?.charge === after?.charge && before?.terminating === after?.terminating;
}
