import type { ContainerEdits } from '../../gpu/container-edits.js';
import type { RequestRefusal } from '../../gpu/request.js';
import type { ResourceKind } from '../../gpu/resources.js';

/** One device id as the kubelet sees it. */
export interface PluginDevice {
  readonly id: string;
  readonly healthy: boolean;
  readonly numaNode: number | null;
}

export type Answer<T> = ({ readonly ok: true } & T) | RequestRefusal;

/** The agent's decisions that the device plugin servers need. */
export interface DeviceSource {
  devices(kind: ResourceKind): readonly PluginDevice[];
  /** Calls `listener` whenever the result of `devices` may have changed; the returned function unsubscribes. */
  onDevicesChanged(listener: () => void): () => void;
  preferred(
    kind: ResourceKind,
    available: readonly string[],
    mustInclude: readonly string[],
    size: number,
  ): Promise<Answer<{ readonly ids: readonly string[] }>>;
  allocate(kind: ResourceKind, ids: readonly string[]): Promise<Answer<{ readonly edits: ContainerEdits }>>;
  preStart(kind: ResourceKind, ids: readonly string[]): Promise<Answer<object>>;
}
