import type { Layout } from '../amounts/layout.js';
import type { Workload } from '../state/workload.js';

/** Resources that name GPUs of a workload, and that no key of a group with `layout` charges. */
export function unchargedGpus(layout: Layout, { podSets }: Workload): readonly string[] {
  const found = podSets.flatMap(({ shape }) => shape.planFor(layout).unchargedGpus);
  return found.length > 1 ? [...new Set(found)] : found;
}
