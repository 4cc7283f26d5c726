import type { Clock } from '../../host/clock.js';
import { Turn } from '../../host/turn.js';
import { wait } from '../../host/pause.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import type { EvaluationOptions } from '../../quota/index.js';
import type { ServedKind } from './kinds.js';
import { readWorkloadObject, selectorOf, WORKLOADS_PER_PAGE, type WorkloadObject } from './workload-object.js';

export interface ListWorkloadsOptions {
  readonly api: KubeApi;
  readonly evaluation: () => EvaluationOptions;
  readonly clock: Clock;
}

/** Attempts per page of the list. */
const ATTEMPTS = 4;
const FIRST_RETRY_MS = 50;

/**
 * Lists the workloads of a kind that name a group, page by page, so that a caller need not hold all of them. Rejects
 * with a KubeError if the API server fails.
 */
export async function* listWorkloads(
  kind: ServedKind,
  { api, evaluation, clock }: ListWorkloadsOptions,
): AsyncGenerator<WorkloadObject> {
  const turn = new Turn();
  for (let next = ''; ;) {
    const selector = selectorOf(kind, evaluation());
    const query = {
      ...(selector === undefined ? {} : { labelSelector: selector }),
      limit: `${WORKLOADS_PER_PAGE}`,
      ...(next === '' ? {} : { continue: next }),
    };
    let answer = await api.request({ method: 'GET', path: kind.path, query });
    for (let attempt = 1; !answer.ok && attempt < ATTEMPTS; attempt++) {
      await wait(clock, FIRST_RETRY_MS * attempt);
      answer = await api.request({ method: 'GET', path: kind.path, query });
    }
    if (!answer.ok) throw new KubeError(`${kind.resource} cannot be listed`, answer);
    const { items, metadata } = answer.body as {
      readonly items: readonly unknown[] | null;
      readonly metadata?: { readonly continue?: string };
    };
    for (const object of items ?? []) {
      await turn.pass();
      const read = readWorkloadObject(kind, object, evaluation());
      if (read !== null) yield read;
    }
    next = metadata?.continue ?? '';
    if (next === '') return;
  }
}
