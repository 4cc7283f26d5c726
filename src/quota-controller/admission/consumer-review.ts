import {
  areaProblems,
  consumerProblems,
  reservedBeside,
  totalReserved,
  type ConsumerSpec,
  unchargeable,
} from '../../quota/internal.js';
import type { Quantities } from '../../manifests/quantities.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { list, record } from '../../kube/json.js';
import type { Node } from '../../kube/node.js';
import { readConsumer, type ConsumerObject } from '../../kube/quota/consumer-object.js';
import { textOf } from '../arbitrator/consumer-report.js';
import { readResourceQuota } from '../arbitrator/resource-quota.js';
import { CONSUMERS_PATH } from '../../kube/quota/names.js';
import type { KubeObject } from '../../kube/object.js';
import { ALLOWED, invalid, type AdmissionResponse, type Review } from '../../kube/admission/review.js';

export interface ConsumerReviewOptions {
  readonly api: KubeApi;
  readonly nodes: () => readonly Node[];
  /** The storage capacity; no limit for a resource that it does not name. */
  readonly storageCapacity: () => Quantities;
}

/**
 * Reviews Consumers. It refuses amounts that contradict each other, the Consumer's area, the ResourceQuota of its
 * namespace or the cluster, and resources that no node has. When the cluster or a quota shrinks later, the Consumer
 * gets a condition instead.
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
    return invalid({ code: 'InvalidDemand', reason: problems.slice(0, 5).join('; ') });
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
    // The reservations of members are part of their area's reservation.
    const beside = { name: '', reserved: reservedBeside(spec, totalReserved([...others, spec])) };
    const context = { capacity: this.#capacity(), others: [beside], quotaHard };
    return [
      ...consumerProblems(spec, isArea ? { ...context, quotaHard: new Map() } : context).map(textOf),
      ...areaProblems(spec, others),
    ];
  }

  #capacity(): Quantities {
    const capacity = new Map(this.#options.storageCapacity());
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

/** An object under creation has no uid yet. */
function readReviewed(object: KubeObject): Pick<ConsumerObject, 'spec' | 'problems'> {
  return (
    readConsumer({ ...object, metadata: { ...object.metadata, uid: object.metadata?.uid ?? 'new' } }) ?? {
      spec: { name: '' },
      problems: ['metadata.name is missing'],
    }
  );
}

function unknownResources({ spec }: KubeObject, nodes: readonly Node[]): readonly string[] {
  const resources = new Set(nodes.flatMap(({ allocatable }) => [...allocatable.keys()]));
  return ['hard', 'reserved'].flatMap((field) =>
    Object.keys(record(spec?.[field])).flatMap((resource) => {
      const side = /^(?:requests|limits)\.(.+)$/.exec(resource)?.[1];
      if (side !== undefined) return [`${field}: "${resource}" is not a resource of nodes; write "${side}"`];
      const problem = unchargeable(resource, { resources });
      return problem === null ? [] : [`${field}: ${problem}`];
    }),
  );
}
