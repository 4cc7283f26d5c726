import type { Json, KubeObject } from './kube-object.js';

/** What an `accept` header asks for instead of whole objects. */
export type MetadataView = 'PartialObjectMetadata' | 'PartialObjectMetadataList';

/**
 * Reads an `accept` header such as `application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1`; null for whole
 * objects.
 */
export function metadataView(accept = ''): MetadataView | null {
  const view = /;as=(PartialObjectMetadata(?:List)?);g=meta\.k8s\.io;v=v1/.exec(accept)?.[1];
  return view === undefined ? null : (view as MetadataView);
}

/** An answer as such a header asks for it. */
export function inView(view: MetadataView | null, answer: unknown): unknown {
  if (view === null) return answer;
  if (view === 'PartialObjectMetadata') return metadataOf(answer as KubeObject);
  const { metadata, items } = answer as { readonly metadata: Json; readonly items: readonly KubeObject[] };
  return { kind: view, apiVersion: 'meta.k8s.io/v1', metadata, items: items.map(metadataOf) };
}

function metadataOf({ metadata }: KubeObject): KubeObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}
