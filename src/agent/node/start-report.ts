import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import type { Allocator } from '../allocator/index.js';
import type { NodeKube } from '../api-server/index.js';
import type { HealthMonitor } from '../gpus/index.js';
import { NodeReport } from './node-report.js';

export interface ReportOptions {
  readonly config: { readonly nodeLabels: ReadonlyMap<string, string>; readonly allowResize: boolean };
  readonly apiServer: NodeKube;
  readonly allocator: Allocator;
  readonly health: HealthMonitor;
  readonly clock: Clock;
}

/** Reports the node's GPUs to the cluster, and repeats reports that an earlier run of the agent may have lost. */
export function buildReport({ config, apiServer, allocator, health, clock }: ReportOptions): Part {
  const { labels, notices } = apiServer;
  const nodeReport = new NodeReport({
    allocator,
    health,
    labels,
    wantedLabels: config.nodeLabels,
    allowsResize: config.allowResize,
    clock,
  });
  return {
    name: 'node-report',
    async start() {
      for (const allocation of allocator.state.allocations.values()) {
        if (allocation.phase !== 'started') continue;
        for (const owner of allocation.owners) notices.started(allocation, owner, allocator.gpusOf(allocation));
      }
      await nodeReport.start();
    },
    stop: () => nodeReport.stop(),
  };
}
