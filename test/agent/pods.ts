import type { EmulatedContainer, EmulatedPod } from '../../src/simulation/kubelet/pod.js';

let serial = 0;

export function container(name: string, cores: number, memoryBlocks: number): EmulatedContainer {
  return { name, cores, memoryBlocks };
}

/** A pod with a name and UID of its own; one container `main` unless others are given. */
export function pod(
  containers: readonly EmulatedContainer[],
  initContainers: readonly EmulatedContainer[] = [],
): EmulatedPod {
  serial += 1;
  return { uid: `uid-${serial}`, namespace: 'default', name: `pod-${serial}`, initContainers, containers };
}

export function simplePod(cores: number, memoryBlocks: number): EmulatedPod {
  return pod([container('main', cores, memoryBlocks)]);
}
