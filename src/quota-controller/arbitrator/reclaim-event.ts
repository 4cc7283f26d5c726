import type { EventRecorder } from '../../kube/events.js';
import type { AllocationObject, AllocationStatus } from '../../kube/quota/allocation-object.js';
import { ALLOCATION_KIND, API_VERSION, CONSUMER_KIND } from '../../kube/quota/names.js';
import type { ClusterView } from './cluster-view.js';

/**
 * Records an event when reclaiming begins or ends; on the Consumer, or on the Allocation of a namespace without one.
 */
export function recordReclaim(
  events: EventRecorder,
  view: ClusterView,
  { name, uid }: AllocationObject,
  before: AllocationStatus,
  after: AllocationStatus,
): void {
  if (before.reclaimAt === after.reclaimAt) return;
  const consumer = view.consumers.get(name);
  const subject = {
    apiVersion: API_VERSION,
    kind: consumer === null ? ALLOCATION_KIND : CONSUMER_KIND,
    namespace: '',
    name,
    uid: consumer?.uid ?? uid,
  };
  const resources = (after.overused ?? []).join(', ');
  events.record(
    subject,
    after.reclaimAt === undefined
      ? {
          type: 'Normal',
          reason: 'ReclaimEnded',
          message: 'no pod waits any more for resources that the namespace overuses',
        }
      : {
          type: 'Warning',
          reason: 'ReclaimPending',
          message: `the namespace uses more than its fair share of ${resources} and other consumers wait; its pods may be evicted from ${after.reclaimAt} on`,
        },
  );
}
