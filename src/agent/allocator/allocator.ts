import { EMPTY_CHECKPOINT, type CheckpointContent } from '../../gpu/ledger/checkpoint.js';
import { memoryEdits, NO_EDITS, type ContainerEdits } from '../../gpu/container-edits.js';
import type { Gpu } from '../../gpu/gpu.js';
import { allocate } from '../../gpu/ledger/allocate.js';
import { coreIdsOf, memoryIdsOf, type Allocation, type ContainerRef } from '../../gpu/ledger/allocation.js';
import { candidatesOf, isPairingUnsure, needsHolders, pairedByKubelet } from '../../gpu/ledger/candidates.js';
import { followLegacy } from '../../gpu/ledger/legacy.js';
import type { LegacyHolding } from '../../gpu/ledger/legacy-holding.js';
import { nothingWaits, openAfterRestart } from '../../gpu/ledger/open-gpu.js';
import { withPresentHints, type PendingContainers } from '../../gpu/ledger/pending.js';
import { prefer } from '../../gpu/ledger/prefer.js';
import { reconcile, releaseEnded, startedWith } from '../../gpu/ledger/release.js';
import { takeOver } from '../../gpu/ledger/take-over.js';
import type { ClaimGpus } from '../../gpu/ledger/gpu-mode.js';
import { emptyLedger, type LedgerNode, type LedgerState } from '../../gpu/ledger/state.js';
import { refuse, type RequestRefusal } from '../../gpu/request.js';
import { MEMORY_BLOCK_BYTES, type ResourceKind } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import { Listeners } from '../../host/listeners.js';
import type { Log } from '../../host/log.js';
import type {
  CheckpointStore,
  GivenContainer,
  HolderKnowledge,
  NodeFiles,
  Notices,
  PodEvidence,
  PodKnowledge,
} from './ports.js';
import type { LegacyStore, SliceStore } from '../slices/ports.js';
import { editsOf } from './allocation-edits.js';
import { ContainerStarts } from './container-starts.js';
import { LedgerKeeper } from './ledger-keeper.js';
import { describeForgotten, ForgottenAllocations } from './forgotten-allocations.js';
import { offeredDevices, offeredInstances, type OfferedDevice } from './offered-devices.js';
import { podsGone, withPodsWord } from './pod-life.js';
import { gpusOf } from './slice-limits.js';
import { SliceUpkeep } from './slice-upkeep.js';

export interface AllocatorOptions {
  readonly node: LedgerNode;
  readonly pods: PodKnowledge;
  readonly holders: HolderKnowledge;
  readonly evidence: PodEvidence;
  readonly slices: SliceStore;
  readonly legacy: LegacyStore;
  readonly checkpoint: CheckpointStore;
  readonly files: NodeFiles;
  readonly notices: Notices;
  readonly clock: Clock;
  readonly log: Log;
  /** How long the ledger keeps an allocation that neither the kubelet nor a living pod confirms. */
  readonly graceMs: number;
  /** GPUs that the configuration gives to resource claims; none by default. */
  readonly claimGpus?: ClaimGpus;
}

/**
 * The agent asks the kubelet for held devices at most this many times before it allocates without an answer: a kubelet
 * that is older than pod-resources never answers.
 */
const MAX_KUBELET_QUERIES = 5;

type Answer<T> = ({ readonly ok: true } & T) | RequestRefusal;

/**
 * Executes the ledger's decisions. All state changes pass through one queue, one after another. Calls to the kubelet
 * are made outside the queue, so a slow answer delays only one container start. No change waits for the API server; a
 * request for preferred ids waits for its pod to appear in the pod watch, for half a second at most.
 */
export class Allocator {
  readonly #options: AllocatorOptions;
  readonly #listeners = new Listeners();
  /** The ledger and its queue; resource claims use the same queue. */
  readonly ledger: LedgerKeeper;
  readonly #upkeep: SliceUpkeep;
  /** UIDs of pods whose request was refused; the API server may still list them as pending. */
  readonly #failed = new Set<string>();
  readonly #forgotten: ForgottenAllocations;
  readonly #starts: ContainerStarts;
  /** How many more times the kubelet is asked for held devices before an allocation; 0 after it has answered. */
  #kubeletQueriesLeft = MAX_KUBELET_QUERIES;

