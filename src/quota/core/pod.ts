import type { Amount } from './amount.js';
import type { RequestShape } from './request-shape.js';

/** From `at` on the pod holds these amounts on account of that group. */
export interface PodSpan {
  readonly at: number;
  readonly group: string;
  /** Life of the group: a group of the same name made later has nothing to do with it. */
  readonly life: number;
  readonly shape: RequestShape;
  /** Beside `shape.needs`. */
  readonly amounts: readonly Amount[];
}

/** The time line of a pod, as far as it was told. Never changed: replaced. */
export interface Pod {
  readonly id: string;
  /** `refKey` of its workload. */
  readonly workload: string;
  /** Ascending: each holds until the next begins. */
  readonly spans: readonly PodSpan[];
  /** When it stopped, Infinity while it runs. */
  readonly end: number;
  /** Its group as far as a stop told it that came before any start; the spans tell it otherwise. */
  readonly group?: string | undefined;
  /** Its object still exists: it is remembered until `podForgotten`, so that the same events told again count once. */
  readonly isRetained?: boolean | undefined;
}

/** The group whose ledger has the pod; empty where no event named one. */
export function groupOfPod({ spans, group }: Pod): string {
  return spans.at(-1)?.group ?? group ?? '';
}
