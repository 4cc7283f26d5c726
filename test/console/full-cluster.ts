import type { ApiServer } from '../harness/api-server/api-server.js';
import { nodeObject, podObject } from './cluster-objects.js';
import {
  allocationObject,
  claimingPod,
  claimObject,
  condition,
  consumerObject,
  eventObject,
  groupObject,
  serveClaims,
  serveQuota,
} from './quota-objects.js';

export const GPU = 'requests.nvidia.com/gpu';
export const LONG_GROUP = 'a-group-with-a-long-name-of-a-department-that-nobody-shortened';

/** A cluster with everything that the views show. */
export function fullCluster(server: ApiServer): void {
  serveQuota(server);
  serveClaims(server);
  server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 }));
  const group = (name: string, parent: string, used: number, notes: readonly object[] = []): void => {
    server.seed(
      'bizgroupresourcequotas',
      groupObject(name, {
        parent,
        hard: { [GPU]: '8', 'limits.memory': '512Gi', [`cash/${GPU}`]: '700' },
        status: {
          used: { [GPU]: String(used), 'limits.memory': '64Gi', [`cash/${GPU}`]: '601.98' },
          selfUsed: { [GPU]: '1', 'limits.memory': '16Gi', [`cash/${GPU}`]: '20' },
          burnRate: { [`cash/${GPU}`]: '6' },
          budgets: [{ key: `cash/${GPU}`, granted: '700', used: '601.98', left: '98.02' }],
          exhaustsAt: '2026-12-01T10:00:00Z',
          workloads: 3,
          conditions: [condition('Ready', 'True', ''), ...notes],
        },
      }),
    );
  };
  group('company', '', 6);
  group('research', 'company', 4, [condition('CashLow', 'True', `cash/${GPU} 80%`)]);
  group('vision', 'research', 2);
  group(LONG_GROUP, 'vision', 10, [condition('OverQuota', 'True', GPU)]);
  server.seed('consumers', consumerObject('app', { weight: 40 }));
  server.seed('consumers', consumerObject('first', { parent: 'app', reserved: { 'nvidia.com/gpu': 1 } }));
  server.seed(
    'allocations',
    allocationObject('first', {
      deserved: { 'nvidia.com/gpu': '1', cpu: '10m' },
      allocated: { 'nvidia.com/gpu': '2', cpu: '20m' },
      dominantShare: '1.000',
      overused: ['nvidia.com/gpu'],
      reclaimAt: '2026-12-01T10:00:00.000Z',
      reclaimedFor: { second: '2026-11-01T10:00:00.000Z' },
    }),
  );
  server.seed('pods', podObject('bert', { node: 'gpu-node-1', gpus: [0] }));
  server.seed(
    'pods',
    podObject('refused', {
      ...{ node: 'gpu-node-1', phase: 'Failed', reason: 'UnexpectedAdmissionError' },
      message: 'no GPU has 30 cores free',
    }),
  );
  server.seed('resourceclaims', claimObject('shared', { on: { node: 'gpu-node-1', gpu: 1 }, pods: ['notebook'] }));
  server.seed('pods', claimingPod(podObject('notebook', { node: 'gpu-node-1' }), 'shared'));
  server.seed('resourceclaims', claimObject('big', { cores: 100, memoryGib: 80 }));
  server.seed('pods', claimingPod(podObject('train', { unscheduled: 'cannot allocate all claims' }), 'big'));
  for (let at = 0; at < 4; at++)
    server.seed('events', eventObject(`a${at}`, 'GPUAssigned', 'main: 30 cores of GPU 0', { pod: `bert-${at}` }));
  const late = { type: 'Warning', at: '2026-10-01T10:05:00Z' };
  server.seed('events', eventObject('b', 'GPULimitRefused', 'main: 40 is more than 30', { pod: 'bert', ...late }));
}
