import { evaluateAlone, type Demand, type EvaluationOptions } from '../../quota/index.js';
import { Listeners } from '../../host/listeners.js';
import { KubeError } from '../../kube/failure.js';
import type { Informer, ObjectChange } from '../../kube/informer.js';
import type { KubeObject } from '../../kube/object.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { withReferences, type ServedKind } from './kinds.js';
import {
  CHECK_CONTROLLER,
  JOB_UID_LABEL,
  POD_GROUP_LABEL,
  QUEUE_LABEL,
  WORKLOAD_KIND,
  readKueueWorkload,
  type Workload,
} from './kueue-workload.js';

export interface KueueObjectsOptions {
  readonly api: WatchableApi;
  readonly evaluation: () => EvaluationOptions;
  readonly kinds: () => readonly ServedKind[];
}

/** An AdmissionCheck that names this quota as its controller. */
export interface AdmissionCheck {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  /** Generation for which the condition Active is true; null for none. */
  readonly activeFor: number | null;
}

/** An object that a Workload may stand for. */
export interface AdmittedObject {
  readonly uid: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** A Workload, and its manifest while it is charged. */
interface KnownWorkload extends Workload {
  readonly manifest: KubeObject | null;
}

/**
 * The charge in place of an object: the demand of its Workload; everything while Kueue stops the object; null if
 * the object is charged itself.
 */
export type Admitted = Demand | 'everything' | null;

/** Kueue's Workloads and the AdmissionChecks of this quota, while the API server serves them. */
export class KueueObjects {
  readonly #options: KueueObjectsOptions;
  readonly #changed = new Listeners<ObjectChange<Workload>>();
  readonly #checksChanged = new Listeners<void>();
  /** Uids of Workloads by the uid of an owner. */
  readonly #byOwner = new Map<string, Set<string>>();
  readonly #workloads = new Map<string, KnownWorkload>();
  readonly #checks = new Map<string, AdmissionCheck>();
  #informers: readonly Informer<unknown>[] = [];
  #path: string | null = null;

  constructor(options: KueueObjectsOptions) {
    this.#options = options;
  }

  /** Path of the API version, such as `/apis/kueue.x-k8s.io/v1beta2`; null while Kueue is not installed. */
  get path(): string | null {
    return this.#path;
  }

  /** Path of a Workload at the API server. */
  pathOf({ namespace, name }: Pick<Workload, 'namespace' | 'name'>): string {
    return `${this.#path ?? ''}/namespaces/${encodeURIComponent(namespace)}/workloads/${encodeURIComponent(name)}`;
  }

  /** Calls `listener` after each change of a Workload. Returns a function that ends this. */
  onChange(listener: (change: ObjectChange<Workload>) => void): () => void {
    return this.#changed.add(listener);
  }

  /** Calls `listener` when AdmissionChecks of this quota appeared or changed. */
  onChecks(listener: () => void): () => void {
    return this.#checksChanged.add(listener);
  }

  workload(uid: string): Workload | null {
    return this.#workloads.get(uid) ?? null;
  }

  workloads(): Iterable<Workload> {
    return this.#workloads.values();
  }

  check(name: string): AdmissionCheck | null {
    return this.#checks.get(name) ?? null;
  }

  checks(): Iterable<AdmissionCheck> {
    return this.#checks.values();
  }

