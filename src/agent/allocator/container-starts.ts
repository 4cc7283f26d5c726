import { divisionOf } from '../../gpu/division.js';
import { allows, selectionInWords } from '../../gpu/gpu-selection.js';
import type { Gpu } from '../../gpu/gpu.js';
import { withoutHalf } from '../../gpu/ledger/allocate.js';
import { coreIdsOf, memoryIdsOf } from '../../gpu/ledger/allocation.js';
import { identify, noGpu, type Holder } from '../../gpu/ledger/identify.js';
import { isLegacyId, noteLegacy } from '../../gpu/ledger/legacy.js';
import { holdsAny } from '../../gpu/ledger/release.js';
import { checkPair, refuse, type RequestRefusal } from '../../gpu/request.js';
import type { ResourceKind } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { LedgerKeeper } from './ledger-keeper.js';
import { withPodsWord } from './pod-life.js';
import type { HolderKnowledge, Notices, PodKnowledge } from './ports.js';
import type { LegacyStore, SliceStore } from '../slices/ports.js';
import { gpusOf, limitsOf } from './slice-limits.js';

export interface ContainerStartsOptions {
  readonly holders: HolderKnowledge;
  readonly pods: Pick<PodKnowledge, 'pending' | 'isSuspendable'>;
  readonly slices: SliceStore;
  readonly legacy: LegacyStore;
  readonly notices: Notices;
  readonly clock: Clock;
  readonly log: Log;
}

type Started = { readonly ok: true } | RequestRefusal;

/** Starts the slices of containers when the kubelet is about to start them. */
export class ContainerStarts {
  readonly #ledger: LedgerKeeper;
  readonly #options: ContainerStartsOptions;
  readonly #refused: (kind: ResourceKind, size: number, refusal: RequestRefusal) => RequestRefusal;

  constructor(
    ledger: LedgerKeeper,
    options: ContainerStartsOptions,
    refused: (kind: ResourceKind, size: number, refusal: RequestRefusal) => RequestRefusal,
  ) {
    this.#ledger = ledger;
    this.#options = options;
    this.#refused = refused;
  }

  /**
   * PreStartContainer: the container is about to start, so the kubelet can name it. Its limits are on disk when this
   * resolves. If the kubelet does not name it, the agent uses the ledger's own pairing of cores and memory if that is
   * complete.
   */
  async preStart(kind: ResourceKind, ids: readonly string[]): Promise<Started> {
    if (ids.length > 0 && ids.every(isLegacyId)) return this.#restartLegacy(kind, ids);
    // The kubelet calls once per resource: if the call for cores came first, the container has started already.
    if (kind === 'memory' && this.#hasStarted(ids)) return { ok: true };
    const holder = await this.#options.holders.holderOf(kind, ids);
    return this.#ledger.run(async () => {
      const answer = holder === null ? await this.#startUnnamed(kind, ids) : await this.#startNamed(kind, holder);
      if (answer.ok) return answer;
      // These ids must not be paired with the next container's request.
      this.#ledger.state = { ...withoutHalf(this.#ledger.state, ids), open: null };
      return this.#refused(kind, ids.length, answer);
    });
  }

  /** A container that the original device plugin started is restarted; it keeps its GPUs and amounts. */
  async #restartLegacy(kind: ResourceKind, ids: readonly string[]): Promise<Started> {
    const ledger = this.#ledger;
    const holder = await this.#options.holders.holderOf(kind, ids);
    return ledger.run(async () => {
      const before = ledger.state;
      if (holder !== null) ledger.state = noteLegacy(before, holder);
      if (ledger.state !== before) await ledger.save();
      await this.#options.legacy.open(ledger.state.legacy);
      return { ok: true };
    });
  }

  #hasStarted(memoryIds: readonly string[]): boolean {
    const wanted = new Set(memoryIds);
    return [...this.#ledger.state.allocations.values()].some(
      (allocation) => allocation.phase === 'started' && holdsAny(allocation, wanted),
    );
  }

  async #startUnnamed(kind: ResourceKind, ids: readonly string[]): Promise<Started> {
    const { slices, log } = this.#options;
    const { state } = this.#ledger;
    const wanted = new Set(ids);
    const allocation = [...state.allocations.values()].find((entry) => holdsAny(entry, wanted));
    if (allocation?.phase === 'started') {
      await slices.start(limitsOf(state.node, allocation));
      return { ok: true };
    }
    if (allocation === undefined) {
      return refuse(
        'unknown-container',
        `neither the kubelet nor this agent knows a container that holds these ${ids.length} ${kind} devices`,
      );
    }
    if (allocation.isGpuOpen === true) return noGpu(allocation);
    const request = { cores: coreIdsOf(allocation).length, memoryBlocks: memoryIdsOf(allocation).length };
    const incomplete = checkPair(request);
    if (incomplete !== null) return incomplete;
    await slices.start(limitsOf(state.node, allocation));
    log.warn(
      { allocation: allocation.id, ...request },
      'the kubelet does not name a container that starts; its limits are derived from its device ids',
    );
    return { ok: true };
  }

  async #startNamed(kind: ResourceKind, holder: Holder): Promise<Started> {
    const { clock, slices, notices, log } = this.#options;
    // The kubelet calls once per resource; the call for cores starts the whole container.
    if (kind === 'memory')
      return checkPair({ cores: holder.coreIds.length, memoryBlocks: holder.memoryIds.length }) ?? { ok: true };
    const answer = identify(this.#ledger.state, withPodsWord(holder, this.#options.pods), clock.now());
    if (!answer.ok) return answer;
    const { allocation } = answer;
    const wrong = this.#wrongGpu(holder, gpusOf(this.#ledger.state.node, allocation));
    if (wrong !== null) return wrong;
    if (answer.adopted) await slices.prepare(allocation.id, true);
    await slices.start(limitsOf(this.#ledger.state.node, allocation, holder.container));
    this.#ledger.state = answer.state;
    await this.#ledger.save();
    const gpus = gpusOf(this.#ledger.state.node, allocation);
    const indexes = gpus.map((gpu) => gpu.index);
    log.info({ allocation: allocation.id, container: holder.container, gpus: indexes }, 'container starts');
    notices.started(allocation, holder.container, gpus);
    return { ok: true };
  }

  /** The kubelet did not say which pod asked: of pods that waited together, this one may have the GPU of another. */
  #wrongGpu({ container: { podUid, container }, coreIds }: Holder, gpus: readonly Gpu[]): RequestRefusal | null {
    const pending = this.#options.pods.pending() ?? [];
    const { selection } = pending.find((each) => each.podUid === podUid && each.container === container) ?? {};
    const count = divisionOf(coreIds.length, selection).gpus;
    if (selection !== undefined && gpus.length !== count)
      return refuse(
        'mismatch',
        `the container got ${gpus.length} of ${count} GPUs${selectionInWords(selection)}: the agent did not know its pod when the kubelet asked; delete this pod so that it is placed again`,
      );
    const wrong = selection === undefined ? undefined : gpus.find((gpu) => !allows(selection, gpu));
    if (selection === undefined || wrong === undefined) return null;
    const { index, model, uuid } = wrong;
    return refuse(
      'mismatch',
      `the container got GPU ${index} (${model}, ${uuid}), which its annotations do not allow${selectionInWords(selection)}; pods that ask for the same amount arrived in another order than they were bound: delete this pod so that it is placed again`,
    );
  }
}
