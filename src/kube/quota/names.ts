/** API group of the quota engine's custom resources, as in etc/quota/crds.yaml. */
export const API_GROUP = 'quota.gpu-manager.io';
export const API_VERSION = `${API_GROUP}/v1`;

const ROOT = `/apis/${API_VERSION}`;

export const GROUPS_PATH = `${ROOT}/bizgroupresourcequotas`;
export const LEDGERS_PATH = `${ROOT}/bizgroupledgers`;
export const TRANSACTIONS_PATH = `${ROOT}/bizgrouptransactions`;
export const CONSUMERS_PATH = `${ROOT}/consumers`;
export const ALLOCATIONS_PATH = `${ROOT}/allocations`;
export const POLICIES_PATH = `${ROOT}/quotapolicies`;

export const GROUP_KIND = 'BizGroupResourceQuota';
export const LEDGER_KIND = 'BizGroupLedger';
export const TRANSACTION_KIND = 'BizGroupTransaction';
export const CONSUMER_KIND = 'Consumer';
export const ALLOCATION_KIND = 'Allocation';

/** Label of a ledger object with the name of its group. */
export const LEDGER_GROUP_LABEL = `${API_GROUP}/group`;

/** Lease for the election of the leader. */
export const QUOTA_LEASE = 'gpu-manager-quota';

/** Path of one object of a collection. */
export function itemPath(collection: string, name: string): string {
  return `${collection}/${encodeURIComponent(name)}`;
}
