import { cardBytesOf, devicesOf } from '../../manifests/claim-needs.js';
import { deriveGpu, type GpuOfType } from '../../manifests/gpu-resources.js';
import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';
import type { Quantity } from '../../manifests/quantity.js';
import type { Evaluator, TemplatedPods } from './evaluator.js';

/** A ResourceClaim that is charged itself. Pods that use it are not charged for it. */
const RESOURCE_CLAIM: Evaluator = {
  apiGroup: 'resource.k8s.io',
  kind: 'ResourceClaim',
  resource: 'resourceclaims.resource.k8s.io',
  charges: true,
  pods: () => [],
  amounts: (reader, object, gpu) => ({
    resourceclaims: 1,
    ...derived(devicesOf(reader, reader.at(object, 'spec', 'devices'), 'spec.devices', cardBytesOf(gpu)), gpu),
  }),
};

/** Presents a claim as the claim template of a pod, so that the type of its devices is found in the same way. */
export function claimAsPod(
  reader: ManifestReader,
  claim: Json,
): { readonly templated: readonly TemplatedPods[]; readonly lookup: () => Json } {
  const template = { spec: { resourceClaims: [{ name: 'claim', resourceClaimTemplateName: 'claim' }] } };
  return {
    templated: [{ name: '', count: 1, template, path: 'the claim' }],
    lookup: () => ({ spec: { spec: reader.at(claim, 'spec') } }),
  };
}

/** Adds `gpu.cards` and `gpu.memory`, by which the engine compares GPUs. */
function derived(
  asked: Readonly<Record<string, number>>,
  { type, catalog }: GpuOfType,
): Readonly<Record<string, Quantity>> {
  const { amounts } = deriveGpu(new Map(Object.entries(asked)), type, catalog);
  return Object.fromEntries([...amounts].map(([resource, amount]) => [resource, BigInt(amount)]));
}

/** Kinds of Dynamic Resource Allocation. */
export const CLAIM_KINDS: readonly Evaluator[] = [RESOURCE_CLAIM];
