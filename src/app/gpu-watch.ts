import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Allocator } from '../allocator/allocator.js';
import type { Notices } from '../allocator/ports.js';
import { DeviceIds } from '../core/device-id.js';
import { parseHealthPolicy, type HealthPolicy } from '../core/health-policy.js';
import type { LedgerNode } from '../core/ledger/state.js';
import type { Inventory } from '../driver/driver.js';
import type { HealthMonitor, HealthNews } from '../driver/health-monitor.js';
import type { Log } from '../host/log.js';
import { StartupError } from './startup-error.js';

const SHIPPED_POLICY = fileURLToPath(new URL('../../../etc/xid-classes.json', import.meta.url));

/** Classes of errors and what follows from them; the shipped file unless another is named. */
export async function readHealthPolicy(path: string | null): Promise<HealthPolicy> {
  const file = path ?? SHIPPED_POLICY;
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new StartupError(`--health-config: ${file}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  }
  const parsed = parseHealthPolicy(text);
  if (!parsed.ok) throw new StartupError(`--health-config: ${file}: ${parsed.reason}`);
  return parsed.policy;
}

/** The node as the ledger sees it. GPUs of `unusable` (by UUID) are kept, but nothing new is placed on them. */
export function ledgerNode(inventory: Inventory, shareMode: boolean, unusable: ReadonlyMap<string, string> = new Map()): LedgerNode {
  return {
    gpus: inventory.gpus.map((gpu) => ({ gpu, usable: !unusable.has(gpu.uuid), processCount: 0 })),
    topology: inventory.topology,
    ids: new DeviceIds(inventory.gpus),
    shareMode,
  };
}

/** Carries the health of the cards to the ledger, and so to the kubelet, and to the owners of pods on a card that failed. */
export class GpuWatch {
  readonly #health: HealthMonitor;
  readonly #allocator: Allocator;
  readonly #notices: Notices;
  readonly #log: Log;
  #unsubscribe: () => void = () => undefined;

  constructor(health: HealthMonitor, allocator: Allocator, notices: Notices, log: Log) {
    this.#health = health;
    this.#allocator = allocator;
    this.#notices = notices;
    this.#log = log;
  }

  async start(): Promise<void> {
    for (const note of this.#health.inventory.notes) this.#log.warn({ note }, 'about the GPUs of this node');
    this.#unsubscribe = this.#health.subscribe((news) => this.#hear(news));
    this.#health.start();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#health.stop();
  }

  #hear(news: HealthNews): void {
    switch (news.kind) {
      case 'remark':
        this.#log.warn({ gpu: news.uuid, remark: news.text }, 'the driver reports an error that says nothing against the card');
        return;
      case 'health':
        this.#log.warn({ gpu: news.uuid, from: news.before.status, to: news.after.status, reason: news.after.reason }, 'health of a GPU');
        if (news.after.reason !== null) this.#notices.gpuUnhealthy(this.#holders(news.uuid), news.uuid, news.after.reason);
        break;
      case 'driver':
        this.#log.warn({ outage: news.outage }, news.outage === null ? 'the GPU driver answers again' : 'the GPU driver does not answer');
        break;
      case 'inventory':
        this.#log.warn({ gpus: news.inventory.gpus.map((gpu) => gpu.uuid) }, 'the GPUs of this node changed');
        break;
    }
    const node = ledgerNode(this.#health.inventory, this.#allocator.state.node.shareMode, this.#health.unusable());
    this.#allocator.setNode(node).catch((error: unknown) => this.#log.error({ err: error }, 'the GPUs could not be taken over'));
  }

  #holders(gpuUuid: string) {
    const allocations = [...this.#allocator.state.allocations.values()];
    return allocations.filter((allocation) => allocation.parts.some((part) => part.gpuUuid === gpuUuid)).flatMap((allocation) => allocation.owners);
  }
}
