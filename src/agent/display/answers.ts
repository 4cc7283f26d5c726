import type { ContainerStat } from '../../rpc/gen/display/ContainerStat.js';
import type { UsageResponse } from '../../rpc/gen/display/UsageResponse.js';
import type { AllocationSnapshot, NodeSnapshot, NodeView, SliceSnapshot } from '../node/index.js';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';

const MIB = 1024 * 1024;

/**
 * One container in the original's form: its request, and its use of each GPU. Memory in whole MiB, as in the original.
 */
export interface ContainerAnswer {
  readonly owner: ContainerRef;
  /** Sum over all GPUs, as a fraction of one GPU. */
  readonly requestedGpu: number;
  /** MiB; all memory of its GPUs if it requested none. */
  readonly requestedMemory: number;
  readonly devices: readonly DeviceAnswer[];
}

export interface DeviceAnswer {
  readonly index: number;
  readonly pciBusId: string;
  /** Percent of the GPU, in sum over its processes. */
  readonly usedPercent: number;
  readonly usedMemory: number;
  readonly totalMemory: number;
  readonly pids: readonly number[];
}

/**
 * Every container that the kubelet has named. Containers with the same devices use them in turn: the use belongs to the
 * last one.
 */
export function containerAnswers(snapshot: NodeSnapshot): ContainerAnswer[] {
  return snapshot.allocations.flatMap((allocation) => {
    const requestedGpu = allocation.cores / 100;
    const requestedMemory = Math.floor(requestedBytes(allocation) / MIB);
    const named = allocation.owners.filter(({ podUid }) => podUid !== '');
    return named.map((owner, at) => ({
      owner,
      requestedGpu,
      requestedMemory,
      devices: allocation.slices.map((slice) => deviceAnswer(slice, at === named.length - 1)),
    }));
  });
}

function requestedBytes({ memoryBytes, slices }: AllocationSnapshot): number {
  return memoryBytes ?? slices.reduce((sum, slice) => sum + slice.gpuMemoryBytes, 0);
}

function deviceAnswer(slice: SliceSnapshot, runs: boolean): DeviceAnswer {
  return {
    index: slice.gpuIndex,
    pciBusId: slice.pciBusId,
    usedPercent: runs ? slice.usedPercent : 0,
    usedMemory: runs ? Math.floor(slice.usedMemoryBytes / MIB) : 0,
    totalMemory: Math.floor(slice.gpuMemoryBytes / MIB),
    pids: runs ? slice.pids : [],
  };
}

/** The answer of `PrintUsages`: by pod UID, then by container name. Fields in the order of the protocol. */
export function usageResponse(snapshot: NodeSnapshot, pod: NodeView['pod']): UsageResponse {
  const usage: Record<string, ContainerStat> = {};
  for (const { owner, requestedGpu, requestedMemory, devices } of containerAnswers(snapshot)) {
    const stat = (usage[owner.podUid] ??= newPod(owner, pod));
    (stat.stat ??= {})[owner.container] = {
      dev: devices.map((device) => ({
        id: device.pciBusId,
        card_idx: String(device.index),
        gpu: device.usedPercent,
        mem: device.usedMemory,
        pids: [...device.pids],
        device_mem: device.totalMemory,
      })),
    };
    (stat.spec ??= {})[owner.container] = { gpu: requestedGpu, mem: requestedMemory };
  }
  return { usage };
}

function newPod(owner: ContainerRef, pod: NodeView['pod']): ContainerStat {
  const facts = pod(owner.podUid);
  return {
    stat: {},
    project: owner.namespace,
    user: facts?.user ?? '',
    cluster: facts?.cluster ?? '',
    // As in the original, containers without a GPU have an empty spec.
    spec: Object.fromEntries((facts?.otherContainers ?? []).map((name) => [name, {}])),
  };
}
