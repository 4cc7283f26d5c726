import type { UsageResponse } from '../wire/gen/display/UsageResponse.js';
import type { ContainerUsage } from './view.js';

const MIB = 1024 * 1024;

/** The answer of `PrintUsages`: by pod UID, then by container name. */
export function usageResponse(containers: readonly ContainerUsage[]): UsageResponse {
  const usage: NonNullable<UsageResponse['usage']> = {};
  for (const container of containers) {
    const pod = (usage[container.podUid] ??= { stat: {}, spec: {}, project: container.namespace, user: container.user, cluster: container.cluster });
    (pod.stat ??= {})[container.container] = {
      dev: container.devices.map((device) => ({
        id: device.pciBusId,
        card_idx: String(device.gpuIndex),
        gpu: device.usedPercent,
        mem: device.usedMemoryBytes / MIB,
        pids: [...device.pids],
        device_mem: device.memoryBytes / MIB,
      })),
    };
    (pod.spec ??= {})[container.container] = { gpu: container.requestedCores / 100, mem: container.requestedMemoryBytes / MIB };
  }
  return { usage };
}

/** A message as the original's HTTP gateway prints it: proto field names, and nothing that has its default value. */
export function omitDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(omitDefaults);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    .map(([key, entry]) => [key, omitDefaults(entry)] as const)
    .filter(([, entry]) => !isDefault(entry));
  return Object.fromEntries(entries);
}

function isDefault(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0 || value === false) return true;
  return Array.isArray(value) && value.length === 0;
}
