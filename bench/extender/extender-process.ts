import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { NO_LIMITS } from '../../src/cluster/eviction-limits.js';
import { Extender } from '../../src/scheduler/extender.js';
import { seededRandom } from '../openb/random.js';
import type { Command, Reply } from './extender-child.js';
import { largeCluster, type LargeCluster } from './large-cluster.js';

/** A process with an extender and its cluster, told by messages what to do; each is answered with one reply. */
let running: { readonly extender: Extender; readonly cluster: LargeCluster } | null = null;

async function follow(command: Command): Promise<Partial<Reply>> {
  switch (command.do) {
    case 'start': {
      const { seed, nodes, pods, gpuPods } = command.of;
      const cluster = largeCluster(seededRandom(seed), nodes, pods, gpuPods);
      const extender = new Extender(
        {
          address: '127.0.0.1',
          port: 0,
          tls: null,
          policy: 'fragmentation',
          version: 'bench',
          reservationTtlMs: 30_000,
          settleTimeoutMs: 500,
          startDelayMs: 0,
          offer: 'all',
        },
        { source: cluster, limits: NO_LIMITS, writer: cluster, clock: systemClock, log: silentLog(), election: null },
      );
      running = { extender, cluster };
      const started = performance.now();
      await extender.start();
      return { port: extender.port, listedMs: performance.now() - started };
    }
    case 'create':
      running?.cluster.create(command.pod);
      return {};
    case 'delete':
      running?.cluster.delete(command.uid);
      return {};
    case 'stop':
      await running?.extender.stop();
      running = null;
      return {};
    case 'nothing':
      return {};
  }
}

process.on('message', (command: Command) => {
  void follow(command).then((more) => {
    const { user, system } = process.cpuUsage();
    const reply: Reply = {
      port: 0,
      listedMs: 0,
      ...more,
      cpuMs: (user + system) / 1_000,
      rss: process.memoryUsage.rss(),
    };
    process.send?.(reply);
  });
});
process.once('disconnect', () => process.exit());
