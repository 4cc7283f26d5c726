import { resourceName, resourceNamed, type EmulatedResource } from './pod.js';

/** Ids of one resource that one container holds. */
export interface HeldDevices {
  readonly podUid: string;
  readonly container: string;
  readonly kind: EmulatedResource;
  readonly ids: readonly string[];
  /** The plugin's answer in the kubelet's checkpoint: the bytes of a ContainerAllocateResponse. */
  readonly response: Buffer;
}

/** The state of the kubelet's device manager: existing devices and their holders. */
export class DeviceManager {
  /** Healthy ids by resource; absent until the plugin has listed them. */
  readonly healthy = new Map<EmulatedResource, ReadonlySet<string>>();
  #held: HeldDevices[] = [];
  /** Devices that are not offered: those of holders, and those of an Allocate that is under way. */
  #taken = new Map<EmulatedResource, Set<string>>();

  get held(): readonly HeldDevices[] {
    return this.#held;
  }

  /** Takes devices before the plugin is asked to allocate them. */
  take(kind: EmulatedResource, ids: readonly string[]): void {
    this.#taken.set(kind, new Set([...(this.#taken.get(kind) ?? []), ...ids]));
  }

  /** Records the devices that the plugin has allocated. As in a kubelet, this does not take devices. */
  hold(entry: HeldDevices): void {
    this.#held.push(entry);
  }

  heldBy(podUid: string, container: string, kind: EmulatedResource): readonly string[] {
    return (
      this.#held.find((entry) => entry.podUid === podUid && entry.container === container && entry.kind === kind)
        ?.ids ?? []
    );
  }

  /** The resources whose devices a container holds. */
  resourcesOf(podUid: string, container: string): readonly EmulatedResource[] {
    return this.#held
      .filter((entry) => entry.podUid === podUid && entry.container === container)
      .map(({ kind }) => kind);
  }

  /**
   * Releases the devices of pods that have ended, as a kubelet does before it admits the next pod and before it answers
   * List of pod-resources. If it releases any, only devices of holders stay taken: devices of an Allocate that is under
   * way are offered to the next pod (UpdateAllocatedDevices in the kubelet's device manager).
   */
  forgetAllBut(livingPods: ReadonlySet<string>): void {
    const living = this.#held.filter((entry) => livingPods.has(entry.podUid));
    if (living.length === this.#held.length) return;
    this.#held = living;
    this.takeHeld();
  }

  forget(podUid: string): void {
    this.#held = this.#held.filter((entry) => entry.podUid !== podUid);
    this.takeHeld();
  }

  /** Makes the devices of holders the taken ones. */
  takeHeld(): void {
    this.#taken = new Map();
    for (const { kind, ids } of this.#held) this.take(kind, ids);
  }

  /** Healthy ids that are not taken. */
  available(kind: EmulatedResource): string[] {
    const taken = this.#taken.get(kind);
    return [...(this.healthy.get(kind) ?? [])].filter((id) => taken?.has(id) !== true);
  }

  /** The text of `kubelet_internal_checkpoint`, in the format of kubelets since 1.20 (device ids by NUMA node). */
  encode(): string {
    const data = {
      PodDeviceEntries: this.#held.map((entry) => ({
        PodUID: entry.podUid,
        ContainerName: entry.container,
        ResourceName: resourceName(entry.kind),
        DeviceIDs: { '-1': entry.ids },
        AllocResp: entry.response.toString('base64'),
      })),
      RegisteredDevices: Object.fromEntries([...this.healthy].map(([kind, ids]) => [resourceName(kind), [...ids]])),
    };
    return JSON.stringify({ Data: data, Checksum: 0 });
  }

  /** Restores the state that `encode` wrote in an earlier run. */
  decode(text: string): void {
    const document = JSON.parse(text) as {
      Data: {
        PodDeviceEntries: {
          PodUID: string;
          ContainerName: string;
          ResourceName: string;
          DeviceIDs: Record<string, string[]>;
          AllocResp: string;
        }[];
      };
    };
    this.#held = document.Data.PodDeviceEntries.map((entry) => ({
      podUid: entry.PodUID,
      container: entry.ContainerName,
      kind: resourceNamed(entry.ResourceName) ?? 'memory',
      ids: Object.values(entry.DeviceIDs).flat(),
      response: Buffer.from(entry.AllocResp, 'base64'),
    }));
    this.takeHeld();
  }
}