  constructor(options: AllocatorOptions, restored: CheckpointContent = EMPTY_CHECKPOINT) {
    this.#options = options;
    this.#upkeep = new SliceUpkeep(options.slices, options.log);
    this.#forgotten = new ForgottenAllocations(options);
    this.ledger = new LedgerKeeper(
      {
        ...emptyLedger(options.node, options.claimGpus),
        allocations: new Map(restored.allocations.map((allocation) => [allocation.id, allocation])),
        halves: restored.halves,
        open: openAfterRestart(restored.allocations, restored.halves),
        legacy: restored.legacy,
        units: new Map(restored.units.map((unit) => [unit.id, unit])),
        modes: restored.modes,
        instances: new Map(restored.instances.map((instance) => [instance.device, instance])),
      },
      options,
    );
    this.#starts = new ContainerStarts(this.ledger, options, (kind, size, refusal) =>
      this.#refused(kind, size, refusal),
    );
  }

  /** A snapshot: a later change creates a new state and leaves this one as it is. */
  get state(): LedgerState {
    return this.ledger.state;
  }

  get #state(): LedgerState {
    return this.ledger.state;
  }

  set #state(state: LedgerState) {
    this.ledger.state = state;
  }

  /** Every device id of a resource that this node offers. */
  devices(kind: ResourceKind): OfferedDevice[] {
    return offeredDevices(this.#state, kind);
  }

  /** The MIG instances of each profile, where they are given whole. */
  wholeInstances(): ReadonlyMap<string, readonly OfferedDevice[]> {
    return offeredInstances(this.#state);
  }

  onDevicesChanged(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Replaces the node after GPUs were added or removed, or changed their health. */
  setNode(node: LedgerNode): Promise<void> {
    return this.#enqueue(async () => {
      this.#state = { ...this.#state, node };
      this.devicesChanged();
    });
  }

  /** Notifies the listeners that the result of `devices` may have changed. */
  devicesChanged(): void {
    this.#listeners.emit();
  }

  /**
   * GetPreferredAllocation. After a refusal, here or in Allocate, the kubelet fails the pod, so the ledger expects no
   * request for the pod's other resource.
   */
  async preferred(
    kind: ResourceKind,
    available: readonly string[],
    mustInclude: readonly string[],
    size: number,
  ): Promise<Answer<{ readonly ids: readonly string[] }>> {
    await Promise.all([this.#ensureReconciled(), this.#options.pods.untilPending(kind, size)]);
    return this.#enqueue(async () => {
      const ended = releaseEnded(this.#state, this.#options.pods.ended());
      const offered = await this.#forgotten.observe(ended.state, available, mustInclude);
      this.#state = offered.state;
      await this.#afterFree([...ended.freed, ...offered.freed]);
      const pending = await this.#pendingFor(kind, size);
      if (isPairingUnsure(this.#state, pending, { kind, size })) await this.#askForPairing();
      const ask = () => prefer(this.#state, { kind, available: offered.available, mustInclude, size, pending });
      let answer = ask();
      if (!answer.ok && answer.code === 'nothing-fits' && this.#state.open !== null) {
        await this.#askForPairing();
        answer = ask();
      }
      if (answer.ok) return { ok: true, ids: answer.ids };
      if ('podUid' in answer) this.#failed.add(answer.podUid);
      this.#state = nothingWaits(this.#state);
      const { forgotten } = offered;
      const reason = forgotten.length > 0 ? `${answer.reason}; ${describeForgotten(forgotten)}` : answer.reason;
      return this.#refused(kind, size, refuse(answer.code, reason));
    });
  }

  /**
   * Allocate for one resource of one container. The answer for core ids carries all devices, mounts and variables of
   * the slice; the answer for memory ids carries only the amount.
   */
  async allocate(
    kind: ResourceKind,
    ids: readonly string[],
  ): Promise<Answer<{ readonly edits: ContainerEdits; readonly allocation: string | null }>> {
    await this.#ensureReconciled();
    return this.#enqueue(async () => {
      const { slices, clock, log } = this.#options;
      const forgotten = await this.#forgotten.among(startedWith(this.#state, ids));
      if (forgotten.length > 0) {
        this.#state = nothingWaits(this.#state);
        return this.#refused(kind, ids.length, refuse('devices-in-use', describeForgotten(forgotten)));
      }
      const pending = await this.#pendingFor(kind, ids.length);
      const answer = allocate(this.#state, { kind, ids, pending, now: clock.now() });
      if (!answer.ok) {
        this.#state = nothingWaits(this.#state);
        return this.#refused(kind, ids.length, answer);
      }
      if (kind === 'memory') {
        const before = this.#state;
        this.#state = answer.state;
        await this.#save();
        const edits = memoryEdits(ids.length * MEMORY_BLOCK_BYTES);
        const paired = answer.allocation;
        if (paired === null || (before.allocations.get(paired.id)?.isGpuOpen !== true && !answer.isRepeated))
          return { ok: true, edits, allocation: null };
        const gpus = gpusOf(this.#state.node, paired);
        const indexes = gpus.map((gpu) => gpu.index);
        log.info({ allocation: paired.id, gpus: indexes, memoryBlocks: ids.length }, 'GPU chosen with the memory');
        const named = this.#editsOf(paired, gpus);
        return {
          ok: true,
          edits: { ...named, annotations: { ...named.annotations, ...edits.annotations } },
          allocation: paired.id,
        };
      }
      const { allocation, replaced } = answer;
      if (allocation === null) return { ok: true, edits: NO_EDITS, allocation: null };
      // Only containers of one pod share a directory. An existing directory belongs to an earlier allocation otherwise.
      await slices.prepare(allocation.id, !this.#state.allocations.has(allocation.id) || replaced !== null);
      this.#state = answer.state;
      await this.#save();
      if (replaced !== null) this.#options.notices.freed(replaced);
      const gpus = gpusOf(this.#state.node, allocation);
      log.info({ allocation: allocation.id, gpus: gpus.map((gpu) => gpu.index), cores: ids.length }, 'allocated');
      return { ok: true, edits: this.#editsOf(allocation, gpus), allocation: allocation.id };
    });
  }

  /** PreStartContainer: the limits of the container are on disk when this resolves. */
  preStart(kind: ResourceKind, ids: readonly string[]): Promise<{ readonly ok: true } | RequestRefusal> {
    return this.#starts.preStart(kind, ids);
  }

  /**
   * Opens the slices of containers that may run since before this agent started. The next reconciliation retries those
   * that fail.
   */
  async restoreSlices(): Promise<void> {
    await this.#enqueue(async () => {
      await this.#upkeep.openAll(this.#state);
      await this.#options.legacy.open(this.#state.legacy);
    });
  }

  /** Adds allocations that the kubelet names and the ledger lacks, and frees allocations that no container holds. */
  async reconcile(): Promise<void> {
    const named = await this.#options.holders.all();
    if (named === null) return;
    this.#kubeletQueriesLeft = 0;
    const gone = await podsGone(named, this.#options.pods, this.#options.evidence);
    await this.#enqueue(async () => {
      const { clock, graceMs, pods, log } = this.#options;
      const [before, now, endedPods] = [this.#state, clock.now(), pods.ended()];
      // The kubelet's checkpoint names a pod that has ended until the kubelet admits the next pod.
      const living = named
        .filter(({ container: { podUid } }) => !endedPods.has(podUid) && !gone.has(podUid))
        .map((holder) => withPodsWord(holder, pods));
      const followed = followLegacy(before, living, { endedPods, now, graceMs });
      this.#logLegacy(followed.begun, followed.ended);
      const taken = takeOver(followed.state, living, { now, graceMs });
      for (const { container, reason } of taken.refused)
        log.warn({ container, reason }, 'a container that the kubelet names could not be added to the ledger');
      const heldIds = new Set(living.flatMap((holder) => [...holder.coreIds, ...holder.memoryIds]));
      const compare = () => reconcile(taken.state, { heldIds, endedPods, now, graceMs });
      let { state, freed } = compare();
      const forgotten = await this.#forgotten.among(freed.filter(({ owners }) => !owners.some(isEnded(endedPods))));
      if (forgotten.length > 0) {
        for (const allocation of forgotten)
          for (const id of [...coreIdsOf(allocation), ...memoryIdsOf(allocation)]) heldIds.add(id);
        ({ state, freed } = compare());
      }
      this.#state = state;
      if (state !== before || this.ledger.unsaved) await this.#save();
      for (const { allocation, container } of taken.adopted) {
        log.info({ allocation: allocation.id, container }, 'allocation added: the kubelet names its container');
        this.#upkeep.expect(allocation.id);
      }
      await this.#afterFree([...taken.dropped, ...freed]);
      await this.#upkeep.reconcile(state);
      await this.#options.legacy.open(state.legacy);
      await this.#options.legacy.keepOnly(state.legacy);
    });
  }

  /**
   * Compares the ledger with the kubelet before the first allocation: the agent's checkpoint may be lost or old. A
   * kubelet that sends a request can also answer one.
   */
  async #ensureReconciled(): Promise<void> {
    if (this.#kubeletQueriesLeft === 0) return;
    this.#kubeletQueriesLeft -= 1;
    await this.reconcile().catch((error: unknown) =>
      this.#options.log.error(
        { err: error },
        'ledger reconciliation with the kubelet failed; the agent retries in the next period',
      ),
    );
  }

  /** The allocation's GPUs, as far as the node has them. */
  gpusOf(allocation: Allocation): readonly Gpu[] {
    return gpusOf(this.#state.node, allocation);
  }

  /**
   * The slice, GPUs, variables and mounts of a container that is about to start or has started; null if it holds none.
   */
  givenTo(podUid: string, container: string): GivenContainer | null {
    const allocation = [...this.#state.allocations.values()].find(
      ({ phase, owners }) =>
        phase === 'started' && owners.some((owner) => owner.podUid === podUid && owner.container === container),
    );
    if (allocation === undefined) return null;
    const gpus = gpusOf(this.#state.node, allocation);
    const { environment, mounts } = this.#editsOf(allocation, gpus);
    return { slice: allocation.id, gpus, environment, mounts };
  }

  /** Waits for the queued changes; used when the agent stops. */
  async settle(): Promise<void> {
    await this.#enqueue(async () => undefined);
  }

  /**
   * The containers that a request may belong to. If they differ in their other resource, the kubelet's list of holders
   * narrows the choice: a container that holds devices already does not ask again.
   */
  async #pendingFor(kind: ResourceKind, size: number): Promise<PendingContainers> {
    const listed = this.#options.pods.pending();
    // The API server learns of the pod's failure from the kubelet some time later.
    for (const podUid of this.#failed)
      if (listed?.some((container) => container.podUid === podUid) !== true) this.#failed.delete(podUid);
    const waiting = listed?.filter(({ podUid }) => !this.#failed.has(podUid)) ?? null;
    const pending = waiting === null ? null : withPresentHints(this.#state.node.gpus, waiting);
    if (pending === null || !needsHolders(this.#state, pending, { kind, size })) return pending;
    const narrowed = candidatesOf(this.#state, pending, await this.#options.holders.known(), { kind, size });
    this.#state = narrowed.state;
    return narrowed.pending;
  }

  /** Asks the kubelet which container the last answers belong to, and corrects the ledger's pairing. */
  async #askForPairing(): Promise<void> {
    const holders = await this.#options.holders.all();
    if (holders !== null) this.#state = pairedByKubelet(this.#state, holders);
  }

  #logLegacy(begun: readonly LegacyHolding[], ended: readonly LegacyHolding[]): void {
    const { log } = this.#options;
    for (const { container, cores, memoryBlocks, parts, gpusKnown } of begun) {
      const gpus = parts.map(({ gpuUuid }) => gpuUuid);
      log.warn(
        { container, cores, memoryBlocks, gpus },
        gpusKnown
          ? 'a container of the previous device plugin keeps its GPU share until it ends'
          : 'the GPU of a container of the previous device plugin is unknown: its share stays free on every GPU until it ends',
      );
    }
    for (const { container, cores, memoryBlocks } of ended)
      log.info(
        { container, cores, memoryBlocks },
        'a container of the previous device plugin has ended; its GPU share is free',
      );
  }

  #editsOf(allocation: Allocation, gpus: readonly Gpu[]): ContainerEdits {
    return editsOf(allocation, gpus, this.#state, this.#options);
  }

  #refused(kind: ResourceKind, size: number, refusal: RequestRefusal): RequestRefusal {
    this.#options.log.warn({ resource: kind, size, code: refusal.code, reason: refusal.reason }, 'refused');
    this.#options.notices.refused(kind, size, refusal);
    return refusal;
  }

  async #afterFree(freed: readonly Allocation[]): Promise<void> {
    if (freed.length === 0) return;
    await this.#save();
    for (const allocation of freed) {
      this.#forgotten.freed(allocation.id);
      await this.#upkeep.remove(allocation.id);
      this.#options.log.info({ allocation: allocation.id, owners: allocation.owners }, 'freed');
      this.#options.notices.freed(allocation);
    }
  }

  #save(): Promise<void> {
    return this.ledger.save();
  }

  #enqueue<T>(step: () => Promise<T>): Promise<T> {
    return this.ledger.run(step);
  }
}

function isEnded(endedPods: ReadonlySet<string>): (owner: ContainerRef) => boolean {
  return ({ podUid }) => endedPods.has(podUid);
}
