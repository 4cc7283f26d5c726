import { checkPair, refuse, type RequestRefusal } from '../request.js';
import { SUSPENDABLE_KEY } from '../annotations.js';
import { allocate, overbooked, overOffered, setMemory, withAllocation, withoutHalf } from './allocate.js';
import { allocationId, coreIdsOf, memoryIdsOf, type Allocation, type ContainerRef } from './allocation.js';
import { gpusNamed, type LedgerState } from './state.js';

/** A container and the ids that it holds, according to the kubelet. */
export interface Holder {
  readonly container: ContainerRef;
  readonly coreIds: readonly string[];
  readonly memoryIds: readonly string[];
  /** The GPUs of the plugin's answer to Allocate, by UUID or as `/dev/nvidia<minor>`; empty if unknown. */
  readonly gpuNames: readonly string[];
  /**
   * Whether pod-resources lists it. The kubelet's checkpoint alone also names ended pods until the kubelet admits the
   * next pod.
   */
  readonly isListed: boolean;
  /** Whether its pod says that it may be suspended; absent: unknown. */
  readonly isSuspendable?: boolean;
}

export type Identified =
  | {
      readonly ok: true;
      readonly state: LedgerState;
      readonly allocation: Allocation;
      /** True when the ledger lacked the allocation and added it because the kubelet names it. */
      readonly adopted: boolean;
    }
  | RequestRefusal;

/**
 * Binds an allocation to the container that is about to start or was found running, with exactly the memory that the
 * kubelet names. Until then the ledger only assumed which core and memory requests belong together.
 */
export function identify(state: LedgerState, holder: Holder, now: number): Identified {
  const wrong = checkPair({ cores: holder.coreIds.length, memoryBlocks: holder.memoryIds.length });
  if (wrong !== null) return wrong;
  const id = allocationId(holder.coreIds);
  let known = state;
  const adopted = !state.allocations.has(id);
  if (adopted) {
    const { coreIds, gpuNames, isSuspendable } = holder;
    const taken = allocate(
      { ...state, open: null },
      { kind: 'core', ids: coreIds, pending: null, now, gpus: gpusNamed(state.node, gpuNames), isSuspendable },
    );
    if (!taken.ok) return taken;
    known = { ...taken.state, open: state.open };
  }
  const allocation = known.allocations.get(id);
  if (allocation?.isGpuOpen === true) return noGpu(allocation);
  if (allocation === undefined)
    return refuse('unknown-container', `no allocation for ${holder.container.pod}/${holder.container.container}`);

  const samePod = allocation.owners.filter((owner) => owner.podUid === holder.container.podUid);
  const owners = [...samePod.filter((owner) => owner.container !== holder.container.container), holder.container];
  // Containers of a pod may use the same cores in turn: the directory serves the container with more memory.
  const others = samePod.some((owner) => owner.container !== holder.container.container);
  const memoryIds = others ? union(memoryIdsOf(allocation), holder.memoryIds) : holder.memoryIds;
  const { grown, suspendable, ...rest } = setMemory(known, allocation, memoryIds);
  const before = allocation.owners.at(-1);
  const isRestarted = before?.podUid === holder.container.podUid && before.container === holder.container.container;
  const settled: Allocation = {
    ...rest,
    phase: 'started',
    owners,
    missingSince: null,
    // A container that starts again keeps what it grew by; the container after it does not get it.
    ...(isRestarted && grown !== undefined ? { grown } : {}),
    ...(isSuspendable(allocation, holder) ? { suspendable: true } : {}),
  };
  const next = withAllocation(takeMemory(known, id, holder), settled);
  const mustRun = suspendable === true && settled.suspendable !== true;
  const taken = mustRun ? overOffered(next, settled) : null;
  if (taken !== null) return mustNotRun(taken);
  // Where more is offered, memory of another pod whose kind is not known yet may make it seem so.
  const over = (state.node.suspendFactor ?? 1) > 1 ? null : overbooked(next, settled);
  if (over !== null) return over;
  const open = next.open !== null && next.open.kind !== 'memory' && next.open.allocationId === id ? null : next.open;
  return { ok: true, state: { ...next, open }, allocation: settled, adopted };
}

/** What the pod said when it was admitted. It is known at the first start of a container, and assumed before. */
function isSuspendable({ owners, suspendable, parts }: Allocation, holder: Holder): boolean {
  const isFirst = owners.length === 0 && holder.isSuspendable !== undefined;
  return parts.length === 1 && (isFirst ? holder.isSuspendable === true : suspendable === true);
}

function mustNotRun(index: number): RequestRefusal {
  return refuse(
    'mismatch',
    `GPU ${index} has no room for a container that must run all the time: the agent took it for another pod with annotation ${SUSPENDABLE_KEY}; delete this pod so that it is placed again`,
  );
}

/** The kubelet never received a GPU for these cores: its next request was attributed to another container. */
export function noGpu(allocation: Allocation): RequestRefusal {
  const cores = coreIdsOf(allocation).length;
  return refuse('mismatch', `the kubelet was told no GPU for these ${cores} cores; delete the pod to place it again`);
}

/**
 * Moves the holder's memory ids from other allocations to this one, except from containers of the same pod that run. A
 * container that has not started may be of the same pod too; when it starts it gets the ids that the kubelet names.
 */
function takeMemory(state: LedgerState, id: string, holder: Holder): LedgerState {
  const taken = new Set(holder.memoryIds);
  let next = withoutHalf(state, holder.memoryIds);
  for (const other of state.allocations.values()) {
    if (other.id === id || other.owners.some((owner) => owner.podUid === holder.container.podUid)) continue;
    const held = memoryIdsOf(other);
    const kept = held.filter((memoryId) => !taken.has(memoryId));
    if (kept.length < held.length) next = withAllocation(next, setMemory(next, other, kept));
  }
  return next;
}

function union(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])];
}
