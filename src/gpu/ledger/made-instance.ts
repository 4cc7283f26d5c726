import type { MadeInstance } from '../mig-partition.js';
import type { LedgerState } from './state.js';

export function withInstance(state: LedgerState, instance: MadeInstance): LedgerState {
  return { ...state, instances: new Map(state.instances).set(instance.device, instance) };
}

/** Forgets a destroyed instance, and the modes of instances that no longer exist. */
export function withoutInstance(state: LedgerState, { device, uuid }: MadeInstance): LedgerState {
  const instances = new Map(state.instances);
  instances.delete(device);
  const present = new Set(state.node.gpus.map(({ gpu }) => gpu.uuid));
  const modes = [...state.modes].filter(([gpu]) => gpu !== uuid && (!gpu.startsWith('MIG-') || present.has(gpu)));
  return { ...state, instances, modes: new Map(modes) };
}

/**
 * True while a claim has the instance, or processes of a released claim still run on it, or a pod of the device plugin
 * has it after a change of the strategy.
 */
export function isHeld(
  { units, allocations }: Pick<LedgerState, 'units' | 'allocations'>,
  { device, uuid }: MadeInstance,
): boolean {
  return (
    [...units.values()].some(({ devices }) =>
      devices.some((held) => held.device === device || held.gpuUuid === uuid),
    ) || [...allocations.values()].some(({ parts }) => parts.some(({ gpuUuid }) => gpuUuid === uuid))
  );
}
