import type { SliceStore } from '../slices/ports.js';
import { NO_EDITS, type ContainerEdits } from '../../gpu/container-edits.js';
import type { Log } from '../../host/log.js';
import type { DeviceSource } from '../device-plugin/index.js';
import { kubeletPassesCdiDevices, type CdiSpecs } from '../libraries/index.js';

/** A source of devices that also names the allocation of an answer. */
export interface AllocationSource extends DeviceSource {
  allocate(
    ...request: Parameters<DeviceSource['allocate']>
  ): Promise<
    | Extract<Awaited<ReturnType<DeviceSource['allocate']>>, { ok: false }>
    | { readonly ok: true; readonly edits: ContainerEdits; readonly allocation: string | null }
  >;
}

export interface CdiOptions {
  readonly specs: CdiSpecs;
  /** Null while it is unknown. */
  readonly kubeletVersion: () => string | null;
  readonly log: Log;
}

/**
 * Replaces devices, mounts and environment of an answer by the name of a CDI device, whose specification contains them.
 * A kubelet that is known to be too old gets the full answer: it would drop the name, and the container would get
 * nothing.
 */
export function throughCdi(source: AllocationSource, { specs, kubeletVersion, log }: CdiOptions): DeviceSource {
  return {
    devices: (kind) => source.devices(kind),
    onDevicesChanged: (listener) => source.onDevicesChanged(listener),
    preferred: (...request) => source.preferred(...request),
    preStart: (...request) => source.preStart(...request),
    async allocate(kind, ids) {
      const answer = await source.allocate(kind, ids);
      if (!answer.ok || answer.allocation === null) return answer;
      const version = kubeletVersion();
      if (version !== null && !kubeletPassesCdiDevices(version)) {
        log.warn(
          { kubelet: version, allocation: answer.allocation },
          '--interposition=cdi: this kubelet does not pass CDI devices on; the library path is used instead',
        );
        return answer;
      }
      const device = await specs.write(answer.allocation, answer.edits);
      // An answer for memory completes the specification of the device that the answer for the cores named.
      const cdiDevices = kind === 'core' ? [device] : [];
      return { ok: true, edits: { ...NO_EDITS, annotations: answer.edits.annotations, cdiDevices } };
    },
  };
}

/**
 * Extends `slices`: removing a slice removes its CDI specification too, and `list` includes slices that only have a
 * specification.
 */
export function withCdiSpecs(slices: SliceStore, specs: CdiSpecs): SliceStore {
  return {
    ...slices,
    async remove(id) {
      await slices.remove(id);
      await specs.remove(id);
    },
    list: async () => [...new Set([...(await slices.list()), ...(await specs.list())])],
  };
}
