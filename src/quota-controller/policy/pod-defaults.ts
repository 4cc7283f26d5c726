import type { ContainerDefaults } from '../../quota/internal.js';
import { list, record, text } from '../../kube/json.js';

/** The container defaults of a LimitRange. */
export interface LimitRange {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly defaults: ContainerDefaults;
}

/** Reads a LimitRange; null for one without container defaults. */
export function readLimitRange(object: unknown): LimitRange | null {
  const { metadata: meta, spec } = record(object);
  const metadata = record(meta);
  const limits = list(record(spec).limits).map(record);
  const container = limits.find(({ type }) => type === 'Container');
  if (container === undefined) return null;
  const given = record(container.default);
  const namespace = text(metadata.namespace);
  return {
    key: `${namespace}/${text(metadata.name)}`,
    namespace,
    // As in Kubernetes, a default limit is also the default request where no default request is given.
    defaults: { limits: given, requests: { ...given, ...record(container.defaultRequest) } },
  };
}

/** The overhead of a RuntimeClass. */
export interface RuntimeClass {
  readonly name: string;
  readonly overhead: unknown;
}

/** Reads a RuntimeClass; null for one without overhead. */
export function readRuntimeClass(object: unknown): RuntimeClass | null {
  const { metadata, overhead } = record(object);
  const { podFixed } = record(overhead);
  return podFixed === undefined ? null : { name: text(record(metadata).name), overhead: podFixed };
}
