import type { DeviceLimit } from '../../../abi/limits-file.js';
import {
  holdLimits,
  lowestLimits,
  lowestRequest,
  mergeRequests,
  NO_OVERSUBSCRIPTION,
  NO_REQUEST,
  oversubscribe,
  readEnforcement,
  readLimitAnnotations,
  type HeldLimits,
  type LimitRequest,
} from './live-limits.js';
import { CORES_PER_GPU } from '../../../gpu/resources.js';
import type { OperatorLimits } from './operator-limits.js';
import { NO_SHARING, type PodLimitAnnotations, type SliceOwner, type SliceSharing } from '../ports.js';
import type { HeldDevices, SliceSpec } from '../slice.js';

/** The limits of a container, and why they differ from the requested ones. */
export interface WantedLimits extends HeldLimits {
  /** False while its pod is unknown: the previous limits stay. */
  readonly podKnown: boolean;
}

const NO_ANNOTATIONS: ReadonlyMap<string, string> = new Map();

/** The node's settings for limits; all off by default. */
export interface NodeLimitPolicy {
  /** How many times its memory limit a slice of memory class `low` may hold; 1 or absent: no more than that. */
  readonly memoryOversubscription?: number;
  /** Slices may be unenforced. */
  readonly allowUnenforced?: boolean;
  /** Slices may be suspended. */
  readonly allowSuspend?: boolean;
}

/**
 * Decides the limits of a slice: its allocation, lowered by the annotations of its pod and by the operator. Of several
 * pods and claims that share it, the lowest request counts.
 */
export class LimitPolicy {
  readonly #limitAnnotations: PodLimitAnnotations;
  readonly #operator: OperatorLimits;
  readonly #node: NodeLimitPolicy;
  readonly #sharing: SliceSharing;

  constructor(
    limitAnnotations: PodLimitAnnotations,
    operator: OperatorLimits,
    node: NodeLimitPolicy = {},
    sharing: SliceSharing = NO_SHARING,
  ) {
    this.#sharing = sharing;
    this.#limitAnnotations = limitAnnotations;
    this.#operator = operator;
    this.#node = node;
  }

  /** The allocation with the enforcement that its pod's annotations request now, and whether it can be suspended. */
  withEnforcement(allocated: SliceSpec): SliceSpec {
    const spec = { ...allocated, suspendable: this.#node.allowSuspend === true };
    const annotations = this.#limitAnnotations.annotations(spec.owner.podUid);
    if (annotations === null) return spec;
    const allowed = this.#node.allowUnenforced === true;
    return { ...spec, unenforced: readEnforcement(annotations, spec.owner.container, allowed).unenforced };
  }

  /** The first limits of a container. Rejects if its operator limits cannot be read. */
  async begin(spec: SliceSpec): Promise<HeldDevices> {
    const unknown = await this.#operator.load(spec.allocation);
    if (unknown !== null) throw new Error(unknown);
    return this.wanted(spec).devices;
  }

  /** The limits of a container that runs already; its lowest share if its operator limits cannot be read. */
  async resume(spec: SliceSpec): Promise<HeldDevices> {
    await this.#operator.load(spec.allocation);
    return this.wanted(spec).devices;
  }

  /** The limits that the container should have now. */
  wanted(spec: SliceSpec): WantedLimits {
    const wanted = this.wantedWith(spec, this.#operator.get(spec.allocation));
    const kept = this.#operator.kept(spec.allocation);
    if (kept === null) return wanted;
    const note = 'the limits that an operator set cannot be read; the last limits stay in force';
    const last = kept === 'unknown' ? wanted.devices.map(leastShare) : kept;
    return { ...wanted, devices: lowestLimits(wanted.devices, last), notes: [...wanted.notes, note] };
  }

  /** The share and the priority of a slice on its GPUs, before it is said what keeps them. */
  shareOf(spec: SliceSpec): Pick<DeviceLimit, 'share' | 'priority'> {
    const [device] = this.#held(spec, this.#operator.get(spec.allocation)).held.devices;
    return { share: device?.share ?? 1, priority: device?.priority };
  }

  /** The limits that the container would have with this operator request. */
  wantedWith(spec: SliceSpec, operator: LimitRequest | null): WantedLimits {
    const { held, known, reads, podKnown } = this.#held(spec, operator);
    const [{ annotations, container } = { annotations: NO_ANNOTATIONS, container: spec.owner.container }] = known;
    const { memoryOversubscription = NO_OVERSUBSCRIPTION, allowUnenforced = false } = this.#node;
    const limits = spec.devices.some(({ compute }) => compute === 'sm') ? held.devices.map(allTime) : held.devices;
    const { devices, notes } = oversubscribe(limits, annotations, container, memoryOversubscription);
    const { problem } = readEnforcement(annotations, container, allowUnenforced);
    const refusals = problem === null ? notes : [...notes, problem];
    const problems = new Set(reads.flatMap((read) => read.problems));
    return { devices, notes: [...problems, ...held.notes, ...refusals], podKnown };
  }

  #held(spec: SliceSpec, operator: LimitRequest | null) {
    const users = this.usersOf(spec);
    const known = users.flatMap(({ podUid, container }) => {
      const annotations = this.#limitAnnotations.annotations(podUid);
      return annotations === null ? [] : [{ annotations, container }];
    });
    const claims = this.#sharing
      .claimAnnotations(spec.allocation)
      .flatMap((annotations) => users.map(({ container }) => ({ annotations, container })));
    const reads = [...known, ...claims].map((entry) => readLimitAnnotations(entry.annotations, entry.container));
    const request = reads.reduce((lowest, read) => lowestRequest(lowest, read.request), NO_REQUEST);
    const held = holdLimits(spec.devices, mergeRequests(request, operator ?? NO_REQUEST));
    return { held, known, reads, podKnown: known.length + claims.length > 0 };
  }

  /** The containers that share a slice. */
  usersOf({ allocation, owner }: SliceSpec): readonly SliceOwner[] {
    const sharing = this.#sharing.containersOf(allocation);
    return sharing.length === 0 ? [owner] : sharing;
  }

  forget(allocation: string): void {
    this.#operator.forget(allocation);
  }
}

/** For a slice whose share is one of multiprocessors: the control library limits its memory alone. */
function allTime({ memoryBytes }: DeviceLimit): DeviceLimit {
  return { memoryBytes, share: CORES_PER_GPU, softLimit: null };
}

/** Memory limits stay: the container may already use the memory. */
function leastShare(limit: DeviceLimit): DeviceLimit {
  return limit.memoryBytes === null ? limit : { ...limit, share: 1, softLimit: null };
}
