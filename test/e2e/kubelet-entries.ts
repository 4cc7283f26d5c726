import { readFileSync } from 'node:fs';
import { parseKubeletCheckpoint, type CheckpointEntry } from '../../src/agent/device-plugin/internal-checkpoint.js';
import { KUBELET_CHECKPOINT } from './cluster.js';

/** The entries of the kubelet's checkpoint, in an order that does not depend on the kubelet. */
export function kubeletEntries(): readonly CheckpointEntry[] {
  const parsed = parseKubeletCheckpoint(readFileSync(KUBELET_CHECKPOINT, 'utf8'));
  if (!parsed.ok) throw new Error(parsed.reason);
  const nameOf = ({ podUid, container, resource }: CheckpointEntry): string => `${podUid} ${container} ${resource}`;
  return parsed.entries
    .map((entry) => ({ ...entry, deviceIds: [...entry.deviceIds].sort() }))
    .sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
}
