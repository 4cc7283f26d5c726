import { byLabel, only } from '../../http/metrics.js';
import type { NodeMetric } from './node-metric.js';

/** Metrics of resource claims; absent where the node gives no GPU through claims. */
export const DRA_METRICS: readonly NodeMetric[] = [
  {
    name: 'gpu_dra_registered',
    type: 'gauge',
    help: 'With claims: 1 while the kubelet has registered the driver',
    labels: [],
    read: ({ counts: { dra } }) => (dra === null ? [] : only(dra.registered ? 1 : 0)),
  },
  {
    name: 'gpu_dra_claim_info',
    type: 'gauge',
    help: 'Always 1; its labels connect a prepared claim with its allocation and its containers',
    labels: ['allocation', 'namespace', 'claim', 'request'],
    *read({ snapshot }) {
      for (const { id, claims = [] } of snapshot.allocations)
        for (const { namespace, name, request } of claims)
          yield { labels: { allocation: id, namespace, claim: name, request }, value: 1 };
    },
  },
  {
    name: 'gpu_dra_feature',
    type: 'gauge',
    help: 'With claims: 1 if the API server stores the feature of devices (shares, taints, counters), 0 if its feature gate is off',
    labels: ['feature'],
    read: ({ counts: { dra } }) =>
      dra === null
        ? []
        : byLabel(
            'feature',
            [...dra.features].map(([name, stored]) => [name, stored ? 1 : 0] as const),
          ),
  },
  {
    name: 'gpu_dra_overlap_total',
    type: 'counter',
    help: 'With claims: claims refused because others hold the amounts that the scheduler gave them',
    labels: [],
    read: ({ counts: { dra } }) => (dra === null ? [] : only(dra.overlaps)),
  },
  {
    name: 'gpu_dra_publish_errors_total',
    type: 'counter',
    help: 'With claims: failed writes of the ResourceSlices of the node',
    labels: [],
    read: ({ counts: { dra } }) => (dra === null ? [] : only(dra.publishErrors)),
  },
];
