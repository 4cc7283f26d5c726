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

  get held(): readonly HeldDevices[] {
    return this.#held;
  }

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

  /** Releases the devices of pods that have ended, as a kubelet does before it admits the next pod. */
  forgetAllBut(livingPods: ReadonlySet<string>): void {
    this.#held = this.#held.filter((entry) => livingPods.has(entry.podUid));
  }

  forget(podUid: string): void {
    this.#held = this.#held.filter((entry) => entry.podUid !== podUid);
  }

  /** Healthy ids without a holder. */
  available(kind: EmulatedResource): string[] {
    const taken = new Set(this.#held.filter((entry) => entry.kind === kind).flatMap((entry) => entry.ids));
    return [...(this.healthy.get(kind) ?? [])].filter((id) => !taken.has(id));
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
  }
}