  /** Follows the objects in the version that the API server serves. */
  async serve(kinds: readonly ServedKind[]): Promise<void> {
    const path = kinds.find(({ evaluator }) => evaluator === WORKLOAD_KIND)?.path ?? null;
    const root = path?.slice(0, path.lastIndexOf('/')) ?? null;
    if (root === this.#path) return;
    await this.stop();
    this.#path = root;
    if (root === null) return;
    const { api } = this.#options;
    const workloads = api.informer({ path: `${root}/workloads`, keep: (object) => this.#read(object, root) });
    workloads.onChange(({ before, after }) => this.#workloadChanged(before, after));
    const checks = api.informer({ path: `${root}/admissionchecks`, keep: readCheck });
    checks.onChange(({ before, after }) => {
      if (after !== null) this.#checks.set(after.name, after);
      else if (before !== null) this.#checks.delete(before.name);
      this.#checksChanged.emit();
    });
    this.#informers = [workloads, checks];
    for (const informer of this.#informers) informer.start();
    await Promise.all(this.#informers.map((informer) => informer.whenSynced()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
    this.#informers = [];
  }

  /**
   * The charge in place of an object that Kueue has admitted. Kueue starts an object some milliseconds after the
   * answer of an AdmissionCheck, so that the Workload is read where the watch does not show it yet.
   */
  async admitted({ uid, namespace, labels }: AdmittedObject): Promise<Admitted> {
    const known = [...(this.#byOwner.get(uid) ?? [])].flatMap((found) => this.#workloads.get(found) ?? []);
    const admitted = await this.#admittedBy(known);
    if (admitted !== null || this.#path === null || labels[QUEUE_LABEL] === undefined) return admitted;
    return this.#admittedBy(await this.#readNow(uid, namespace, labels, this.#path));
  }

  async #admittedBy(workloads: readonly KnownWorkload[]): Promise<Admitted> {
    if (workloads.some(({ isReserved, isEvicted }) => isReserved && isEvicted)) return 'everything';
    const manifest = workloads.find((workload) => workload.manifest !== null)?.manifest ?? null;
    if (manifest === null) return null;
    const { api, kinds, evaluation } = this.#options;
    const options = await withReferences(api, kinds(), manifest, { ...evaluation(), observes: true });
    const found = 'ok' in options ? null : evaluateAlone(manifest, options).evaluation;
    return found?.ok === true ? found.demand : null;
  }

  async #readNow(
    uid: string,
    namespace: string,
    labels: Readonly<Record<string, string>>,
    root: string,
  ): Promise<readonly KnownWorkload[]> {
    const collection = `${root}/namespaces/${encodeURIComponent(namespace)}/workloads`;
    const group = labels[POD_GROUP_LABEL];
    const answer = await this.#options.api.request(
      group === undefined
        ? { method: 'GET', path: collection, query: { labelSelector: `${JOB_UID_LABEL}=${uid}` } }
        : { method: 'GET', path: `${collection}/${encodeURIComponent(group)}` },
    );
    if (!answer.ok && answer.code === 'not-found') return [];
    if (!answer.ok) throw new KubeError(`the Workload of ${uid} in namespace ${namespace} cannot be read`, answer);
    const { items = [answer.body] } = answer.body as { readonly items?: readonly unknown[] | null };
    return (items ?? [])
      .flatMap((object) => this.#read(object, root) ?? [])
      .filter(({ owners }) => owners.some((owner) => owner.uid === uid));
  }

  #read(object: unknown, root: string): KnownWorkload | null {
    const workload = readKueueWorkload(object);
    if (workload === null) return null;
    if (Object.keys(workload.chargedTo).length === 0) return { ...workload, manifest: null };
    const manifest = { ...(object as KubeObject), apiVersion: root.slice('/apis/'.length), kind: WORKLOAD_KIND.kind };
    return { ...workload, manifest };
  }

  #workloadChanged(before: KnownWorkload | null, after: KnownWorkload | null): void {
    const uid = (after ?? before)?.uid ?? '';
    for (const owner of before?.owners ?? []) {
      const owned = this.#byOwner.get(owner.uid);
      owned?.delete(uid);
      if (owned?.size === 0) this.#byOwner.delete(owner.uid);
    }
    if (after === null) this.#workloads.delete(uid);
    else this.#workloads.set(uid, after);
    for (const owner of after?.owners ?? [])
      this.#byOwner.set(owner.uid, (this.#byOwner.get(owner.uid) ?? new Set()).add(uid));
    this.#changed.emit({ before, after });
  }
}

function readCheck(object: unknown): AdmissionCheck | null {
  const { metadata, spec, status } = object as KubeObject;
  if (spec?.['controllerName'] !== CHECK_CONTROLLER || metadata?.name === undefined) return null;
  const conditions = (status?.['conditions'] ?? []) as readonly {
    readonly type: string;
    readonly status: string;
    readonly observedGeneration?: number;
  }[];
  const active = conditions.find(({ type, status: value }) => type === 'Active' && value === 'True');
  const { name, uid = '', generation = 0 } = metadata;
  return { name, uid, generation, activeFor: active === undefined ? null : (active.observedGeneration ?? 0) };
}
