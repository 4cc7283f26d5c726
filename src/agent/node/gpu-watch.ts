import { type Allocator, ledgerNode } from '../allocator/index.js';
import type { Notices } from '../allocator/ports.js';
import { holdings } from '../../gpu/ledger/holding.js';
import type { HealthMonitor, HealthNews } from '../gpus/index.js';
import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';

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
export class GpuWatch implements Part {
  readonly name = 'gpu-watch';
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
        // Instances that the agent creates come and go with claims.
        log[(news.inventory.partitionable ?? []).length > 0 ? 'info' : 'warn'](
          { gpus: news.inventory.gpus.map((gpu) => gpu.uuid) },
          'the GPUs of this node changed',
        );
        break;
    }
    this.#renew();
  }

  #renew(): void {
    const { health, allocator, notices, foreignProcessCounts, log } = this.#options;
    const node = ledgerNode(health.inventory, allocator.state.node, health.unusable(), foreignProcessCounts());
    allocator
      .setNode(node)
      .then(() => notices.renumbered(node.gpus.map(({ gpu }) => gpu)))
      .catch((error: unknown) => log.error({ err: error }, 'the changed GPU inventory could not be applied'));
  }

  #holders(gpuUuid: string) {
    return holdings(this.#options.allocator.state)
      .filter(({ parts }) => parts.some((part) => part.gpuUuid === gpuUuid))
      .flatMap(({ owners }) => owners);
  }
}
