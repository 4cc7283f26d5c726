import { DeviceIds } from '../../../src/gpu/device-id.js';
import type { Gpu } from '../../../src/gpu/gpu.js';
import { allocate } from '../../../src/gpu/ledger/allocate.js';
import { candidatesOf, isPairingUnsure, needsHolders, pairedByKubelet } from '../../../src/gpu/ledger/candidates.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../../src/gpu/ledger/checkpoint.js';
import { identify, type Holder } from '../../../src/gpu/ledger/identify.js';
import { nothingWaits, openAfterRestart } from '../../../src/gpu/ledger/open-gpu.js';
import type { PendingContainer, PendingContainers } from '../../../src/gpu/ledger/pending.js';
import { prefer } from '../../../src/gpu/ledger/prefer.js';
import { observeOffered, reconcile } from '../../../src/gpu/ledger/release.js';
import { emptyLedger, type LedgerNode, type LedgerState } from '../../../src/gpu/ledger/state.js';
import { takeOver } from '../../../src/gpu/ledger/take-over.js';
import { ANY_GPUS } from '../../../src/gpu/gpu-selection.js';
import { MEMORY_BLOCK_BYTES, type ResourceKind } from '../../../src/gpu/resources.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';

export const GRACE_MS = 10_000;

/** A node of equal GPUs with `blocks` memory blocks each. */
export function nodeOf(cards: number, blocks: number): LedgerNode {
  const gpus = Array.from({ length: cards }, (_, index): Gpu => ({
    index,
    minor: index,
    uuid: `GPU-0000000${index}-0000-0000-0000-000000000000`,
    pciBusId: `00000000:0${index}:00.0`,
    model: 'test',
    memoryBytes: blocks * MEMORY_BLOCK_BYTES,
    numaNode: null,
  }));
  return {
    gpus: gpus.map((gpu) => ({ gpu, usable: true, processCount: 0 })),
    topology: uniformTopology(cards),
    ids: new DeviceIds(gpus),
    shareMode: true,
    wholeInstances: false,
  };
}

export interface ModelPod {
  readonly uid: string;
  readonly cores: number;
  readonly memoryBlocks: number;
  readonly coreIds: readonly string[];
  readonly memoryIds: readonly string[];
  readonly suspendable: boolean;
  started: boolean;
}

/** A kubelet with the ledger, without sockets: each learns at once what the other does. */
export class KubeletModel {
  state: LedgerState;
  now = 1_000_000;
  readonly pods = new Map<string, ModelPod>();
  /** Refusals of PreStartContainer: the ledger could not keep what it had allocated. */
  readonly lateRefusals: string[] = [];
  /** The kubelet itself failed the last pod that it asked the ledger about, after the answer for one resource. */
  failedHalfway = false;
  /** Refusals of the ledger during admission. */
  readonly refused: string[] = [];
  readonly #node: LedgerNode;
  #serial = 0;

  constructor(node: LedgerNode) {
    this.#node = node;
    this.state = emptyLedger(node);
  }

  /** Admits a pod of one container. `failAfter`: the kubelet itself fails the pod after that many resources. */
  admit(pod: {
    cores: number;
    memoryBlocks: number;
    order: readonly ResourceKind[];
    failAfter: number;
    knowsPods: boolean;
    suspendable?: boolean;
  }): boolean {
    const uid = `pod-${(this.#serial += 1)}`;
    const given: Record<ResourceKind, readonly string[]> = { core: [], memory: [] };
    const listed = pod.knowsPods
      ? [
          ...[...this.pods.values()].filter(({ started }) => !started).map((other) => waiting(other.uid, other)),
          waiting(uid, pod),
        ]
      : null;
    for (const [at, kind] of pod.order.entries()) {
      const size = kind === 'core' ? pod.cores : pod.memoryBlocks;
      if (size === 0) continue;
      const available = this.#available(kind);
      if (at >= pod.failAfter || available.length < size) {
        this.failedHalfway ||= given.core.length + given.memory.length > 0;
        return false;
      }
      this.failedHalfway = false;
      this.state = observeOffered(this.state, available, []).state;
      const holders = this.#holders({ uid, coreIds: given.core, memoryIds: given.memory });
      const pending = this.#candidates(listed, kind, size);
      if (isPairingUnsure(this.state, pending, { kind, size })) this.state = pairedByKubelet(this.state, holders);
      const request = { kind, available, mustInclude: [], size, pending };
      let preferred = prefer(this.state, request);
      if (!preferred.ok && this.state.open !== null) {
        this.state = pairedByKubelet(this.state, holders);
        preferred = prefer(this.state, request);
      }
      if (!preferred.ok) {
        this.refused.push(preferred.reason);
        this.state = nothingWaits(this.state);
        return false;
      }
      const booked = allocate(this.state, { kind, ids: preferred.ids, pending, now: this.now });
      if (!booked.ok) {
        this.refused.push(booked.reason);
        this.state = nothingWaits(this.state);
        return false;
      }
      this.state = booked.state;
      given[kind] = preferred.ids;
    }
    this.pods.set(uid, {
      uid,
      cores: pod.cores,
      memoryBlocks: pod.memoryBlocks,
      coreIds: given.core,
      memoryIds: given.memory,
      suspendable: pod.suspendable === true,
      started: false,
    });
    return true;
  }

