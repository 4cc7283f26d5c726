import { holdLimits, mergeRequests, NO_REQUEST, readLimitAnnotations, type HeldLimits } from './live-limits.js';
import type { OperatorLimits } from './operator-limits.js';
import type { PodLimitAnnotations } from './ports.js';
import type { HeldDevices, SliceSpec } from './slice.js';

/** The limits of a container, and why they differ from the requested ones. */
export interface WantedLimits extends HeldLimits {
  /** False while its pod is not known: what was held before then goes on. */
  readonly podKnown: boolean;
}

/** Decides the limits of a container: its allocation, lowered by its pod's annotations and by the operator. */
export class LimitPolicy {
  readonly #limitAnnotations: PodLimitAnnotations;
  readonly #operator: OperatorLimits;

  constructor(limitAnnotations: PodLimitAnnotations, operator: OperatorLimits) {
    this.#limitAnnotations = limitAnnotations;
    this.#operator = operator;
  }

  /** The limits that a container begins with. */
  async begin(spec: SliceSpec): Promise<HeldDevices> {
    await this.#operator.load(spec.allocation);
    return this.wanted(spec).devices;
  }

  /** The limits as they should be now; `operator` in place of what an operator asked for. */
  wanted(spec: SliceSpec, operator = this.#operator.get(spec.allocation)): WantedLimits {
    const annotations = this.#limitAnnotations.annotations(spec.owner.podUid);
    const read = readLimitAnnotations(annotations ?? new Map());
    const { devices, notes } = holdLimits(spec.devices, mergeRequests(read.request, operator ?? NO_REQUEST));
    return { devices, notes: [...read.problems, ...notes], podKnown: annotations !== null };
  }

  forget(allocation: string): void {
    this.#operator.forget(allocation);
  }
}
