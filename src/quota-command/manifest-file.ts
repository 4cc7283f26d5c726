import { readYaml } from './tree-file.js';

export type ReadManifests =
  | { readonly ok: true; readonly manifests: readonly unknown[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Reads manifests from YAML or JSON: several documents, and lists of objects (`List`, `DeploymentList`) as kubectl
 * writes them.
 */
export function readManifests(text: string): ReadManifests {
  const read = readYaml(text);
  if (!read.ok) return read;
  return { ok: true, manifests: read.documents.flatMap(itemsOf) };
}

function itemsOf(document: unknown): readonly unknown[] {
  const isList =
    typeof document === 'object' &&
    document !== null &&
    'kind' in document &&
    typeof document.kind === 'string' &&
    document.kind.endsWith('List') &&
    'items' in document;
  return isList && Array.isArray(document.items) ? (document.items as readonly unknown[]) : [document];
}
