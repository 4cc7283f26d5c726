import { isDeepStrictEqual } from 'node:util';
import { MERGE_PATCH, type KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { conditionsAt, type ConditionState } from '../../kube/condition.js';
import { POLICIES_PATH, itemPath } from '../../kube/quota/names.js';
import type { PolicyObject, QuotaPolicy } from './policy-object.js';

/** Writes the conditions of the policy if they changed. `started` is the policy with which the service started. */
export async function reportPolicy(
  api: KubeApi,
  object: PolicyObject,
  started: QuotaPolicy,
  now: number,
): Promise<void> {
  const findings = [accepted(object), applied(object.policy, started)];
  const conditions = conditionsAt(now, findings, object.conditions, object.generation);
  if (isDeepStrictEqual(conditions, object.conditions)) return;
  const answer = await api.request({
    method: 'PATCH',
    path: `${itemPath(POLICIES_PATH, object.name)}/status`,
    contentType: MERGE_PATCH,
    body: { status: { observedGeneration: object.generation, conditions } },
  });
  if (!answer.ok && answer.code !== 'not-found' && answer.code !== 'conflict')
    throw new KubeError('the status of the quota policy cannot be written', answer);
}

function accepted({ problems }: PolicyObject): ConditionState {
  return problems.length === 0
    ? { type: 'Accepted', status: 'True', reason: 'Readable', message: 'every part of the policy is in effect' }
    : {
        type: 'Accepted',
        status: 'False',
        reason: 'PartsUnreadable',
        message: `these parts of the policy cannot be read and are ignored: ${problems.join('; ')}`.slice(0, 32_000),
      };
}

/**
 * Families decide which keys a workload charges. The ledger was charged with the families at the start, so that new
 * families need a restart.
 */
function applied({ families, strictTypes }: QuotaPolicy, started: QuotaPolicy): ConditionState {
  const isSame = isDeepStrictEqual(families, started.families) && strictTypes === started.strictTypes;
  return isSame
    ? { type: 'Applied', status: 'True', reason: 'InForce', message: 'the policy is in force' }
    : {
        type: 'Applied',
        status: 'False',
        reason: 'RestartNeeded',
        message:
          'families, and strictTypes for groups that limit nothing but types outside of the catalog, take effect when the replicas restart: kubectl -n kube-system rollout restart deployment gpu-manager-quota',
      };
}
