import { readFile } from 'node:fs/promises';
import type { Allocator } from '../allocator/allocator.js';
import type { Notices } from '../allocator/ports.js';
import { DeviceIds } from '../../gpu/device-id.js';
import type { HealthPolicy } from '../gpus/health-policy.js';
import { parseHealthPolicy } from '../gpus/health-policy-file.js';
import { holdings } from '../../gpu/ledger/holding.js';
import type { LedgerNode } from '../../gpu/ledger/state.js';
import type { Inventory } from '../gpus/driver.js';
import type { HealthMonitor, HealthNews } from '../gpus/health-monitor.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { packageFile } from '../../host/package-files.js';
import { StartupError } from '../../host/startup-error.js';

const SHIPPED_POLICY = packageFile('etc/xid-classes.json');

/** Reads the classes of GPU errors and their consequences; the shipped file unless another is named. */
export async function readHealthPolicy(path: string | null): Promise<HealthPolicy> {
  const file = path ?? SHIPPED_POLICY;
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new StartupError(
      `--health-config: ${file}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`,
    );
  }
  const parsed = parseHealthPolicy(text);
  if (!parsed.ok) throw new StartupError(`--health-config: ${file}: ${parsed.reason}`);
  return parsed.policy;
}

/**
 * Builds the ledger's view of the node. GPUs of `unusable` (reasons by UUID) keep their allocations and get no new
 * ones; GPUs with foreign processes (counts by UUID) are chosen last.
 */
export function ledgerNode(
  inventory: Inventory,
  { shareMode, wholeInstances }: Pick<LedgerNode, 'shareMode' | 'wholeInstances'>,
  unusable: ReadonlyMap<string, string> = new Map(),
  foreignProcessCounts: ReadonlyMap<string, number> = new Map(),
): LedgerNode {
  return {
    gpus: inventory.gpus.map((gpu) => ({
      gpu,
      usable: !unusable.has(gpu.uuid),
      processCount: foreignProcessCounts.get(gpu.uuid) ?? 0,
    })),
    topology: inventory.topology,
    ids: new DeviceIds(inventory.gpus),
    shareMode,
    wholeInstances,
  };
}

export interface GpuWatchOptions {
  readonly health: HealthMonitor;
  readonly allocator: Allocator;
  readonly notices: Notices;
  /** Number of foreign processes on each GPU, by UUID. */
  readonly foreignProcessCounts: () => ReadonlyMap<string, number>;
  /** Interval in which the foreign processes are counted. */
  readonly periodMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Passes the state of the GPUs to the ledger, and so to the kubelet, and to the owners of pods on a failed GPU. */
export class GpuWatch {
  readonly #options: GpuWatchOptions;
  #unsubscribe: () => void = () => undefined;
  #cancel: () => void = () => undefined;

  constructor(options: GpuWatchOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { health, clock, periodMs, log } = this.#options;
    for (const note of health.inventory.notes) log.warn({ note }, 'GPU inventory note');
    this.#unsubscribe = health.subscribe((news) => this.#hear(news));
    this.#cancel = clock.every(periodMs, () => this.#countForeignProcesses());
    health.start();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#cancel();
    await this.#options.health.stop();
  }

  #countForeignProcesses(): void {
    const foreignProcessCounts = this.#options.foreignProcessCounts();
    const changed = this.#options.allocator.state.node.gpus.some(
      ({ gpu, processCount }) => processCount !== (foreignProcessCounts.get(gpu.uuid) ?? 0),
    );
    if (changed) this.#renew();
  }

  #hear(news: HealthNews): void {
    const log = this.#options.log;
    switch (news.kind) {
      case 'remark':
        log.warn(
          { gpu: news.uuid, remark: news.text },
          'the driver reported an error that does not affect the health of the GPU',
        );
        return;
      case 'health':
        log.warn(
          { gpu: news.uuid, from: news.before.status, to: news.after.status, reason: news.after.reason },
          'GPU health changed',
        );
        if (news.after.reason !== null)
          this.#options.notices.gpuUnhealthy(this.#holders(news.uuid), news.uuid, news.after.reason);
        break;
      case 'driver':
        log.warn(
          { outage: news.outage },
          news.outage === null ? 'the GPU driver answers again' : 'the GPU driver does not answer',
        );
        break;
      case 'inventory':
        log.warn({ gpus: news.inventory.gpus.map((gpu) => gpu.uuid) }, 'the GPUs of this node changed');
        break;
    }
    this.#renew();
  }

  #renew(): void {
    const { health, allocator, foreignProcessCounts, log } = this.#options;
    const node = ledgerNode(health.inventory, allocator.state.node, health.unusable(), foreignProcessCounts());
    allocator
      .setNode(node)
      .catch((error: unknown) => log.error({ err: error }, 'the changed GPU inventory could not be applied'));
  }

  #holders(gpuUuid: string) {
    return holdings(this.#options.allocator.state)
      .filter(({ parts }) => parts.some((part) => part.gpuUuid === gpuUuid))
      .flatMap(({ owners }) => owners);
  }
}
