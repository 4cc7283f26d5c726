import type { ConsumerProblem } from '../../quota/index.js';
import { formatQuantity } from '../../manifests/quantity.js';
import { conditionsAt, type ConditionState } from '../../kube/condition.js';
import type { ConsumerObject, ConsumerStatus } from '../../kube/quota/consumer-object.js';

/** Computes the status that a Consumer should have. */
export function consumerReport(
  { generation, problems: unreadable, status }: ConsumerObject,
  problems: readonly ConsumerProblem[],
  now: number,
): ConsumerStatus {
  return {
    observedGeneration: generation,
    conditions: conditionsAt(now, [accepted(unreadable, problems)], status.conditions, generation),
  };
}

function accepted(unreadable: readonly string[], problems: readonly ConsumerProblem[]): ConditionState {
  const [first] = problems;
  if (unreadable.length > 0)
    return {
      type: 'Accepted',
      status: 'False',
      reason: 'UnreadableAmounts',
      message: `no pod of this consumer is evicted until these amounts are corrected: ${unreadable.join('; ')}`,
    };
  if (first === undefined)
    return {
      type: 'Accepted',
      status: 'True',
      reason: 'Consistent',
      message: 'the amounts are consistent with each other, with the ResourceQuota and with the cluster',
    };
  return { type: 'Accepted', status: 'False', reason: first.code, message: problems.map(textOf).join('; ') };
}

/** Formats a problem as a message. */
export function textOf(problem: ConsumerProblem): string {
  const { code, resource } = problem;
  switch (code) {
    case 'ReservedAboveHard':
      return `${resource}: ${formatQuantity(resource, problem.amount)} is reserved, hard is ${formatQuantity(resource, problem.limit)}`;
    case 'HardAboveQuota':
      return `${resource}: hard is ${formatQuantity(resource, problem.amount)}, the ResourceQuota of the namespace has ${formatQuantity(resource, problem.limit)}`;
    case 'ReservedAboveCluster':
      return `${resource}: ${formatQuantity(resource, problem.amount)} is reserved for all, the cluster has ${formatQuantity(resource, problem.limit)}`;
    case 'InvalidWeight':
      return `weight is ${problem.amount}, expected a number above 0`;
    case 'InvalidQuantity':
      return `${resource}: ${problem.amount} is not a quantity`;
  }
}
