import { readSelection } from '../gpu/gpu-selection.js';
import { LIMIT_ANNOTATIONS, readContainerAnnotation } from './limit-annotations.js';
import { misspeltKey } from './misspelt-key.js';
import type { Pod } from './pod.js';

/**
 * The first error in the annotations of a pod that ask for something of this project: a key that is almost one of ours,
 * or a value that its reader refuses or ignores. Null without one.
 */
export function annotationProblem({
  annotations,
  containers,
  initContainers,
}: Pick<Pod, 'annotations' | 'containers' | 'initContainers'>): string | null {
  const misspelt = misspeltKey(annotations);
  if (misspelt !== null) return misspelt;
  const annotation = (key: string): string | undefined => annotations[key];
  const selection = readSelection(annotation);
  if (!selection.ok) return selection.reason;
  for (const limit of Object.values(LIMIT_ANNOTATIONS))
    for (const { name } of [...initContainers, ...containers]) {
      const { problem } = readContainerAnnotation<unknown>(limit, annotation, name);
      if (problem !== undefined) return `annotation ${problem}`;
    }
  return null;
}
