import { areaProblems, consumerProblems, type ConsumerSpec, type Quantities } from '../../quota/arbitrator/index.js';
import { unchargeable } from '../../quota/evaluators/chargeable-key.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { list, record } from '../../kube/json.js';
import type { Node } from '../../kube/node.js';
import { readConsumer, type ConsumerObject } from '../arbitrator/consumer-object.js';
import { textOf } from '../arbitrator/consumer-report.js';
import { readResourceQuota } from '../arbitrator/resource-quota.js';
import { CONSUMERS_PATH } from '../names.js';
import type { KubeObject } from '../object.js';
import { ALLOWED, invalid, type AdmissionResponse, type Review } from './review.js';

export interface ConsumerReviewOptions {
  readonly api: KubeApi;
  readonly nodes: () => readonly Node[];
}

/**
 * Decides on Consumers: one whose amounts contradict each other, its area, the ResourceQuota of its namespace or the
 * cluster is refused, and so is one with resources that nothing has. What the cluster loses later, or a quota, is not
 * its fault: that shows as a condition.
 */
export class ConsumerReview {
  readonly #options: ConsumerReviewOptions;

  constructor(options: ConsumerReviewOptions) {
    this.#options = options;
  }

  async decide({ object, oldObject }: Review): Promise<AdmissionResponse> {
    if (object === null || object.metadata?.deletionTimestamp !== undefined) return ALLOWED;
    if (oldObject !== null && JSON.stringify(oldObject.spec) === JSON.stringify(object.spec)) return ALLOWED;
    const consumer = readReviewed(object);
    const problems = [...unknownResources(object, this.#options.nodes()), ...consumer.problems];
    if (problems.length === 0) problems.push(...(await this.#contradictions(consumer.spec)));
    if (problems.length === 0) return ALLOWED;
    return invalid({ ok: false, code: 'InvalidDemand', reason: problems.slice(0, 5).join('; ') });
  }

  async #contradictions(spec: ConsumerSpec): Promise<readonly string[]> {
    const others = (await this.#list(CONSUMERS_PATH)).flatMap((item) => {
      const other = readConsumer(item);
      return other === null || other.name === spec.name ? [] : [other.spec];
    });
    const quotas = await this.#list(`/api/v1/namespaces/${encodeURIComponent(spec.name)}/resourcequotas`);
    const quotaHard = new Map<string, number>();
    for (const quota of quotas)
      for (const [resource, amount] of readResourceQuota(quota)?.hard ?? [])
        quotaHard.set(resource, Math.min(amount, quotaHard.get(resource) ?? Infinity));
    const isArea = others.some(({ parent }) => parent === spec.name);
    // What is reserved within an area is reserved for the area.
    const tops = others.filter(({ parent = '' }) => parent === '');
    const isMember = (spec.parent ?? '') !== '';
    const surroundings = { capacity: this.#capacity(), others: isMember ? [] : tops, quotaHard };
    return [
      ...consumerProblems(spec, isArea ? { ...surroundings, quotaHard: new Map() } : surroundings).map(textOf),
      ...areaProblems(spec, others),
    ];
  }

  #capacity(): Quantities {
    const capacity = new Map<string, number>();
    for (const { takesPods, allocatable } of this.#options.nodes())
      if (takesPods)
        for (const [resource, amount] of allocatable) capacity.set(resource, (capacity.get(resource) ?? 0) + amount);
    return capacity;
  }

  async #list(path: string): Promise<readonly unknown[]> {
    const answer = await this.#options.api.request({ method: 'GET', path });
    if (!answer.ok) throw new KubeError(`${path} cannot be listed`, answer);
    return list(record(answer.body).items);
  }
}

/** One that is created has no uid yet. */
function readReviewed(object: KubeObject): Pick<ConsumerObject, 'spec' | 'problems'> {
  return (
    readConsumer({ ...object, metadata: { ...object.metadata, uid: object.metadata?.uid ?? 'new' } }) ?? {
      spec: { name: '' },
      problems: ['it has no name'],
    }
  );
}

function unknownResources({ spec }: KubeObject, nodes: readonly Node[]): readonly string[] {
  const resources = new Set(nodes.flatMap(({ allocatable }) => [...allocatable.keys()]));
  return ['hard', 'reserved'].flatMap((field) =>
    Object.keys(record(spec?.[field])).flatMap((resource) => {
      const side = /^(?:requests|limits)\.(.+)$/.exec(resource)?.[1];
      if (side !== undefined) return [`${field}: resources are named as nodes have them: ${side}, not ${resource}`];
      const problem = unchargeable(resource, { resources });
      return problem === null ? [] : [`${field}: ${problem}`];
    }),
  );
}
