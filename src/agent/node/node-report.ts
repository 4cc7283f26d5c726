import type { Allocator } from '../allocator/index.js';
import { COMPUTE_LABEL, NODE_INVENTORY_KEY } from '../../gpu/annotations.js';
import { isOffered } from '../../gpu/ledger/gpu-mode.js';
import type { Gpu } from '../../gpu/gpu.js';
import { isSharedOtherwise, pluginSlots, type LedgerState } from '../../gpu/ledger/state.js';
import { THROUGH_CLAIMS, encodeInventory, type InventoryGpu } from '../../gpu/node-inventory.js';
import { nodeLabels, type HealthMonitor } from '../gpus/index.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import type { NodeLabels } from '../api-server/index.js';

export interface NodeReportOptions {
  readonly allocator: Allocator;
  readonly health: HealthMonitor;
  readonly labels: NodeLabels;
  /** Labels that the operator configured; labels that describe the GPUs get the GPUs' values instead. */
  readonly wantedLabels: ReadonlyMap<string, string>;
  /** Whether running containers may get more than they request. */
  readonly allowsResize: boolean;
  readonly clock: Clock;
}

/** The extender decides with this information: the period is short enough for fresh decisions. */
const PERIOD_MS = 2_000;

/**
 * Less free room waits this long for its write. Each write of a node makes kube-scheduler try every pending GPU pod
 * again, and the extender knows of the pods that took the room from the API server.
 */
const LESS_ROOM_AFTER_MS = 60_000;

export interface WrittenInventory {
  readonly text: string;
  readonly gpus: readonly InventoryGpu[];
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Whether the next inventory differs from the written one only in less free room, and the written one is recent. */
export function mayWait(written: WrittenInventory, next: WrittenInventory): boolean {
  if (next.text === written.text || next.at - written.at >= LESS_ROOM_AFTER_MS) return false;
  const same = ({ gpu, healthy, reason }: InventoryGpu): string => JSON.stringify([gpu, healthy, reason]);
  return (
    written.gpus.length === next.gpus.length &&
    written.gpus.every((before, at) => {
      const after = next.gpus[at] as InventoryGpu;
      return (
        same(before) === same(after) &&
        (before.foreign || !after.foreign) &&
        before.freeCores >= after.freeCores &&
        before.freeMemoryBytes >= after.freeMemoryBytes
      );
    })
  );
}

/** Why the device plugin does not offer a GPU to new containers; empty if it does. */
function notOffered(state: LedgerState, gpu: Gpu): string {
  if (!isOffered(state, gpu.uuid, 'plugin')) return THROUGH_CLAIMS;
  if (!isSharedOtherwise(state, gpu)) return '';
  return `containers still share its ${gpu.compute === 'sm' ? 'time' : 'multiprocessors'}; it gets new ones when they have ended`;
}

/** Updates the node's labels and the inventory annotation for the scheduler extender when GPUs or ledger change. */
export class NodeReport {
  readonly #options: NodeReportOptions;
  #told: { readonly state: LedgerState; readonly reasons: string } | null = null;
  #written: WrittenInventory | null = null;
  #isBehind = false;
  #cancel: () => void = () => undefined;

  constructor(options: NodeReportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#cancel = this.#options.clock.every(PERIOD_MS, () => this.#look());
    this.#look();
  }

  async stop(): Promise<void> {
    this.#cancel();
  }

  #look(): void {
    const { allocator, health, labels, wantedLabels, allowsResize, clock } = this.#options;
    const { state } = allocator;
    const unusable = health.unusable();
    const reasons = JSON.stringify([...unusable]);
    if (this.#told?.state === state && this.#told.reasons === reasons && !this.#isBehind) return;
    if (this.#told?.state.node !== state.node) {
      const { gpus, driverVersion, cudaVersion } = health.inventory;
      labels.label(
        new Map<string, string | null>([
          // Removed from a node that had it.
          [COMPUTE_LABEL, null],
          ...wantedLabels,
          ...nodeLabels({
            models: gpus.map((gpu) => gpu.model),
            driverVersion,
            cudaVersion,
            smGpus: gpus.filter(({ compute }) => compute === 'sm').length,
          }),
        ]),
      );
    }
    this.#told = { state, reasons };
    const { suspendFactor = 1 } = state.node;
    const offered = suspendFactor > 1 ? pluginSlots(state, undefined, true) : [];
    const gpus = pluginSlots(state).map(({ gpu, usable, freeCores, freeMemoryBytes, processCount }, at) => ({
      gpu,
      healthy: usable,
      reason: unusable.get(gpu.uuid) ?? notOffered(state, gpu),
      foreign: processCount > 0 && freeCores === CORES_PER_GPU,
      freeCores,
      freeMemoryBytes,
      offered: offered[at] && {
        freeCores: offered[at].freeCores,
        freeMemoryBytes: offered[at].freeMemoryBytes,
      },
    }));
    const text = encodeInventory({
      topology: state.node.topology,
      gpus,
      allowsResize,
      suspendFactor: suspendFactor > 1 ? suspendFactor : undefined,
    });
    const next = { text, gpus, at: clock.now() };
    this.#isBehind = this.#written !== null && mayWait(this.#written, next);
    if (this.#written?.text === text || this.#isBehind) return;
    this.#written = next;
    labels.annotate(new Map([[NODE_INVENTORY_KEY, text]]));
  }
}
