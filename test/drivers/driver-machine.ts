import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { encodeLimits } from '../../src/abi/limits-file.js';
import { encodeUsage } from '../../src/abi/usage-file.js';
import { LIMITS_FILE, USAGE_FILE } from '../../src/abi/vgpu-abi.js';
import { openHostRoot } from '../../src/agent/libraries/host-root.js';
import { LibraryMirrors } from '../../src/agent/libraries/library-mirrors.js';
import { describeControlLibrary } from '../../src/agent/libraries/own-files.js';
import { parseVolumeConfig } from '../../src/agent/libraries/volume-config.js';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { packageFile } from '../../src/host/package-files.js';
import { HOST_LAYOUTS, type HostLayout } from './host-layouts.js';
import type { Branch } from './packages.js';

export interface Printed {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The driver's libraries as programs of the node find them, or the mirror of a slice's container. */
export type Place = 'alone' | 'in front';

/** The control libraries that read their slice's directory from the environment: this machine need not be a node. */
const CONTROLS = ['libcuda-control.so', 'libnvml-control.so'];
const TIMEOUT_MS = 60_000;

/** The reason why nothing can run on this machine; null if all can. */
export function whyNoMachine(): string | null {
  if (!existsSync(packageFile('native/build/sandbox/libcuda-control.so')))
    return 'the control library is not built (npm run native)';
  if (compiler() === undefined) return 'no C compiler is installed';
  return null;
}

const compiler = (): string | undefined =>
  ['/usr/bin/gcc', '/usr/bin/cc', '/usr/bin/clang'].find((path) => existsSync(path));

/** Where programs run on one branch: its libraries, and a mirror of a host that has them. */
export class DriverMachine {
  readonly branch: Branch;
  /** The mirror that containers with a slice mount, by the layout of the host. */
  readonly mirrors: ReadonlyMap<HostLayout, string>;
  /** The hosts of these mirrors. */
  readonly hosts: ReadonlyMap<HostLayout, string>;
  readonly #directory: string;
  readonly #probe: string;

  private constructor(
    branch: Branch,
    directory: string,
    hosts: ReadonlyMap<HostLayout, string>,
    mirrors: ReadonlyMap<HostLayout, string>,
  ) {
    this.branch = branch;
    this.#directory = directory;
    this.hosts = hosts;
    this.mirrors = mirrors;
    this.#probe = join(directory, 'probe');
    execFileSync(compiler() ?? 'cc', ['-O1', packageFile('test/drivers/probe.c'), '-ldl', '-o', this.#probe]);
    const slice = join(directory, 'slice');
    mkdirSync(join(slice, 'usage'), { recursive: true });
    const device = { uuid: `GPU-${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}`, pciBusId: '', softLimit: null };
    writeFileSync(
      join(slice, LIMITS_FILE),
      encodeLimits({ allocation: 'drivers', devices: [{ ...device, memoryBytes: 2 ** 30, share: 20 }] }),
    );
    writeFileSync(join(slice, USAGE_FILE), encodeUsage());
  }

  static async open(branch: Branch): Promise<DriverMachine> {
    const directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gm-drivers-'));
    const hosts = new Map<HostLayout, string>();
    const mirrors = new Map<HostLayout, string>();
    for (const [index, layout] of HOST_LAYOUTS.entries()) {
      const host = layout.build(join(directory, `host-${index}`), branch);
      hosts.set(layout, host);
      mirrors.set(layout, await mirrorOf(host, join(directory, `mirror-${index}`)));
    }
    return new DriverMachine(branch, directory, hosts, mirrors);
  }

  close(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** A folder for files of one check. */
  folder(name: string): string {
    const folder = join(this.#directory, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** The folder with `libcuda.so.1` and `libnvidia-ml.so.1` that programs in a place load. */
  libraries(place: Place): string {
    return place === 'alone' ? this.branch.libraries : join([...this.mirrors.values()][0] ?? '', 'lib64');
  }

  /** Asks `test/drivers/probe.c` about a library, see there. */
  probe(question: 'names' | 'lookups' | 'calls', place: Place, soname: string, names: readonly string[]): string[] {
    const library = join(this.libraries(place), soname);
    const printed = this.run(place, [this.#probe, question, library], `${names.join('\n')}\n`);
    if (printed.status !== 0)
      throw new Error(`probe ${question} ${library}: status ${printed.status}: ${printed.stderr}`);
    return printed.stdout.split('\n').filter((line) => line !== '');
  }

  /**
   * Runs a program. NVML, as root, makes device nodes even where no kernel driver is; without CAP_MKNOD it cannot.
   */
  run(place: Place, [file = '', ...args]: readonly string[], input = ''): Printed {
    const root = process.getuid?.() === 0;
    const [program, ...rest] = root ? ['setpriv', '--bounding-set=-mknod', file, ...args] : [file, ...args];
    const done = spawnSync(program ?? '', rest, {
      input,
      encoding: 'utf8',
      timeout: TIMEOUT_MS,
      maxBuffer: 256 << 20,
      env: {
        PATH: process.env['PATH'],
        HOME: this.#directory,
        LD_LIBRARY_PATH: [
          this.libraries(place),
          ...(place === 'alone' ? this.branch.libraryFiles.map((path) => dirname(path)) : []),
        ].join(':'),
        VGPU_SANDBOX_DIRECTORY: join(this.#directory, 'slice'),
      },
    });
    return { status: done.status, stdout: done.stdout, stderr: done.stderr + (done.error?.message ?? '') };
  }
}

/** Makes the mirrors that an agent of this host makes; returns the one for containers with a slice. */
async function mirrorOf(host: string, base: string): Promise<string> {
  const native = packageFile('native/build/sandbox');
  const parsed = parseVolumeConfig(readFileSync(packageFile('etc/volume.conf'), 'utf8'));
  if (!parsed.ok) throw new Error(parsed.reason);
  const mirrors = new LibraryMirrors({
    volumes: parsed.volumes.map((volume) => ({ ...volume, base })),
    hostRoot: await openHostRoot(host),
    architecture: 'x86-64',
    controls: await Promise.all(CONTROLS.map((name) => describeControlLibrary(join(native, name)))),
    ownFiles: new Map(),
    log: silentLog(),
    clock: systemClock,
  });
  const started = await mirrors.start();
  await mirrors.stop();
  if (!started.ok) throw new Error(started.reason);
  return mirrors.directory('shared') ?? '';
}
