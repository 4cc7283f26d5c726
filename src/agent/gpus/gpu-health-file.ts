import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  decodeHistory,
  encodeHistory,
  freshRecord,
  restoredHealth,
  withChange,
  type GpuLife,
  type HealthChange,
  type HealthRecord,
} from './health-history.js';
import { afterUnknown, type GpuHealth } from './health.js';
import type { Driver, Inventory } from './driver.js';
import type { HealthMonitor } from './health-monitor.js';
import type { HealthPolicy } from './health-policy.js';
import { writeFileAtomically } from '../../host/atomic-file.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { readStateFile } from '../../host/state-file.js';

/** File name below `--checkpoint-path`. */
const HEALTH_FILE = 'gpu-health.json';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** A failed write is retried after this long. */
const RETRY_MS = 10_000;

export interface HealthFileOptions {
  /** `--checkpoint-path`. */
  readonly directory: string;
  readonly driver: Pick<Driver, 'energyMillijoules'>;
  readonly inventory: Inventory;
  readonly policy: HealthPolicy;
  readonly clock: Clock;
  readonly log: Log;
  /** File in which the kernel shows the boot id. */
  readonly bootIdPath?: string;
}

/**
 * The health history of this node's GPUs on disk: no entry is lost when the agent restarts, even after a signal. A
 * reset of the GPU, another driver or a boot ends an error, as it repairs its cause.
 */
export class GpuHealthFile {
  readonly #options: HealthFileOptions;
  readonly #path: string;
  readonly #bootId: string | null;
  readonly #records: Map<string, HealthRecord>;
  /** For the health monitor: the restored health of the inventory's GPUs. */
  readonly restored: ReadonlyMap<string, GpuHealth>;
  #writing: Promise<void> = Promise.resolve();
  #cancelRetry: () => void = () => undefined;

  private constructor(
    options: HealthFileOptions,
    bootId: string | null,
    records: Map<string, HealthRecord>,
    restored: ReadonlyMap<string, GpuHealth>,
  ) {
    this.#options = options;
    this.#path = join(options.directory, HEALTH_FILE);
    this.#bootId = bootId;
    this.#records = records;
    this.restored = restored;
  }

  /** Reads the file. Without a file all GPUs are healthy; with an unreadable one all are on probation. */
  static async open(options: HealthFileOptions): Promise<GpuHealthFile> {
    const { directory, inventory, policy, clock, log, driver } = options;
    const bootId = (await readFile(options.bootIdPath ?? BOOT_ID, 'utf8').catch(() => '')).trim() || null;
    const now = clock.now();
    const records = new Map<string, HealthRecord>();
    const restored = new Map<string, GpuHealth>();
    const read = await readRecords(join(directory, HEALTH_FILE));
    if (!read.ok) {
      log.error(
        { file: join(directory, HEALTH_FILE), reason: read.reason },
        'the health of the GPUs cannot be read: all GPUs start on probation',
      );
      for (const { uuid } of inventory.gpus)
        restored.set(uuid, afterUnknown('its health history cannot be read', now, policy));
    } else {
      for (const record of read.records) {
        const isHere = inventory.gpus.some(({ uuid }) => uuid === record.uuid);
        // A GPU that is absent may return in the same state, but not after a boot.
        if (!isHere && record.life.bootId === bootId) records.set(record.uuid, record);
        if (!isHere) continue;
        const life = await lifeOf(record.uuid, bootId, inventory, driver);
        const health = restoredHealth(record, life, now, policy);
        records.set(record.uuid, health === record.health ? record : withChange(record, health, life, now));
        restored.set(record.uuid, health);
        if (health.status !== 'healthy')
          log.warn(
            { gpu: record.uuid, status: health.status, reason: health.reason, sinceMs: health.sinceMs },
            'GPU health restored from before the start of the agent',
          );
      }
    }
    return new GpuHealthFile(options, bootId, records, restored);
  }

  /** The latest changes of a GPU's health, the oldest first. */
  changes(uuid: string): readonly HealthChange[] {
    return this.#records.get(uuid)?.changes ?? [];
  }

  /** Records every change from now on; the returned function ends this. */
  follow(monitor: HealthMonitor): () => void {
    return monitor.subscribe((news) => {
      if (news.kind === 'health') this.#save(() => this.#note(news.uuid, news.after, monitor.inventory));
    });
  }

  /** Resolves when every recorded change is on disk, or could not be written. */
  async settle(): Promise<void> {
    await this.#writing;
    this.#cancelRetry();
  }

  async #note(uuid: string, health: GpuHealth, inventory: Inventory): Promise<void> {
    const now = this.#options.clock.now();
    const life = await lifeOf(uuid, this.#bootId, inventory, this.#options.driver);
    const known = this.#records.get(uuid) ?? freshRecord(uuid, life, now);
    // A GPU that does not answer keeps its last known energy.
    const energyMillijoules = life.energyMillijoules ?? known.life.energyMillijoules;
    this.#records.set(uuid, withChange(known, health, { ...life, energyMillijoules }, now));
  }

  #save(change: () => Promise<void>): void {
    const { clock, log } = this.#options;
    this.#writing = this.#writing.then(async () => {
      await change();
      try {
        await writeFileAtomically(this.#path, encodeHistory([...this.#records.values()]));
        this.#cancelRetry();
      } catch (error) {
        log.error({ err: error, file: this.#path }, 'the health of the GPUs could not be saved; retrying');
        this.#cancelRetry();
        this.#cancelRetry = clock.after(RETRY_MS, () => this.#save(async () => undefined));
      }
    });
  }
}

async function readRecords(path: string): Promise<ReturnType<typeof decodeHistory>> {
  try {
    return decodeHistory(await readStateFile(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? { ok: true, records: [] } : { ok: false, reason: code ?? message };
  }
}

async function lifeOf(
  uuid: string,
  bootId: string | null,
  inventory: Inventory,
  driver: Pick<Driver, 'energyMillijoules'>,
): Promise<GpuLife> {
  // A lost GPU has no answer.
  const energyMillijoules = await driver.energyMillijoules(uuid).catch(() => null);
  return { bootId, driverVersion: inventory.driverVersion, energyMillijoules };
}
