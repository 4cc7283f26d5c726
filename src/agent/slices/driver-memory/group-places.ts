import type { GroupLimits } from '../../gpus/index.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { GpuEnforcement } from './gpu-enforcement.js';
import type { GroupPlace } from './group-limit-setter.js';
import { containerLimits, podLimits } from './limit-plan.js';
import type { SliceGroups } from './slice-groups.js';

export interface GroupPlacesOptions {
  readonly enforcement: Pick<GpuEnforcement, 'of'>;
  readonly groups: Pick<SliceGroups, 'of' | 'ofPods' | 'podsOf'>;
  readonly slices: Pick<Slices, 'started'>;
  /** What the suspended processes of a slice need when they come back; null: it is not suspended. Absent: none is. */
  readonly suspendedBytes?: (allocation: string) => number | null;
}

/** The control groups that have limits because of slices, and these limits as they should be now. */
export class GroupPlaces {
  readonly #options: GroupPlacesOptions;

  constructor(options: GroupPlacesOptions) {
    this.#options = options;
  }

  /** The groups that have limits because of a slice: those of its pods first, which contain the others. */
  of(slice: Slice): readonly GroupPlace[] {
    const { groups } = this.#options;
    const { devices } = slice.spec;
    return [
      ...groups.ofPods(slice).flatMap(({ podUid, path }) =>
        devices.map(({ uuid }): GroupPlace => {
          return { group: path, gpuUuid: uuid, wanted: () => this.#wantedOfPod(podUid, uuid) };
        }),
      ),
      ...groups.of(slice).flatMap((group) =>
        devices.map(({ uuid }, index): GroupPlace => {
          return { group, gpuUuid: uuid, wanted: () => this.wanted(slice, index) };
        }),
      ),
    ];
  }

  /**
   * The limits that a container's group should have on the slice's GPU of this index; null: the agent has nothing to
   * say about them.
   */
  wanted(slice: Slice, index: number): GroupLimits | null {
    const device = slice.spec.devices[index];
    return containerLimits({
      enforcer: this.#options.enforcement.of(device?.uuid ?? ''),
      limitBytes: slice.unenforced ? null : (slice.limits.live[index]?.memoryBytes ?? null),
      allocatedBytes: device?.memoryBytes ?? null,
      suspendedBytes: this.#options.suspendedBytes?.(slice.id) ?? null,
      isLeftToDriver: slice.limits.memoryByDriver,
    });
  }

  #wantedOfPod(podUid: string, gpuUuid: string): GroupLimits | null {
    const { slices, groups } = this.#options;
    const containers: (GroupLimits | null)[] = [];
    for (const slice of slices.started.values()) {
      const index = slice.spec.devices.findIndex(({ uuid }) => uuid === gpuUuid);
      if (index >= 0 && groups.podsOf(slice).includes(podUid)) containers.push(this.wanted(slice, index));
    }
    return podLimits(containers);
  }
}
