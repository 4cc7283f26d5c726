import type { Clock } from '../../host/clock.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { KubeError, type KubeFailureCode } from '../../kube/failure.js';
import type { KubeAnswer, KubeApi } from '../../kube/client.js';
import { versionOf, type KubeObject, type OwnerReference } from '../../kube/object.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { apiGroupOf, type Demand, type QuotaEngine } from '../../quota/index.js';
import type { NamespaceAccess } from '../admission/namespace-access.js';
import type { WaitingWorkloads } from '../give-back/waiting-workloads.js';
import type { Reconciler } from '../reconciler/reconciler.js';
import { isKind, type WorkloadReader } from '../workload-reader.js';
import type { KueueObjects } from './kueue-objects.js';
import {
  KUEUE,
  WORKLOAD_KIND,
  isDecidable,
  readKueueWorkload,
  type CheckEntry,
  type CheckState,
  type Workload,
} from './workload.js';

export interface AdmissionCheckOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly objects: KueueObjects;
  /** Evaluates the objects that Workloads stand for. */
  readonly reader: WorkloadReader;
  readonly access: NamespaceAccess;
  readonly reconciler: Pick<Reconciler, 'onChange' | 'admitted'>;
  /** Records Workloads that wait, and keeps room for others; null without an arbitrator. */
  readonly arbitrated: Pick<WaitingWorkloads, 'keptFrom' | 'refused' | 'admitted'> | null;
  /** How long an answer is reserved until it is observed. */
  readonly reservationMs: number;
  /** The engine's time. */
  readonly clock: Clock;
  readonly log: StructuredLog;
  /** How often the reason why a Workload waits is written anew while it changes. */
  readonly messageMs?: number;
  /** Interval at which a waiting Workload is read anew: labels of its object or its namespace may have changed. */
  readonly rereadMs?: number;
}

/** A Workload that waits for room in its group. */
interface Waiting {
  readonly demand: Demand;
  readonly podSets: readonly string[];
  /** Group and types, as the answer records them. */
  readonly labels: Readonly<Record<string, string>>;
  /** The generation that was read, and when. */
  readonly generation: number;
  readonly readAt: number;
  /** When the reason was last written. */
  toldAt: number;
}

/** The demand that a Workload is charged for. */
type Wanted =
  | { readonly is: 'charged'; readonly demand: Demand; readonly podSets: readonly string[]; readonly labels: Labels }
  /** Nothing is charged for it. */
  | { readonly is: 'free'; readonly reason: string }
  /** It cannot be charged as it is now. */
  | { readonly is: 'refused'; readonly reason: string };

type Labels = Readonly<Record<string, string>>;

const FIELD_MANAGER = 'gpu-manager-quota';
const APPLY_PATCH = 'application/apply-patch+yaml';
/** The key of the pass over all waiting Workloads; no uid. */
const ROOM = 'room';
const MAX_MESSAGE = 1024;

/**
 * The quota as an AdmissionCheck of Kueue. A Workload whose group has room becomes Ready; another one stays Pending
 * with the reason, and becomes Ready when room appears. Its amounts are reserved before the answer is written, and the
 * answer is the charge: the reconciler charges a Workload as long as it has the answer. An answer is written only to
 * the version of the Workload for which it was decided, so that each reservation ends as answer or not at all.
 */
export class AdmissionCheckController {
  readonly #options: AdmissionCheckOptions;
  readonly #queue: ReconcileQueue;
  readonly #waiting = new Map<string, Waiting>();
  readonly #attempts = new Map<string, Promise<void>>();
  readonly #unsubscribe: (() => void)[] = [];