  /** The form that the allocator uses. */
  #candidates(listed: PendingContainers, kind: ResourceKind, size: number): PendingContainers {
    if (listed === null || !needsHolders(this.state, listed, { kind, size })) return listed;
    const narrowed = candidatesOf(this.state, listed, this.#holders(), { kind, size });
    this.state = narrowed.state;
    return narrowed.pending;
  }

  /** What each container holds; `asking` is being admitted. */
  #holders(
    ...asking: readonly (Pick<ModelPod, 'uid' | 'coreIds' | 'memoryIds'> & { readonly suspendable?: boolean })[]
  ): Holder[] {
    return [...this.pods.values(), ...asking].map(({ uid, coreIds, memoryIds, suspendable }) => ({
      container: { podUid: uid, namespace: 'n', pod: uid, container: 'main' },
      coreIds,
      memoryIds,
      gpuNames: [],
      isListed: true,
      ...(suspendable === undefined ? {} : { isSuspendable: suspendable }),
    }));
  }

  /** Starts or restarts the container of a pod. */
  start(pod: ModelPod): void {
    const container = { podUid: pod.uid, namespace: 'n', pod: pod.uid, container: 'main' };
    const { coreIds, memoryIds, suspendable: isSuspendable } = pod;
    const holder = { container, coreIds, memoryIds, gpuNames: [], isListed: true, isSuspendable };
    const answer = identify(this.state, holder, this.now);
    if (answer.ok) {
      this.state = answer.state;
      pod.started = true;
    } else {
      this.lateRefusals.push(`${pod.uid}: ${answer.reason}`);
      this.pods.delete(pod.uid);
    }
  }

  end(pod: ModelPod): void {
    this.pods.delete(pod.uid);
  }

  /** The agent compares its ledger with the kubelet's list, after `laterMs`. */
  reconcile(laterMs: number): void {
    this.now += laterMs;
    const heldIds = new Set([...this.pods.values()].flatMap((pod) => [...pod.coreIds, ...pod.memoryIds]));
    this.state = reconcile(this.state, { heldIds, endedPods: new Set(), now: this.now, graceMs: GRACE_MS }).state;
  }

  /** The agent starts again, and reads its checkpoint. */
  restart(): void {
    const decoded = decodeCheckpoint(encodeCheckpoint(this.state));
    if (!decoded.ok || decoded.format !== 'current') throw new Error('the checkpoint is not read back');
    const { allocations, halves } = decoded.content;
    const open = openAfterRestart(allocations, halves);
    this.state = { ...this.state, allocations: new Map(allocations.map((one) => [one.id, one])), halves, open };
  }

  /** The checkpoint is lost; the kubelet names what each container holds. */
  lose(): void {
    const holders = this.#holders().map((holder) => ({ ...holder, gpuNames: this.#gpusOf(holder.coreIds) }));
    this.state = takeOver(emptyLedger(this.#node), holders, { now: this.now, graceMs: GRACE_MS }).state;
  }

  /** The GPUs that the kubelet was told for these cores, as its checkpoint has them. */
  #gpusOf(coreIds: readonly string[]): string[] {
    const allocation = [...this.state.allocations.values()].find(({ parts }) =>
      parts.some((part) => part.coreIds.some((id) => coreIds.includes(id))),
    );
    return allocation?.parts.map(({ gpuUuid }) => gpuUuid) ?? [];
  }

  #available(kind: ResourceKind): string[] {
    const held = new Set([...this.pods.values()].flatMap((pod) => (kind === 'core' ? pod.coreIds : pod.memoryIds)));
    return this.#node.gpus
      .flatMap(({ gpu }) => this.#node.ids.all(gpu, kind, this.#node.suspendFactor))
      .filter((id) => !held.has(id));
  }
}

function waiting(
  podUid: string,
  pod: { cores: number; memoryBlocks: number; suspendable?: boolean },
): PendingContainer {
  const { cores, memoryBlocks } = pod;
  const selection = pod.suspendable === true ? { selection: { ...ANY_GPUS, suspendable: true as const } } : {};
  return { podUid, container: 'main', cores, memoryBlocks, hint: [], ...selection };
}
