import { access, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Driver } from './gpus/driver.js';
import { DummyDriver } from './gpus/dummy/dummy-driver.js';
import { LIBRARY_PATHS } from './gpus/nvidia/library.js';
import { NvidiaDriver } from './gpus/nvidia/nvidia-driver.js';
import { parseSimNode, type SimNode } from './gpus/sim/node.js';
import { simLibraryDriver } from './gpus/sim/library-driver.js';
import { SimDriver } from './gpus/sim/sim-driver.js';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { NODE_ARCHITECTURE } from './libraries/architecture.js';
import { openHostRoot } from './libraries/host-root.js';
import { findHostLibrary } from './libraries/inventory.js';
import type { AgentConfig } from './config.js';
import { StartupError } from '../host/startup-error.js';

/** Path of the simulated libnvidia-ml in `--native-path`, where `make -C native` creates it. */
const SIM_LIBRARY = 'sim/libnvidia-ml.so.1';

/** Opens the driver that `--driver` names. */
export async function openDriver(config: AgentConfig, clock: Clock, log: Log): Promise<Driver> {
  const migInstances = config.migStrategy !== 'none';
  switch (config.driver) {
    case 'dummy':
      return new DummyDriver();
    case 'sim':
      return config.simStatePath === null
        ? new SimDriver(simNode(await descriptionText(config.simNodePath), config.simNodePath), clock, migInstances)
        : simMachine(config, config.simStatePath, clock, log);
    case 'nvidia':
      return new NvidiaDriver({
        clock,
        migInstances,
        libraryPaths: await nvmlPaths(config),
        report: (note) => log.warn({ note }, 'NVIDIA driver note'),
      });
  }
}

/** Paths of NVML: an image without a driver uses the host's, wherever that is mounted. */
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

/** Opens the GPUs of the simulated driver libraries, which programs can use as well. */
async function simMachine(config: AgentConfig, statePath: string, clock: Clock, log: Log): Promise<Driver> {
  const text = await descriptionText(config.simNodePath);
  simNode(text, config.simNodePath);
  if (!text.trimStart().startsWith('{')) {
    throw new StartupError(
      `--sim-node: ${config.simNodePath ?? ''}: the libraries of a simulated machine read the JSON form; "gpu-manager topology FILE --as-node" prints it`,
    );
  }
  const libraryPath = config.nvmlPath ?? join(config.nativePath, SIM_LIBRARY);
  try {
    await access(libraryPath);
  } catch (error) {
    throw new StartupError(
      `--sim-state: ${libraryPath}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`,
    );
  }
  await mkdir(statePath, { recursive: true });
  return simLibraryDriver({
    libraryPath,
    nodePath: config.simNodePath,
    statePath,
    migInstances: config.migStrategy !== 'none',
    clock,
    report: (note) => log.warn({ note }, 'simulated driver note'),
  });
}

const ONE_GPU = '{"gpus":[{}]}';

/** Text of the description of the simulated GPUs; throws a StartupError if it cannot be read. */
async function descriptionText(path: string | null): Promise<string> {
  if (path === null) return ONE_GPU;
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new StartupError(`--sim-node: ${path}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  }
}

/** The simulated GPUs; throws a StartupError if their description is invalid. */
function simNode(text: string, path: string | null): SimNode {
  const parsed = parseSimNode(text);
  if (!parsed.ok) throw new StartupError(`--sim-node: ${path ?? 'built-in'}: ${parsed.reason}`);
  return parsed.node;
}