  constructor(options: AdmissionCheckOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#queue = new ReconcileQueue({
      reconcile: (key) => (key === ROOM ? this.#admitWaiting() : this.#decide(key)),
      failed: (key, error) => log.warn({ err: error, workload: key }, "answering Kueue's Workload failed; retrying"),
      clock,
      log,
    });
  }

  start(): void {
    const { objects, reconciler } = this.#options;
    this.#unsubscribe.push(
      objects.onChange(({ before, after }) => this.#queue.put((after ?? before)?.uid ?? '', 0)),
      objects.onChecks(() => this.#checksChanged()),
      reconciler.onChange(() => {
        if (this.#waiting.size > 0) this.#queue.put(ROOM, 0);
      }),
    );
    this.#checksChanged();
  }

  async stop(): Promise<void> {
    for (const end of this.#unsubscribe.splice(0)) end();
    await this.#queue.stop();
    this.#waiting.clear();
  }

  #checksChanged(): void {
    const { objects } = this.#options;
    for (const check of objects.checks())
      if (check.activeFor !== check.generation) this.#queue.put(`${ACTIVATE}${check.name}`, 0);
    for (const { uid } of objects.workloads()) this.#queue.put(uid, 0);
  }

  /** Until the AdmissionCheck is Active, the ClusterQueues that name it admit nothing. */
  async #activate(name: string): Promise<void> {
    const { objects, clock } = this.#options;
    const check = objects.check(name);
    if (check === null || check.activeFor === check.generation || objects.path === null) return;
    const { uid, generation } = check;
    const condition = {
      type: 'Active',
      status: 'True',
      reason: 'Active',
      message: 'gpu-manager quota serve decides',
      observedGeneration: generation,
      lastTransitionTime: timeText(clock.now()),
    };
    const answer = await this.#apply(`${objects.path}/admissionchecks/${encodeURIComponent(name)}`, {
      kind: 'AdmissionCheck',
      metadata: { name, uid },
      status: { conditions: [condition] },
    });
    if (!answer.ok && answer.code !== 'not-found' && answer.code !== 'conflict')
      throw new KubeError(`AdmissionCheck ${name} cannot be activated`, answer);
  }

  /** Decides about one Workload. */
  async #decide(key: string): Promise<void> {
    if (key.startsWith(ACTIVATE)) return this.#activate(key.slice(ACTIVATE.length));
    const workload = this.#options.objects.workload(key);
    const ours = workload === null ? [] : this.#ours(workload);
    if (workload === null || ours.length === 0) return void this.#waiting.delete(key);
    // Kueue never considers a Workload again that lost its quota with this answer.
    const isStuck = !workload.isReserved && !workload.isFinished && ours.some(({ state }) => state === 'Retry');
    if (isStuck) await this.#answer(workload, ours, 'Pending', 'waiting for quota of Kueue');
    if (!isDecidable(workload) || !ours.some(({ state }) => state === 'Pending')) return void this.#waiting.delete(key);
    const { rereadMs = 30_000 } = this.#options;
    const known = this.#waiting.get(key);
    const now = performance.now();
    if (known?.generation === workload.generation && now < known.readAt + rereadMs) return this.#admit(key, known);
    const wanted = await this.#wanted(workload);
    if (wanted === null) return void this.#waiting.delete(key);
    if (wanted.is === 'free') {
      this.#waiting.delete(key);
      await this.#answer(workload, ours, 'Ready', wanted.reason);
      return;
    }
    this.#queue.put(key, rereadMs);
    if (wanted.is === 'refused') {
      this.#waiting.delete(key);
      await this.#tell(workload, ours, wanted.reason);
      return;
    }
    const { demand, podSets, labels } = wanted;
    const { generation } = workload;
    const waiting = { demand, podSets, labels, generation, readAt: now, toldAt: known?.toldAt ?? -Infinity };
    this.#waiting.set(key, waiting);
    await this.#admit(key, waiting);
  }

  /**
   * Takes the quota of a running Workload back: Kueue stops its pods and asks again. It stays charged until Kueue
   * begins. False if Kueue stops it already, or could not be told.
   */
  async takeBack(uid: string): Promise<boolean> {
    const workload = this.#options.objects.workload(uid);
    if (workload === null || !isDecidable(workload)) return false;
    const ours = this.#ours(workload).filter(({ state }) => state === 'Ready');
    if (ours.length === 0) return false;
    const { podSets, chargedTo } = workload;
    return (
      await this.#write(workload, ours, 'Retry', 'its quota goes back to the group that lent it', podSets, chargedTo)
    ).ok;
  }

  /** Tries every waiting Workload, by priority and then by the time of Kueue's reservation. */
  async #admitWaiting(): Promise<void> {
    const { objects } = this.#options;
    const order = [...this.#waiting.keys()]
      .flatMap((uid) => objects.workload(uid) ?? [])
      .sort((a, b) => b.priority - a.priority || compare(a.reservedAt, b.reservedAt) || compare(a.key, b.key));
    for (const { uid } of order) {
      const waiting = this.#waiting.get(uid);
      if (waiting !== undefined) await this.#admit(uid, waiting);
    }
  }

  /** One attempt at a time for each Workload. */
  async #admit(uid: string, waiting: Waiting): Promise<void> {
    const before = this.#attempts.get(uid) ?? Promise.resolve();
    const attempt = before.catch(() => undefined).then(() => this.#attempt(uid, waiting));
    this.#attempts.set(uid, attempt);
    try {
      await attempt;
    } finally {
      if (this.#attempts.get(uid) === attempt) this.#attempts.delete(uid);
    }
  }

  /** Answers Ready if the group has room, and else writes why the Workload waits. */
  async #attempt(uid: string, waiting: Waiting): Promise<void> {
    const { engine, objects, reconciler, arbitrated, reservationMs } = this.#options;
    const workload = objects.workload(uid);
    const ours = workload === null ? [] : this.#ours(workload);
    if (workload?.generation !== waiting.generation || !isDecidable(workload)) return;
    if (!ours.some(({ state }) => state === 'Pending')) return;
    const { resourceVersion } = workload;
    const demand = {
      ...waiting.demand,
      workload: { ...waiting.demand.workload, version: versionOf({ metadata: { resourceVersion } }) },
    };
    const { group } = demand;
    const kept = (await arbitrated?.keptFrom(demand)) ?? null;
    if (kept !== null) {
      arbitrated?.refused(demand, true);
      return this.#wait(uid, waiting, workload, ours, kept);
    }
    const fit = await engine.admit(demand, { dryRun: true });
    const operation = `${uid}@${resourceVersion}`;
    const decision = fit.allowed
      ? await engine.execute({ type: 'reserve', ...demand, ttlMs: reservationMs, operation, actor: FIELD_MANAGER })
      : fit;
    if (decision.code === 'Conflict') throw new Error(decision.message);
    if (!decision.allowed) {
      if (decision.code === 'QuotaExceeded') arbitrated?.refused(demand, true);
      return this.#wait(uid, waiting, workload, ours, decision.message);
    }
    reconciler.admitted(uid);
    const answer = await this.#write(
      workload,
      ours,
      'Ready',
      `charged to group ${group}`,
      waiting.podSets,
      waiting.labels,
    );
    if (answer.ok) {
      arbitrated?.admitted(demand);
      return void this.#waiting.delete(uid);
    }
    // The same answer may be stored already, by an earlier attempt or by the leader before: then it needs the
    // reservation until it is observed. Without a clear refusal the Workload is read when the reservation expires.
    if (REFUSALS.has(answer.code) && (await this.#isCharged(workload)) === false)
      await engine.execute({ type: 'cancel', reservation: operation });
    stored(workload, answer);
  }

  /** Whether the API server has a Workload as charged; null if it does not answer. */
  async #isCharged(workload: Workload): Promise<boolean | null> {
    const answer = await this.#options.api.request({ method: 'GET', path: this.#pathOf(workload) });
    if (!answer.ok) return answer.code === 'not-found' ? false : null;
    const found = readKueueWorkload(answer.body);
    return found?.uid === workload.uid && Object.keys(found.chargedTo).length > 0;
  }

  #pathOf({ namespace, name }: Workload): string {
    const { path } = this.#options.objects;
    return `${path ?? ''}/namespaces/${encodeURIComponent(namespace)}/workloads/${encodeURIComponent(name)}`;
  }

  /** Writes why a Workload waits, but not more often than every few seconds. */
  async #wait(
    uid: string,
    waiting: Waiting,
    workload: Workload,
    ours: readonly CheckEntry[],
    reason: string,
  ): Promise<void> {
    const { messageMs = 5_000 } = this.#options;
    const nextAt = waiting.toldAt + messageMs;
    const now = performance.now();
    if (now < nextAt) return this.#queue.put(uid, Math.ceil(nextAt - now));
    waiting.toldAt = now;
    await this.#tell(workload, ours, reason);
  }

  async #tell(workload: Workload, ours: readonly CheckEntry[], reason: string): Promise<void> {
    const message = `waiting for quota: ${reason}`.slice(0, MAX_MESSAGE);
    if (ours.every((entry) => entry.message === message)) return;
    await this.#answer(workload, ours, 'Pending', message);
  }

  #ours({ checks }: Workload): readonly CheckEntry[] {
    return checks.filter(({ name }) => this.#options.objects.check(name) !== null);
  }

  /** The demand that a Workload is charged for; null if the Workload was deleted. */
  async #wanted(workload: Workload): Promise<Wanted | null> {
    const { api, reader, access } = this.#options;
    const { namespace, name, uid } = workload;
    const answer = await api.request({ method: 'GET', path: this.#pathOf(workload) });
    if (!answer.ok && answer.code === 'not-found') return null;
    if (!answer.ok) throw new KubeError(`Workload ${namespace}/${name} cannot be read`, answer);
    const object = answer.body as KubeObject;
    if (object.metadata?.uid !== uid) return null;
    const subject = await this.#subjectOf(workload);
    const options = reader.options();
    const { groupLabel = GROUP_LABEL } = options;
    const labels = groupLabels(groupLabel, { ...subject?.metadata?.labels, ...object.metadata.labels });
    const group = labels[groupLabel];
    if (group === undefined) return { is: 'free', reason: `not charged: it has no label ${groupLabel}` };
    const refused = await access.refusal(group, namespace);
    if (refused !== null) return { is: 'refused', reason: `NamespaceNotAllowed: ${refused}` };
    const kinds = [{ ...WORKLOAD_KIND, labels: () => new Map(Object.entries(labels)) }, ...(options.kinds ?? [])];
    const manifest = { ...object, kind: WORKLOAD_KIND.kind, apiVersion: `${KUEUE}/v1` };
    const evaluation = await reader.evaluate(manifest, { ...options, kinds });
    if (!evaluation.ok) return { is: 'refused', reason: `${evaluation.code}: ${evaluation.reason}` };
    const { demand } = evaluation;
    if (demand === null) return { is: 'free', reason: `not charged: ${evaluation.reason}` };
    const owner = subject === null ? null : await this.#chargedOwner(subject, demand);
    if (owner !== null) return { is: 'free', reason: `not charged: its ${owner.kind} ${owner.name} is charged` };
    return { is: 'charged', demand, podSets: workload.podSets, labels };
  }

  /** The object that a Workload stands for: its job, or the first pod of its group. Null for an unknown kind. */
  async #subjectOf({ owners, namespace }: Workload): Promise<KubeObject | null> {
    const owner = owners.find(({ controller }) => controller === true) ?? owners[0];
    if (owner === undefined) return null;
    const { apiVersion, kind, name, uid } = owner;
    const found = await this.#options.reader.live(apiGroupOf(apiVersion), isKind(apiVersion, kind), namespace, name);
    return found === null || found.object.metadata?.uid !== uid ? null : { ...found.object, apiVersion, kind };
  }

  /** The owner that is charged for the object of a Workload, as a Deployment is for its pods; null for none. */
  async #chargedOwner({ kind = '', metadata }: KubeObject, demand: Demand): Promise<OwnerReference | null> {
    const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined) return null;
    const { namespace = '', labels = {} } = metadata ?? {};
    const charge = await this.#options.reader.ownership.chargeOf({ kind, namespace, labels, owner, demand });
    return charge.kind === 'covered' || charge.demand !== demand ? owner : null;
  }

  /** Writes an answer that charges nothing. */
  async #answer(workload: Workload, ours: readonly CheckEntry[], state: CheckState, message: string): Promise<void> {
    stored(workload, await this.#write(workload, ours, state, message, [], {}));
  }

  /** Writes an answer to the version of the Workload that was decided about. */
  #write(
    workload: Workload,
    ours: readonly CheckEntry[],
    state: CheckState,
    message: string,
    podSets: readonly string[],
    labels: Labels,
  ): Promise<KubeAnswer> {
    const { namespace, name, uid, resourceVersion } = workload;
    const now = timeText(this.#options.clock.now());
    const admissionChecks = ours.map((entry, index) => ({
      name: entry.name,
      state,
      message,
      lastTransitionTime: entry.state === state ? entry.lastTransitionTime : now,
      // The record of the charge, which Kueue also writes on the pods. Of several checks one is enough.
      podSetUpdates: index > 0 ? [] : podSets.map((podSet) => ({ name: podSet, annotations: labels })),
    }));
    return this.#apply(this.#pathOf(workload), {
      kind: 'Workload',
      metadata: { name, namespace, uid, resourceVersion },
      status: { admissionChecks },
    });
  }

  #apply(path: string, body: object): Promise<KubeAnswer> {
    const { api, objects } = this.#options;
    return api.request({
      method: 'PATCH',
      path: `${path}/status`,
      query: { fieldManager: FIELD_MANAGER, force: 'true' },
      contentType: APPLY_PATCH,
      body: { apiVersion: (objects.path ?? '').slice('/apis/'.length), ...body },
    });
  }
}

/** Keys of AdmissionChecks in the queue. */
const ACTIVATE = 'activate:';

/** Answers of the API server after which a write is not stored. */
const REFUSALS: ReadonlySet<KubeFailureCode> = new Set([
  'conflict',
  'not-found',
  'invalid',
  'forbidden',
  'unauthorized',
]);

/** Throws if an answer could not be written. A Workload that changed or is gone comes back with its own event. */
function stored({ namespace, name }: Workload, answer: KubeAnswer): void {
  if (answer.ok || answer.code === 'conflict' || answer.code === 'not-found') return;
  throw new KubeError(`the AdmissionCheck of Workload ${namespace}/${name} cannot be written`, answer);
}

/** The labels that name group and types. */
function groupLabels(groupLabel: string, labels: Labels): Labels {
  return Object.fromEntries(
    Object.entries(labels).filter(
      ([name, value]) => value !== '' && (name === groupLabel || name.startsWith(`${groupLabel}/`)),
    ),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A time as the API server writes it, in whole seconds. */
function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
