import { coreIdsOfWhole } from '../../gpu/device-id.js';
import { migResource } from '../../gpu/mig.js';
import type { DeviceSource, PluginDevice } from './devices.js';
import { callsOf, type PluginCalls } from './plugin-calls.js';
import type { PluginResource } from './plugin-server.js';

/** A source of whole MIG instances: all cores of an instance are allocated together. */
export type InstanceSource = Pick<DeviceSource, 'allocate' | 'preStart' | 'onDevicesChanged'>;

/** The instances that are given whole, by profile. */
export type WholeInstances = () => ReadonlyMap<string, readonly PluginDevice[]>;

/** One resource for each profile of the instances that are given whole. */
export function instanceResources(instances: WholeInstances, source: InstanceSource): readonly PluginResource[] {
  return [...instances().keys()].sort().map((profile) => ({
    resource: migResource(profile),
    socket: `mig-${profile.replaceAll(/[^0-9a-z.]/gu, '-')}.sock`,
    calls: instanceCalls(() => instances().get(profile) ?? [], source),
  }));
}

function instanceCalls(devices: () => readonly PluginDevice[], source: InstanceSource): PluginCalls {
  const cores = (ids: readonly string[]): string[] => ids.flatMap(coreIdsOfWhole);
  return callsOf('core', {
    devices,
    onDevicesChanged: (listener) => source.onDevicesChanged(listener),
    // All instances of a profile are equal, so any of them will do.
    preferred: async (_kind, available, mustInclude, size) => {
      const free = available.filter((id) => !mustInclude.includes(id)).sort();
      return { ok: true, ids: [...mustInclude, ...free].slice(0, size) };
    },
    allocate: (kind, ids) => source.allocate(kind, cores(ids)),
    preStart: (kind, ids) => source.preStart(kind, cores(ids)),
  });
}
