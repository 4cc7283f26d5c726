import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import type { EvaluationOptions } from '../../quota/index.js';
import type { ServedKind } from './kinds.js';
import {
  isPodKind,
  readOwnedObject,
  readWorkloadObject,
  selectorOf,
  WORKLOADS_PER_PAGE,
  type WorkloadObject,
} from './workload-object.js';

type Changed = (before: WorkloadObject | null, after: WorkloadObject | null) => void;

export interface WorkloadWatchOptions {
  readonly api: WatchableApi;
  /** The current options for evaluating workloads. */
  readonly evaluation: () => EvaluationOptions;
  /** Whether a pod is to be known. */
  readonly concerns: (pod: WorkloadObject) => boolean;
  readonly podChanged: Changed;
  /** Called with the changes of other workloads. */
  readonly changed: Changed;
}

/** Watches the pods, and the workloads of all other kinds that a group may pay for. */
export class WorkloadWatch {
  readonly #options: WorkloadWatchOptions;
  /** By path of the kind. */
  readonly #informers = new Map<string, Informer<WorkloadObject>>();
  #showsUnlabelled = false;

  constructor(options: WorkloadWatchOptions) {
    this.#options = options;
  }

  /** Whether objects without the label of a group are watched, too. */
  get showsUnlabelled(): boolean {
    return this.#showsUnlabelled;
  }

  informers(): Iterable<Informer<WorkloadObject>> {
    return this.#informers.values();
  }

  /** Creates the informers of new kinds; the caller starts them. */
  add(kinds: readonly ServedKind[]): readonly Informer<WorkloadObject>[] {
    this.#showsUnlabelled = this.#options.evaluation().defaultGroup !== undefined;
    return kinds
      .filter(({ path }) => !this.#informers.has(path))
      .map((kind) => {
        const informer = this.#informerOf(kind);
        this.#informers.set(kind.path, informer);
        return informer;
      });
  }

  /** Stops the informers of all other kinds: their objects count as gone. */
  keepOnly(kinds: readonly ServedKind[]): void {
    for (const [path, informer] of this.#informers) {
      if (kinds.some((kind) => kind.path === path)) continue;
      this.#informers.delete(path);
      void informer.stop();
      for (const object of informer.values())
        if (!kinds.some(({ evaluator }) => evaluator === object.kind.evaluator)) this.#options.changed(object, null);
    }
  }

  /** Replaces all informers, after the options say anew what is watched; resolves when the new ones have listed. */
  async renew(kinds: readonly ServedKind[]): Promise<void> {
    const before = [...this.#informers.values()];
    this.#informers.clear();
    const informers = this.add(kinds);
    for (const informer of informers) informer.start();
    await Promise.all(before.map((informer) => informer.stop()));
    await Promise.all(informers.map((informer) => informer.whenSynced()));
  }

  #informerOf(kind: ServedKind): Informer<WorkloadObject> {
    const { api, evaluation, podChanged, changed } = this.#options;
    const isPod = isPodKind(kind);
    const informer = api.informer({
      path: kind.path,
      labelSelector: isPod ? undefined : selectorOf(kind, evaluation()),
      pageSize: WORKLOADS_PER_PAGE,
      keep: (object) => (isPod ? this.#readPod(kind, object) : readWorkloadObject(kind, object, evaluation())),
    });
    informer.onChange(({ before, after }) => (isPod ? podChanged(before, after) : changed(before, after)));
    return informer;
  }

  #readPod(kind: ServedKind, object: unknown): WorkloadObject | null {
    const pod = readOwnedObject(kind, object, this.#options.evaluation());
    return pod !== null && this.#options.concerns(pod) ? pod : null;
  }
}
