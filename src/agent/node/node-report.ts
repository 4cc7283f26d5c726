import type { Allocator } from '../allocator/index.js';
import { NODE_INVENTORY_KEY } from '../../gpu/annotations.js';
import { isOffered } from '../../gpu/ledger/gpu-mode.js';
import { pluginSlots, type LedgerState } from '../../gpu/ledger/state.js';
import { encodeInventory } from '../../gpu/node-inventory.js';
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
  readonly clock: Clock;
}

/**
 * The extender decides with this information: the period is short enough for fresh decisions, and groups a burst of
 * pods into one write.
 */
const PERIOD_MS = 2_000;

/** Reason for the extender why pods of the device plugin cannot use a GPU. */
const GIVEN_THROUGH_CLAIMS = 'it is given through resource claims';

/** Updates the node's labels and the inventory annotation for the scheduler extender when GPUs or ledger change. */
export class NodeReport {
  readonly #options: NodeReportOptions;
  #told: { readonly state: LedgerState; readonly reasons: string } | null = null;
  #inventory = '';
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
    const { allocator, health, labels, wantedLabels } = this.#options;
    const { state } = allocator;
    const unusable = health.unusable();
    const reasons = JSON.stringify([...unusable]);
    if (this.#told?.state === state && this.#told.reasons === reasons) return;
    if (this.#told?.state.node !== state.node) {
      const { gpus, driverVersion, cudaVersion } = health.inventory;
      labels.label(
        new Map([...wantedLabels, ...nodeLabels({ models: gpus.map((gpu) => gpu.model), driverVersion, cudaVersion })]),
      );
    }
    this.#told = { state, reasons };
    const inventory = encodeInventory({
      topology: state.node.topology,
      gpus: pluginSlots(state).map(({ gpu, usable, freeCores, freeMemoryBytes, processCount }) => ({
        gpu,
        healthy: usable,
        reason: unusable.get(gpu.uuid) ?? (isOffered(state, gpu.uuid, 'plugin') ? '' : GIVEN_THROUGH_CLAIMS),
        foreign: processCount > 0 && freeCores === CORES_PER_GPU,
        freeCores,
        freeMemoryBytes,
      })),
    });
    if (inventory === this.#inventory) return;
    this.#inventory = inventory;
    labels.annotate(new Map([[NODE_INVENTORY_KEY, inventory]]));
  }
}
