import type { Clock } from '../../host/clock.js';
import { KubeError, type KubeFailureCode } from '../../kube/failure.js';
import type { KubeAnswer, KubeApi } from '../../kube/client.js';
import type { KueueObjects } from '../workloads/kueue-objects.js';
import { readKueueWorkload, type CheckEntry, type CheckState, type Workload } from '../workloads/kueue-workload.js';

export const FIELD_MANAGER = 'gpu-manager-quota';
const APPLY_PATCH = 'application/apply-patch+yaml';

/** Answers of the API server after which a write is not stored. */
const REFUSALS: ReadonlySet<KubeFailureCode> = new Set([
  'conflict',
  'not-found',
  'invalid',
  'forbidden',
  'unauthorized',
]);

export interface CheckAnswersOptions {
  readonly api: KubeApi;
  readonly objects: KueueObjects;
  /** The time that is written to objects. */
  readonly clock: Clock;
}

/** What a Workload is told by each of its `checks`. */
export interface CheckAnswer {
  readonly state: CheckState;
  readonly message: string;
  /** The record of a charge: its PodSets with the labels of group and types. Absent: nothing is charged. */
  readonly charge?: { readonly podSets: readonly string[]; readonly labels: Readonly<Record<string, string>> };
}

/**
 * Writes the answers of this quota's AdmissionChecks. An answer is written only to the version of the Workload for
 * which it was decided.
 */
export class CheckAnswers {
  readonly #options: CheckAnswersOptions;

  constructor(options: CheckAnswersOptions) {
    this.#options = options;
  }

  /** Until the AdmissionCheck is Active, the ClusterQueues that name it admit nothing. */
  async activate(name: string): Promise<void> {
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
    const written = await this.#apply(`${objects.path}/admissionchecks/${encodeURIComponent(name)}`, {
      kind: 'AdmissionCheck',
      metadata: { name, uid },
      status: { conditions: [condition] },
    });
    if (!written.ok && written.code !== 'not-found' && written.code !== 'conflict')
      throw new KubeError(`AdmissionCheck ${name} cannot be activated`, written);
  }

  /** Writes an answer; rejects if that failed. A Workload that changed or is gone comes back with its own event. */
  async write(workload: Workload, checks: readonly CheckEntry[], answer: CheckAnswer): Promise<void> {
    checkWritten(workload, await this.tryWrite(workload, checks, answer));
  }

  tryWrite(
    workload: Workload,
    checks: readonly CheckEntry[],
    { state, message, charge = { podSets: [], labels: {} } }: CheckAnswer,
  ): Promise<KubeAnswer> {
    const { objects, clock } = this.#options;
    const { namespace, name, uid, resourceVersion } = workload;
    const now = timeText(clock.now());
    const admissionChecks = checks.map((entry, index) => ({
      name: entry.name,
      state,
      message,
      lastTransitionTime: entry.state === state ? entry.lastTransitionTime : now,
      // The record of the charge, which Kueue also writes on the pods. Of several checks one is enough.
      podSetUpdates: index > 0 ? [] : charge.podSets.map((podSet) => ({ name: podSet, annotations: charge.labels })),
    }));
    return this.#apply(objects.pathOf(workload), {
      kind: 'Workload',
      metadata: { name, namespace, uid, resourceVersion },
      status: { admissionChecks },
    });
  }

  /**
   * Whether a charge that could not be written is certainly not stored. It may be, by an earlier attempt or by the
   * leader before.
   */
  async isNotStored(workload: Workload, failure: KubeAnswer & { readonly ok: false }): Promise<boolean> {
    return REFUSALS.has(failure.code) && (await this.#isCharged(workload)) === false;
  }

  /** Whether the API server has a Workload as charged; null if it does not answer. */
  async #isCharged(workload: Workload): Promise<boolean | null> {
    const { api, objects } = this.#options;
    const answer = await api.request({ method: 'GET', path: objects.pathOf(workload) });
    if (!answer.ok) return answer.code === 'not-found' ? false : null;
    const found = readKueueWorkload(answer.body);
    return found?.uid === workload.uid && Object.keys(found.chargedTo).length > 0;
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

/** Throws if an answer was not written to a Workload that is unchanged. */
export function checkWritten({ namespace, name }: Workload, written: KubeAnswer): void {
  if (written.ok || written.code === 'conflict' || written.code === 'not-found') return;
  throw new KubeError(`the AdmissionCheck of Workload ${namespace}/${name} cannot be written`, written);
}

/** A time as the API server writes it, in whole seconds. */
function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
