import type { ResourceType } from './resource-type.js';

const GROUP = { group: 'resource.k8s.io', version: 'v1' } as const;

/** ResourceSlices and ResourceClaims, as an API server with Dynamic Resource Allocation has them. */
export const DRA_TYPES: readonly ResourceType[] = [
  {
    ...GROUP,
    plural: 'resourceslices',
    kind: 'ResourceSlice',
    namespaced: false,
    generation: true,
    selectableFields: ['spec.nodeName', 'spec.driver'],
  },
  { ...GROUP, plural: 'resourceclaims', kind: 'ResourceClaim', namespaced: true, statusSubresource: true },
];
