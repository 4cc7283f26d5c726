import type { Quantities } from '../../manifests/quantities.js';
import { evaluatorOf, KNOWN_KINDS } from '../../quota/index.js';
import { DEFAULT_CATALOG } from '../../manifests/gpu-resources.js';
import { ManifestReader } from '../../manifests/manifest-reader.js';
import { readAmounts } from '../../kube/amounts.js';
import type { KubeObject } from '../../kube/object.js';

/** The fields of a PersistentVolumeClaim that the arbitrator needs. */
export interface VolumeClaim {
  readonly namespace: string;
  /** Requested storage, in total and by storage class, as groups are charged for it. */
  readonly asks: Quantities;
  /** Whether the claim is bound to a volume. */
  readonly isBound: boolean;
}

const EVALUATOR = evaluatorOf(KNOWN_KINDS, 'v1', 'PersistentVolumeClaim');

/** Reads a PersistentVolumeClaim; null for one that has lost its volume. */
export function readVolumeClaim(object: unknown): VolumeClaim | null {
  const { metadata, status } = object as KubeObject;
  const phase = status?.['phase'];
  if (phase === 'Lost') return null;
  const asked = EVALUATOR?.amounts?.(new ManifestReader(), object, { type: '', catalog: DEFAULT_CATALOG }) ?? {};
  return { namespace: metadata?.namespace ?? '', asks: readAmounts(asked, 'up').amounts, isBound: phase === 'Bound' };
}
