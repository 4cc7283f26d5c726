import type { ContainerDefaults } from '../../quota/evaluators/completed-pod.js';
import { list, record, text } from '../../kube/json.js';

/** What is kept of a LimitRange: what it fills into containers. */
export interface LimitRange {
  /** Namespace and name. */
  readonly key: string;
  readonly namespace: string;
  readonly defaults: ContainerDefaults;
}

/** Reads a LimitRange; null for one that fills nothing in. */
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
    // A default limit is the default request as well, where that is not given.
    defaults: { limits: given, requests: { ...given, ...record(container.defaultRequest) } },
  };
}

/** What is kept of a RuntimeClass. */
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
