import { readFile } from 'node:fs/promises';
import type { Driver } from '../driver/driver.js';
import { DummyDriver } from '../driver/dummy/dummy-driver.js';
import { LIBRARY_PATHS } from '../driver/nvidia/library.js';
import { NvidiaDriver } from '../driver/nvidia/nvidia-driver.js';
import { parseSimNode } from '../driver/sim/node.js';
import { SimDriver } from '../driver/sim/sim-driver.js';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { NODE_ARCHITECTURE } from '../volume/architecture.js';
import { openHostRoot } from '../volume/host-root.js';
import { findHostLibrary } from '../volume/inventory.js';
import type { AgentConfig } from './agent-config.js';
import { StartupError } from './startup-error.js';

/** The driver that `--driver` names. */
export async function openDriver(config: AgentConfig, clock: Clock, log: Log): Promise<Driver> {
  switch (config.driver) {
    case 'dummy':
      return new DummyDriver();
    case 'sim':
      return simDriver(config.simNodePath);
    case 'nvidia':
      return new NvidiaDriver({
        clock,
        libraryPaths: await nvmlPaths(config),
        report: (note) => log.warn({ note }, 'about the NVIDIA driver'),
      });
  }
}

/** Where NVML may lie: in an image without a driver it is the host's, wherever that is mounted. */
async function nvmlPaths({ nvmlPath, hostRoot }: AgentConfig): Promise<readonly string[]> {
  if (nvmlPath !== null) return [nvmlPath];
  if (hostRoot === '/') return LIBRARY_PATHS;
  try {
    const found = await findHostLibrary(await openHostRoot(hostRoot), 'libnvidia-ml.so.1', NODE_ARCHITECTURE);
    return found === null ? LIBRARY_PATHS : [found, ...LIBRARY_PATHS];
  } catch (error) {
    throw new StartupError(`--host-root: ${(error as Error).message}`);
  }
}

const ONE_CARD = '{"gpus":[{}]}';

async function simDriver(path: string | null): Promise<SimDriver> {
  let text = ONE_CARD;
  if (path !== null) {
    try {
      text = await readFile(path, 'utf8');
    } catch (error) {
      throw new StartupError(`--sim-node: ${path}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
    }
  }
  const parsed = parseSimNode(text);
  if (!parsed.ok) throw new StartupError(`--sim-node: ${path ?? 'built-in'}: ${parsed.reason}`);
  return new SimDriver(parsed.node);
}
