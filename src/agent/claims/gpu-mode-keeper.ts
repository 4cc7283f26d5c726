import { deviceName } from '../../gpu/claims/names.js';
import { configuredMode } from '../../gpu/ledger/gpu-mode.js';
import { handOver, heldByBoth } from '../../gpu/ledger/hand-over.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { Allocator } from '../allocator/index.js';
import type { ClaimReader } from './claim-reader.js';

/** The scheduler may still act on a slice for this long after the slice changed. */
const WITHDRAWN_MS = 60_000;

/** Moves GPUs between the device plugin and claims to their configured mode as soon as no container holds them. */
export class GpuModeKeeper {
  readonly #allocator: Allocator;
  readonly #reader: ClaimReader;
  readonly #pool: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #changed: () => void;
  readonly #startedAt: number;
  #contested = '';

  constructor(allocator: Allocator, reader: ClaimReader, pool: string, clock: Clock, log: Log, changed: () => void) {
    this.#allocator = allocator;
    this.#reader = reader;
    this.#pool = pool;
    this.#clock = clock;
    this.#log = log;
    this.#changed = changed;
    this.#startedAt = clock.now();
  }

  async turn(): Promise<void> {
    const freeOfClaims = await this.#freeOfClaims();
    const { ledger } = this.#allocator;
    await ledger.run(async () => {
      const before = ledger.state;
      const after = handOver(before, { freeOfClaims });
      const contested = heldByBoth(after).join(', ');
      if (contested !== '' && contested !== this.#contested)
        this.#log.error(
          { gpus: contested },
          'pods of the device plugin and pods with claims hold these GPUs at once; no new pod gets them',
        );
      this.#contested = contested;
      if (after === before) return;
      ledger.state = after;
      await ledger.save();
      for (const [uuid, mode] of after.modes)
        if (before.modes.get(uuid) !== mode)
          this.#log.info({ gpu: uuid, mode }, 'the allocation mode of a GPU changed');
      this.#allocator.devicesChanged();
      this.#changed();
    });
  }

  /**
   * GPUs that the scheduler can no longer allocate to a claim. Asks the API server only if a GPU is to return to the
   * device plugin.
   */
  async #freeOfClaims(): Promise<ReadonlySet<string> | null> {
    const { state } = this.#allocator;
    const leaving = state.node.gpus.filter(
      ({ gpu }) => configuredMode(state.claimGpus, gpu.uuid) === 'plugin' && state.modes.get(gpu.uuid) !== 'plugin',
    );
    // The configuration changes only with a restart, so a GPU that leaves has not been offered since the start.
    if (leaving.length === 0 || this.#clock.now() - this.#startedAt < WITHDRAWN_MS) return null;
    const allocated = await this.#reader.allocatedDevices(this.#pool);
    if (allocated === null) return null;
    return new Set(leaving.map(({ gpu }) => gpu.uuid).filter((uuid) => !allocated.has(deviceName(uuid))));
  }
}
