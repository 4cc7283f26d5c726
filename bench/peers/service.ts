import { runNeighbours, type Served } from '../sim/neighbours.js';
import { PeerMachine } from './container.js';
import { HamiMonitor } from './hami-monitor.js';
import type { Library, Limits } from './library.js';

const MEMORY_MIB = 8192;

/** How other projects let a service and a batch share a GPU, each as its documents say. */
interface PeerSharing {
  readonly library: Library;
  readonly service: Partial<Limits>;
  readonly batch: Partial<Limits>;
  readonly hasMonitor: boolean;
}

export const PEER_SHARINGS = {
  'HAMi-core with priority': {
    library: 'HAMi-core',
    service: { priority: 'high' },
    batch: { priority: 'low' },
    hasMonitor: true,
  },
  'vgpu-manager, hard halves': { library: 'vgpu-manager', service: {}, batch: {}, hasMonitor: false },
  'vgpu-manager, balance': {
    library: 'vgpu-manager',
    service: { softLimit: 100 },
    batch: { softLimit: 100 },
    hasMonitor: false,
  },
} as const satisfies Record<string, PeerSharing>;

/** A service beside a batch behind the library of another project, on a machine of their own. */
export async function servePeers(
  peers: string,
  { library, service, batch, hasMonitor }: PeerSharing,
  work: { readonly pattern: string; readonly kernelMs: number; readonly share: number },
  seconds: number,
): Promise<Served> {
  const machine = await PeerMachine.open(peers);
  const limits = { share: work.share, memoryMib: MEMORY_MIB };
  const served = await machine.container(library, { ...limits, ...service });
  const batched = await machine.container(library, { ...limits, ...batch });
  const monitor = hasMonitor ? new HamiMonitor([served.sharedRegion, batched.sharedRegion]) : null;
  try {
    return await runNeighbours(
      {
        status: () => machine.status(),
        service: (args) => served.startProgram('tenant', ...args),
        batch: (args) => batched.startProgram('tenant', ...args),
      },
      work,
      seconds,
    );
  } finally {
    monitor?.stop();
    await machine.close();
  }
}
