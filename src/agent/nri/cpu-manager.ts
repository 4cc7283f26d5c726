import * as z from 'zod';
import type { CpuManagerPolicy } from './cpu-affinity.js';
import { readStateFile } from '../../host/state-file.js';

/** File name in the kubelet's root. */
export const CPU_MANAGER_FILE = 'cpu_manager_state';

const STATE = z.object({ policyName: z.string().min(1) });

/** The policy of the kubelet's CPU manager, from its state on disk; null if that cannot be read. */
export async function readCpuManagerPolicy(path: string): Promise<CpuManagerPolicy> {
  try {
    return STATE.parse(JSON.parse(await readStateFile(path))).policyName;
  } catch {
    return null;
  }
}
