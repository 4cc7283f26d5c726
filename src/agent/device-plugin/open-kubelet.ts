import type { Clock } from '../../host/clock.js';
import { closedAtStop, type Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import type { DeviceSource } from './devices.js';
import { KubeletHolders, type PodNames } from './holders.js';
import { callsOf } from './plugin-calls.js';
import { DevicePlugin } from './plugin.js';
import { REHEARSAL_DELAY_MS, rehearse } from './rehearsal.js';
import { instanceResources, type WholeInstances } from './whole-instances.js';

/** The flags of the agent that concern the kubelet. */
export interface KubeletConfig {
  readonly podResourcesSocket: string;
  readonly devicePluginPath: string;
  /**
   * Directory in which the device plugin proxy accepts registrations; null: the agent registers with the kubelet
   * itself.
   */
  readonly pluginProxyPath: string | null;
}

export interface HoldersNeeds {
  readonly config: KubeletConfig;
  readonly pods: PodNames;
  readonly log: Log;
}

/** The kubelet's answers about containers and their devices. */
export interface Holders {
  readonly holders: KubeletHolders;
  /** Closes the connection to pod-resources. */
  readonly part: Part;
}

export async function openHolders({ config, pods, log }: HoldersNeeds): Promise<Holders> {
  const { podResourcesSocket, devicePluginPath: devicePluginDirectory } = config;
  const holders = new KubeletHolders({ podResourcesSocket, devicePluginDirectory, pods, log });
  return { holders, part: closedAtStop('holders', () => holders.close()) };
}

export interface DevicePluginNeeds {
  readonly config: KubeletConfig;
  readonly devices: DeviceSource;
  /** Decides as `devices` does, without effect. */
  readonly preview: DeviceSource['preferred'];
  /** The MIG instances that are given whole, by profile. */
  readonly wholeInstances: WholeInstances;
  readonly clock: Clock;
  readonly log: Log;
}

/** The device plugin of cores and memory, and of each profile of MIG instances that are given whole. */
export async function openDevicePlugin(needs: DevicePluginNeeds): Promise<DevicePlugin> {
  const { config, devices, preview, wholeInstances, clock, log } = needs;
  const rehearsed: DeviceSource = { ...devices, devices: (kind) => devices.devices(kind), preferred: preview };
  return new DevicePlugin({
    directory: config.pluginProxyPath ?? config.devicePluginPath,
    calls: { core: callsOf('core', devices), memory: callsOf('memory', devices) },
    others: () => instanceResources(wholeInstances, devices),
    clock,
    log,
    onRegistered: (registered) => {
      // A node without a free core refuses, which rehearses as well.
      if (registered) clock.after(REHEARSAL_DELAY_MS, () => void rehearse(rehearsed).catch(() => undefined));
    },
  });
}
