import { join } from 'node:path';
import { CONTAINER_LIBRARY_DIRECTORY, type BindMount } from '../../gpu/container-edits.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { NODE_ARCHITECTURE } from './architecture.js';
import { openHostRoot } from './host-root.js';
import { defaultPathMounts } from './interposition.js';
import type { HostFile } from './inventory.js';
import { LibraryMirrors } from './library-mirrors.js';
import type { ControlLibrary } from './mirror-plan.js';
import { describeControlLibrary, describeOwnFile } from './own-files.js';
import { parseVolumeConfig, SHARED_VOLUME, type VolumeDescription } from './volume-config.js';
import { closedAtStop, type Part } from '../../host/lifecycle.js';
import { StartupError } from '../../host/startup-error.js';
import { readStateFile } from '../../host/state-file.js';

const CONTROL_LIBRARIES = ['libcuda-control.so', 'libnvml-control.so'];
/** Name of the CUDA control library in a mirror. */
const CUDA_LIBRARY = 'libcuda.so.1';
const CLIENT = 'gpu-client';
const PART_NAME = 'library-mirrors';

/** The flags of the agent that concern the driver's libraries. */
export interface LibrariesConfig {
  /** Description of the mirrors; null: nothing is mirrored. */
  readonly volumeConfigPath: string | null;
  /** Mount point of the host's file system, or of its /usr. */
  readonly hostRoot: string;
  /** Directory of the control libraries and gpu-client. */
  readonly nativePath: string;
}

export interface LibrariesNeeds {
  readonly config: LibrariesConfig;
  readonly clock: Clock;
  readonly log: Log;
}

/** The driver's libraries for containers of this node. */
export interface NodeLibraries {
  readonly mounts: (limited: boolean) => readonly BindMount[];
  /** Paths of the CUDA control library in every version of the mirror that a container may have mounted. */
  readonly controlLibraries: () => readonly string[];
  /** Keeps the mirrors up to date; does nothing if nothing is mirrored. */
  readonly part: Part;
}

/**
 * Prepares the mirrors that volume.conf describes; rejects with a StartupError when the configuration does not allow
 * them.
 */
export async function openLibraries({ config, clock, log }: LibrariesNeeds): Promise<NodeLibraries> {
  if (config.volumeConfigPath === null)
    return { mounts: () => [], controlLibraries: () => [], part: closedAtStop(PART_NAME, () => undefined) };
  const volumes = await readVolumes(config.volumeConfigPath);
  const { controls, ownFiles } = await readOwnFiles(
    config.nativePath,
    volumes.some((volume) => volume.name === SHARED_VOLUME),
  );
  const hostRoot = await openHostRoot(config.hostRoot).catch((error: Error) => {
    throw new StartupError(`--host-root: ${error.message}`);
  });
  const mirrors = new LibraryMirrors({
    volumes,
    hostRoot,
    architecture: NODE_ARCHITECTURE,
    controls,
    ownFiles,
    log,
    clock,
  });
  return {
    mounts(limited) {
      const shared = mirrors.directory('shared');
      // The control library enforces nothing without limits: whole GPUs use it if there is no mirror of the original
      // libraries.
      const directory = limited ? shared : (mirrors.directory('origin') ?? shared);
      if (directory === null) return [];
      return [
        { hostPath: directory, containerPath: CONTAINER_LIBRARY_DIRECTORY, writable: false },
        ...defaultPathMounts(directory, directory === shared, NODE_ARCHITECTURE),
      ];
    },
    controlLibraries: () => mirrors.controlLibraries(CUDA_LIBRARY),
    part: {
      name: PART_NAME,
      async start() {
        const result = await mirrors.start();
        if (result.ok) return;
        await mirrors.stop();
        throw new StartupError(`--volume-config: ${result.reason}`);
      },
      stop: () => mirrors.stop(),
    },
  };
}

async function readVolumes(path: string): Promise<readonly VolumeDescription[]> {
  const text = await readStateFile(path).catch((error: Error) => {
    throw new StartupError(`--volume-config: ${error.message}`);
  });
  const parsed = parseVolumeConfig(text);
  if (!parsed.ok) throw new StartupError(`--volume-config: ${path}: ${parsed.reason}`);
  return parsed.volumes;
}

/** This project's native files; only a mirror with control libraries needs them. */
async function readOwnFiles(
  directory: string,
  needed: boolean,
): Promise<{ controls: ControlLibrary[]; ownFiles: Map<string, HostFile> }> {
  const ownFiles = new Map<string, HostFile>();
  if (!needed) return { controls: [], ownFiles };
  try {
    const controls = await Promise.all(CONTROL_LIBRARIES.map((name) => describeControlLibrary(join(directory, name))));
    for (const control of controls) ownFiles.set(control.fileName, control);
    ownFiles.set(CLIENT, await describeOwnFile(join(directory, CLIENT)));
    return { controls, ownFiles };
  } catch (error) {
    throw new StartupError(`--native-path: ${(error as Error).message}`);
  }
}
