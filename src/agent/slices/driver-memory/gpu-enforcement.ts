import { StartupError } from '../../../host/startup-error.js';
import { DriverError, driverBranch, type GroupLimiter, type Inventory } from '../../gpus/index.js';
import type { ControlGroups } from '../../runtimes/index.js';

/** `--memory-enforcement`: `auto`: the driver where it can; `library`: never; `driver`: on every GPU. */
export type MemoryEnforcement = 'auto' | 'library' | 'driver';
export const MEMORY_ENFORCEMENTS: readonly MemoryEnforcement[] = ['auto', 'library', 'driver'];

/** What enforces memory limits on a GPU beside the control library, and why the driver does not. */
export type MemoryEnforcer =
  /** `dmem`: through the kernel's controller; `misc`: in the driver alone. */
  | { readonly by: 'driver'; readonly backend: 'dmem' | 'misc' }
  /**
   * Reason null: this driver has no memory limits, as those before 615. `mayHaveLimits`: groups may still have limits
   * from a time when the driver enforced them.
   */
  | { readonly by: 'library'; readonly reason: string | null; readonly mayHaveLimits?: true };

/** The first branch of NVIDIA's driver with memory limits of control groups. */
const FIRST_BRANCH = 615;

/** Of a driver without memory limits. */
export const NOT_IN_DRIVER: MemoryEnforcer = { by: 'library', reason: null };

export interface GpuEnforcementOptions {
  readonly enforcement: MemoryEnforcement;
  /** Null if no driver of this kind keeps memory limits. */
  readonly limiter: GroupLimiter | null;
  readonly inventory: () => Inventory;
  readonly groups: ControlGroups;
}

/** Finds out for each GPU of this node what enforces memory limits. */
export class GpuEnforcement {
  readonly #options: GpuEnforcementOptions;
  readonly #found = new Map<string, MemoryEnforcer>();
  #inventory: Inventory | null = null;
  /** Whether every GPU answered at the last examination. */
  #isComplete = false;

  constructor(options: GpuEnforcementOptions) {
    this.#options = options;
  }

  /** As last examined; the library for a GPU that was not. */
  of(gpuUuid: string): MemoryEnforcer {
    return this.#found.get(gpuUuid) ?? NOT_IN_DRIVER;
  }

  /** Whether the driver enforces limits on any GPU. */
  get uses(): boolean {
    return [...this.#found.values()].some(({ by }) => by === 'driver');
  }

  /** Whether this driver may have limits from an earlier run of the agent, whatever the flag says now. */
  get hasLimits(): boolean {
    const { limiter, inventory, groups } = this.#options;
    return limiter !== null && driverBranch(inventory()) >= FIRST_BRANCH && groups.problem === null;
  }

  /**
   * Examines the GPUs if the inventory has changed since the last time, because a new driver may have been loaded, or
   * if one of them did not answer. Returns the GPUs whose enforcer is another one now.
   */
  async examine(): Promise<ReadonlyMap<string, MemoryEnforcer>> {
    const inventory = this.#options.inventory();
    if (inventory === this.#inventory && this.#isComplete) return new Map();
    this.#isComplete = true;
    const found = await Promise.all(
      inventory.gpus.map(
        async (gpu) => [gpu.uuid, await this.#enforcerOf(gpu.uuid, gpu.instance !== undefined)] as const,
      ),
    );
    const news = found.filter(([uuid, enforcer]) => JSON.stringify(this.of(uuid)) !== JSON.stringify(enforcer));
    this.#found.clear();
    for (const [uuid, enforcer] of found) this.#found.set(uuid, enforcer);
    this.#inventory = inventory;
    return new Map(news);
  }

  /** Throws a StartupError for `--memory-enforcement=driver` on a node where the driver cannot. */
  require(): void {
    if (this.#options.enforcement !== 'driver') return;
    for (const { index, uuid } of this.#options.inventory().gpus) {
      const enforcer = this.of(uuid);
      if (enforcer.by === 'library')
        throw new StartupError(
          `--memory-enforcement=driver: GPU ${index}: ${enforcer.reason ?? `driver ${this.#options.inventory().driverVersion ?? 'of unknown version'} keeps no memory limits of control groups, expected ${FIRST_BRANCH} or later`}; use auto`,
        );
    }
  }

  async #enforcerOf(gpuUuid: string, isInstance: boolean): Promise<MemoryEnforcer> {
    const { enforcement, limiter, inventory, groups } = this.#options;
    if (limiter === null || driverBranch(inventory()) < FIRST_BRANCH) return NOT_IN_DRIVER;
    if (groups.problem !== null) return { by: 'library', reason: groups.problem };
    if (isInstance) return { by: 'library', reason: 'the driver keeps no memory limits on MIG instances' };
    const problem = await limiter.problem(gpuUuid, groups.root).catch((error: unknown) => {
      if (!(error instanceof DriverError)) throw error;
      this.#isComplete = false;
      return `the driver does not answer: ${error.message}`;
    });
    if (problem !== null) return { by: 'library', reason: problem };
    if (enforcement === 'library')
      return { by: 'library', reason: '--memory-enforcement=library', mayHaveLimits: true };
    return { by: 'driver', backend: groups.hasGpuMemory() ? 'dmem' : 'misc' };
  }
}
