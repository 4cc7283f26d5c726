import type { PatchStep } from './foreign-conversion.js';

/** A copy of the object with the steps of a patch. */
export function applied(object: unknown, patch: readonly PatchStep[]): unknown {
  const copy: unknown = structuredClone(object);
  for (const { op, path, value } of patch) {
    const segments = path.split('/').slice(1);
    const last = segments.pop() ?? '';
    const parent = segments.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], copy);
    if (op === 'remove') Reflect.deleteProperty(parent as object, last);
    else (parent as Record<string, unknown>)[last] = value;
  }
  return copy;
}
