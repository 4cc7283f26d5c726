import { access, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileReason } from '../../host/file-reason.js';
import type { Driver } from './driver.js';
import { DummyDriver } from './dummy/dummy-driver.js';
import { LIBRARY_PATHS } from './nvidia/library.js';
import { NvidiaDriver } from './nvidia/nvidia-driver.js';
import { parseSimNode, type SimNode } from './sim/node.js';
import { simLibraryDriver } from './sim/library-driver.js';
import { SimDriver } from './sim/sim-driver.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { MigStrategy } from '../../gpu/mig.js';
import { StartupError } from '../../host/startup-error.js';
import { readStateFile } from '../../host/state-file.js';

/** Path of the simulated libnvidia-ml in `--native-path`, where `make -C native` creates it. */
const SIM_LIBRARY = 'sim/libnvidia-ml.so.1';

/** The flags of the agent that concern the GPU driver. */
export interface DriverConfig {
  readonly driver: 'nvidia' | 'sim' | 'dummy';
  /** Description of the simulated node; null: one GPU. */
  readonly simNodePath: string | null;
  /** Folder of the simulated machine whose libraries programs use; null: GPUs that only the agent knows. */
  readonly simStatePath: string | null;
  /** Path of libnvidia-ml; null: search the usual places. */
  readonly nvmlPath: string | null;
  /** Directory of the control libraries and gpu-client. */
  readonly nativePath: string;
  /** How the agent uses GPUs that are partitioned by MIG. */
  readonly migStrategy: MigStrategy;
}

/** The libraries of the host, which may be mounted at another path. */
export interface HostLibraries {
  /** Path of the library with this soname; null: only the usual places can be searched. */
  find(soname: string): Promise<string | null>;
}

const MIG_USE = { none: 'excluded', shared: 'instances', whole: 'instances', dynamic: 'partitioned' } as const;

/** Opens the driver that `--driver` names. */
export async function openDriver(config: DriverConfig, host: HostLibraries, clock: Clock, log: Log): Promise<Driver> {
  const { migStrategy } = config;
  switch (config.driver) {
    case 'dummy':
      return new DummyDriver();
    case 'sim':
      return config.simStatePath === null
        ? new SimDriver(
            simNode(await descriptionText(config.simNodePath), config.simNodePath),
            clock,
            migStrategy !== 'none',
          )
        : simMachine(config, config.simStatePath, clock, log);
    case 'nvidia':
      return new NvidiaDriver({
        clock,
        mig: MIG_USE[migStrategy],
        libraryPaths: await nvmlPaths(config, host),
        report: (note) => log.warn({ note }, 'NVIDIA driver note'),
      });
  }
}

/** Paths of NVML: an image without a driver uses the host's, wherever that is mounted. */
async function nvmlPaths({ nvmlPath }: DriverConfig, host: HostLibraries): Promise<readonly string[]> {
  if (nvmlPath !== null) return [nvmlPath];
  const found = await host.find('libnvidia-ml.so.1');
  return found === null ? LIBRARY_PATHS : [found, ...LIBRARY_PATHS];
}

/** Opens the GPUs of the simulated driver libraries, which programs can use as well. */
async function simMachine(config: DriverConfig, statePath: string, clock: Clock, log: Log): Promise<Driver> {
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
    throw new StartupError(`--sim-state: ${libraryPath}: ${fileReason(error)}`);
  }
  await mkdir(statePath, { recursive: true });
  return simLibraryDriver({
    libraryPath,
    nodePath: config.simNodePath,
    statePath,
    mig: MIG_USE[config.migStrategy],
    clock,
    report: (note) => log.warn({ note }, 'simulated driver note'),
  });
}

const ONE_GPU = '{"gpus":[{}]}';

/** Text of the description of the simulated GPUs; throws a StartupError if it cannot be read. */
async function descriptionText(path: string | null): Promise<string> {
  if (path === null) return ONE_GPU;
  try {
    return await readStateFile(path);
  } catch (error) {
    throw new StartupError(`--sim-node: ${path}: ${fileReason(error)}`);
  }
}

/** The simulated GPUs; throws a StartupError if their description is invalid. */
function simNode(text: string, path: string | null): SimNode {
  const parsed = parseSimNode(text);
  if (!parsed.ok) throw new StartupError(`--sim-node: ${path ?? 'built-in'}: ${parsed.reason}`);
  return parsed.node;
}
