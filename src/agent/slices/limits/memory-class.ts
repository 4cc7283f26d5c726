/** Decides which slices may hold memory beyond their booked amount, and how much. Pure. */
import { MEMORY_OVERSUBSCRIBE_KEY } from '../../../gpu/annotations.js';
import type { DeviceLimit } from '../../../abi/limits-file.js';
import { valueFor, type HeldLimits } from './live-limits.js';

/** Slices of class `low` may hold more than is booked, on the host; `normal` and `high` never. */
export const MEMORY_CLASSES = ['high', 'normal', 'low'] as const;
export type MemoryClass = (typeof MEMORY_CLASSES)[number];

/** A node that does not oversubscribe memory. */
export const NO_OVERSUBSCRIPTION = 1;

/** The class that a pod's annotations name for one of its containers; null where the word is none. */
export function readMemoryClass(annotations: ReadonlyMap<string, string>, container: string): MemoryClass | null {
  const whole = annotations.get(MEMORY_OVERSUBSCRIBE_KEY);
  const word = whole === undefined ? undefined : valueFor(whole, container);
  return word === undefined ? 'normal' : (MEMORY_CLASSES.find((known) => known === word) ?? null);
}

/**
 * The limits with host-backed memory for a container of class `low`: together with it the container may hold `factor`
 * times its memory limit. Says why where that is not possible.
 */
export function oversubscribe(
  devices: readonly DeviceLimit[],
  annotations: ReadonlyMap<string, string>,
  container: string,
  factor: number,
): HeldLimits {
  const memoryClass = readMemoryClass(annotations, container);
  if (memoryClass === null)
    return refused(
      devices,
      `${JSON.stringify(annotations.get(MEMORY_OVERSUBSCRIBE_KEY)?.slice(0, 64))} is not high, normal or low`,
    );
  if (memoryClass !== 'low') return { devices, notes: [] };
  if (factor <= NO_OVERSUBSCRIPTION)
    return refused(devices, 'this node does not oversubscribe memory (--memory-oversubscription)');
  const [device] = devices;
  if (device === undefined || devices.length > 1)
    return refused(devices, `only containers with one GPU can hold memory beyond it, this one has ${devices.length}`);
  if (device.priority === 'high')
    return refused(devices, 'a container of high priority never holds memory on the host');
  if (device.memoryBytes === null) return refused(devices, 'the container has no memory limit that it could go beyond');
  return { devices: [{ ...device, hostBackedBytes: Math.floor(device.memoryBytes * (factor - 1)) }], notes: [] };
}

function refused(devices: readonly DeviceLimit[], why: string): HeldLimits {
  return { devices, notes: [`${MEMORY_OVERSUBSCRIBE_KEY}: ${why}`] };
}
