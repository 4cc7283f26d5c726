import { amountsOf, coreIdsOf, memoryIdsOf, type Allocation, type ContainerRef } from '../../gpu/ledger/allocation.js';
import { resize } from '../../gpu/ledger/resize.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { readResize, RESIZE_STATUS_KEY, sameAmounts, type ResizeStatus } from '../../manifests/gpu-resize.js';
import type { SliceStore } from '../slices/ports.js';
import type { LedgerKeeper } from './ledger-keeper.js';
import type { AgentPods } from './no-pods.js';
import type { Notices } from './ports.js';
import { limitsOf } from './slice-limits.js';

export interface ResizesOptions {
  readonly ledger: LedgerKeeper;
  /** Whether containers may get more than they have; otherwise they can only give it back. */
  readonly isAllowed: boolean;
  readonly pods: Pick<AgentPods, 'annotations' | 'onAnnotations' | 'pending' | 'nameOf'>;
  readonly slices: Pick<SliceStore, 'resize'>;
  readonly notices: Pick<Notices, 'resized'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** How soon a resize that waits for room, or for memory in use, is tried again. */
const RETRY_MS = 2_000;

const NOT_ALLOWED = 'this node gives containers no more than they requested (--allow-resize)';

/**
 * Gives running containers the amounts that the annotations of their pods ask for: those of an allocation, on its GPU.
 * A larger amount is charged in the ledger before the container gets it; a smaller one is free for others after the
 * container has lost it.
 */
export class Resizes {
  readonly name = 'resizes';
  readonly #options: ResizesOptions;
  /** By allocation: the status that was reported last. */
  readonly #told = new Map<string, ResizeStatus>();
  /** The same of containers that have not started, by pod and container. */
  readonly #toldWaiting = new Map<string, ResizeStatus>();
  #stops: readonly (() => void)[] = [];

  constructor(options: ResizesOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { pods, clock } = this.#options;
    this.#stops = [
      pods.onAnnotations((podUid) => this.#consider((owner) => owner.podUid === podUid)),
      pods.onAnnotations(() => this.#answerWaiting()),
      clock.every(RETRY_MS, () => this.#consider(() => true)),
    ];
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    await this.#options.ledger.run(async () => undefined);
  }

  /** Containers that wait for their start learn at once that their node gives them no more than they request. */
  #answerWaiting(): void {
    const { pods, isAllowed } = this.#options;
    if (isAllowed) return;
    const waiting = new Set<string>();
    for (const { podUid, container, cores, memoryBlocks } of pods.pending() ?? []) {
      const key = `${podUid}/${container}`;
      waiting.add(key);
      const requested = { cores, memoryBlocks };
      const annotations = pods.annotations(podUid);
      const asked = readResize((name) => annotations?.get(name), container, requested);
      if (asked === null) continue;
      const message = [NOT_ALLOWED, ...asked.problems].join('; ');
      const status = { ...requested, pending: { reason: 'Infeasible', message, asked: asked.amounts } } as const;
      const { namespace, pod } = pods.nameOf(podUid) ?? { namespace: '', pod: '' };
      this.#tell(this.#toldWaiting, key, { podUid, namespace, pod, container }, status);
    }
    for (const key of this.#toldWaiting.keys()) if (!waiting.has(key)) this.#toldWaiting.delete(key);
  }

  #consider(isMeant: (owner: ContainerRef) => boolean): void {
    const { ledger, log } = this.#options;
    const { allocations } = ledger.state;
    for (const id of this.#told.keys()) if (!allocations.has(id)) this.#told.delete(id);
    for (const allocation of allocations.values()) {
      const owner = allocation.owners.at(-1);
      if (owner === undefined || !isMeant(owner) || !this.#differs(allocation, owner)) continue;
      ledger
        .run(() => this.#resize(allocation.id))
        .catch((error: unknown) => log.error({ err: error, allocation: allocation.id }, 'a container was not resized'));
    }
  }

  #differs(allocation: Allocation, owner: ContainerRef): boolean {
    const wanted = this.#wanted(allocation, owner);
    if (wanted === null) return false;
    const told = this.#told.get(allocation.id);
    return told === undefined || told.pending !== undefined || !sameAmounts(wanted.amounts, told);
  }

  /**
   * What the container should have; null if nothing was ever asked for it, its pod is unknown, or containers of the pod
   * wait: it may be an init container, whose GPU the next one gets.
   */
  #wanted(allocation: Allocation, { podUid, container }: ContainerRef): ReturnType<typeof readResize> {
    const { pods } = this.#options;
    const annotations = allocation.phase === 'started' ? pods.annotations(podUid) : null;
    if (annotations === null || pods.pending()?.some((waiting) => waiting.podUid === podUid) === true) return null;
    const requested = { cores: coreIdsOf(allocation).length, memoryBlocks: memoryIdsOf(allocation).length };
    const asked = readResize((key) => annotations.get(key), container, requested);
    const isKnown =
      allocation.grown !== undefined || this.#told.has(allocation.id) || annotations.has(RESIZE_STATUS_KEY);
    return asked ?? (isKnown ? { amounts: requested, problems: [] } : null);
  }

  async #resize(id: string): Promise<void> {
    const { ledger, slices, isAllowed, log } = this.#options;
    const allocation = ledger.state.allocations.get(id);
    const owner = allocation?.owners.at(-1);
    const wanted = allocation === undefined || owner === undefined ? null : this.#wanted(allocation, owner);
    if (allocation === undefined || owner === undefined || wanted === null) return;
    const before = amountsOf(allocation);
    const asked = wanted.amounts;
    const stays = (pending: Omit<NonNullable<ResizeStatus['pending']>, 'asked'>): void =>
      this.#tell(this.#told, id, owner, { ...before, pending: { ...pending, asked } });
    const isMore = asked.cores > before.cores || asked.memoryBlocks > before.memoryBlocks;
    const problems = isMore && !isAllowed ? [NOT_ALLOWED, ...wanted.problems] : wanted.problems;
    if (problems.length > 0) return stays({ reason: 'Infeasible', message: problems.join('; ') });
    const resized = resize(ledger.state, allocation, asked);
    if (!resized.ok) return stays({ reason: resized.reason, message: resized.message });
    const after = amountsOf(resized.allocation);
    if (!sameAmounts(before, after)) {
      const { state } = ledger;
      const limits = limitsOf(state.node, resized.allocation, owner);
      if (after.memoryBlocks < before.memoryBlocks) {
        const inUse = slices.resize(limits);
        if (inUse !== null) return stays({ reason: 'InProgress', message: inUse });
        ledger.state = resized.state;
        await ledger.save();
      } else {
        ledger.state = resized.state;
        await ledger.save();
        slices.resize(limits);
      }
      log.info({ allocation: id, owner, before, after }, 'a running container was resized');
    }
    this.#tell(this.#told, id, owner, after);
  }

  #tell(told: Map<string, ResizeStatus>, key: string, owner: ContainerRef, status: ResizeStatus): void {
    const before = told.get(key);
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(status)) return;
    told.set(key, status);
    this.#options.notices.resized(owner, status);
  }
}
