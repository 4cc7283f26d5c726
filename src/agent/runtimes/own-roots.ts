import { readFileSync } from 'node:fs';
import { kubeletRoots } from './cgroup-path.js';

let found: readonly string[] | null = null;

/** Roots of the kubelet that runs this agent, in the cgroup tree; empty if no kubelet does. */
export function ownKubeletRoots(): readonly string[] {
  if (found !== null) return found;
  try {
    found = kubeletRoots(readFileSync('/proc/self/cgroup', 'utf8'));
  } catch {
    found = [];
  }
  return found;
}
