import type { Amount } from '../../../manifests/amount.js';
import type { RequestShape } from './request-shape.js';

/** From `at` on, the pod uses these amounts in this group. */
export interface PodSpan {
  readonly at: number;
  readonly group: string;
  /** Distinguishes groups that had the same name one after the other. */
  readonly life: number;
  readonly shape: RequestShape;
  /** Indexed by `shape.needs`. */
  readonly amounts: readonly Amount[];
}

/** The known timeline of a pod; immutable. */
export interface Pod {
  readonly id: string;
  /** Key of its workload, by `refKey`. */
  readonly workload: string;
  /** Ascending; each lasts until the next begins. */
  readonly spans: readonly PodSpan[];
  /** End of the pod; Infinity while it runs. */
  readonly end: number;
  /** The group named by a stop that arrived before any start; otherwise the spans name it. */
  readonly group?: string | undefined;
  /** The object still exists: the pod is kept until `podForgotten`, so that repeated events count once. */
  readonly isRetained?: boolean | undefined;
}

/** The group whose records hold the pod; empty if no event named one. */
export function groupOfPod({ spans, group }: Pod): string {
  return spans.at(-1)?.group ?? group ?? '';
}
