import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

/** The driver's libraries and programs of one branch, unpacked and not installed. */
export interface Branch {
  /** Such as `535`. */
  readonly name: string;
  /** Such as `535.261.03`. */
  readonly version: string;
  /** Folder of the libraries, with `libcuda.so.1` and `libnvidia-ml.so.1`. */
  readonly libraries: string;
  /** Libraries that lie beside that folder, directly in a directory of the dynamic linker. */
  readonly libraryFiles: readonly string[];
  /** Null for branches whose package is no longer in the archive. */
  readonly nvidiaSmi: string | null;
  /** Folder of programs that are no part of a branch; null if they cannot be had. */
  readonly programs: string | null;
}

/** The packages of a branch cannot be had on this machine; the message is the reason. */
export class NotAvailable extends Error {}

interface BranchPackages {
  readonly suite: 'bookworm' | 'sid' | 'experimental';
  readonly packages: readonly string[];
}

/** Debian's packages of each branch, all of the component non-free. */
const BRANCHES: Readonly<Record<string, BranchPackages>> = {
  '390': {
    suite: 'sid',
    packages: ['libnvidia-legacy-390xx-cuda1', 'libnvidia-legacy-390xx-ml1', 'libnvidia-legacy-390xx-fatbinaryloader'],
  },
  '418': {
    suite: 'sid',
    packages: ['libnvidia-tesla-418-cuda1', 'libnvidia-tesla-418-ml1', 'libnvidia-tesla-418-fatbinaryloader'],
  },
  '470': { suite: 'sid', packages: ['libnvidia-tesla-470-cuda1', 'libnvidia-tesla-470-ml1', 'nvidia-tesla-470-smi'] },
  '535': {
    suite: 'bookworm',
    packages: [
      'libcuda1',
      'libnvidia-ml1',
      'nvidia-smi',
      'libnvidia-ptxjitcompiler1',
      'libnvcuvid1',
      'libnvidia-encode1',
    ],
  },
  '550': { suite: 'sid', packages: ['libcuda1', 'libnvidia-ml1', 'nvidia-smi'] },
  '555': { suite: 'experimental', packages: ['libcuda1', 'libnvidia-ml1', 'nvidia-smi'] },
};

export const BRANCH_NAMES: readonly string[] = Object.keys(BRANCHES);

/** Programs of Debian's components non-free and contrib that use any branch. */
const PROGRAMS: BranchPackages = { suite: 'bookworm', packages: ['nvidia-cuda-gdb', 'nvtop'] };

const LIBRARY_FOLDER = 'usr/lib/x86_64-linux-gnu';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const TIMEOUT_MS = 120_000;

/** Debian's driver packages in a folder that later runs reuse; the variable `DRIVERS_CACHE` names another one. */
export class DriverPackages {
  readonly #cache = process.env['DRIVERS_CACHE'] ?? join(homedir(), '.cache/gpu-manager-drivers');
  readonly #lists = new Map<string, readonly string[]>();
  readonly #scratch = mkdtempSync(join(tmpdir(), 'gm-drivers-'));

  /** Removes what only this run needed. */
  close(): void {
    rmSync(this.#scratch, { recursive: true, force: true });
  }

  /** The reason why no branch can be fetched on this machine; null if one can. */
  static whyNone(): string | null {
    if (process.arch !== 'x64') return 'the packages of all branches exist for x86-64 only';
    if (!existsSync(KEYRING)) return 'this machine is not a Debian (no keyring of its archive)';
    return archive() === null ? 'apt on this machine has no source of Debian' : null;
  }

  /** Downloads and unpacks a branch unless it is there. Throws `NotAvailable` if that fails. */
  fetch(name: string): Branch {
    const wanted = BRANCHES[name];
    if (wanted === undefined) throw new NotAvailable(`no such branch; there are ${BRANCH_NAMES.join(', ')}`);
    return describe(name, this.#unpacked(name, wanted), this.#programs());
  }

  #programs(): string | null {
    try {
      return join(this.#unpacked('programs', PROGRAMS), 'usr/bin');
    } catch (error) {
      if (error instanceof NotAvailable) return null;
      throw error;
    }
  }

  /** The folder `name` of the cache, with the contents of packages. */
  #unpacked(name: string, wanted: BranchPackages): string {
    const folder = join(this.#cache, name);
    if (!existsSync(folder)) {
      const unpacked = mkdtempSync(join(this.#scratch, 'unpacked-'));
      for (const file of this.#download(wanted)) run('dpkg', ['-x', file, unpacked]);
      mkdirSync(this.#cache, { recursive: true });
      run('cp', ['-a', unpacked, `${folder}.unfinished`]);
      renameSync(`${folder}.unfinished`, folder);
    }
    return folder;
  }

  #download({ suite, packages }: BranchPackages): string[] {
    const options = this.#listsOf(suite);
    const target = mkdtempSync(join(this.#scratch, 'packages-'));
    run('apt-get', [...options, '-q', 'download', ...packages], target);
    return readdirSync(target).map((file) => join(target, file));
  }

  /** apt's options for a suite: its own lists and sources, apart from those of this machine. */
  #listsOf(suite: string): readonly string[] {
    const known = this.#lists.get(suite);
    if (known !== undefined) return known;
    const folder = join(this.#scratch, suite);
    mkdirSync(join(folder, 'sources'), { recursive: true });
    mkdirSync(join(folder, 'lists/partial'), { recursive: true });
    writeFileSync(
      join(folder, 'sources/suite.sources'),
      `Types: deb\nURIs: ${archive() ?? ''}\nSuites: ${suite}\nComponents: non-free contrib\nSigned-By: ${KEYRING}\n`,
    );
    const options = [
      'Dir::Etc::sourcelist=/dev/null',
      `Dir::Etc::sourceparts=${join(folder, 'sources')}`,
      `Dir::State::lists=${join(folder, 'lists')}`,
      'Dir::Cache::pkgcache=',
      'Dir::Cache::srcpkgcache=',
      'APT::Sandbox::User=root',
    ].flatMap((option) => ['-o', option]);
    run('apt-get', [...options, '-q', 'update']);
    this.#lists.set(suite, options);
    return options;
  }
}

/** The archive that apt on this machine uses; null if it names none. */
function archive(): string | null {
  const folder = '/etc/apt/sources.list.d';
  const files = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  for (const file of [...files, '/etc/apt/sources.list']) {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const found = /^(?:URIs: *|deb (?:\[[^\]]*\] )?)(https?:\S+\/debian\/?)(?:\s|$)/m.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  return null;
}

function describe(name: string, folder: string, programs: string | null): Branch {
  const under = (path: string): string[] =>
    existsSync(join(folder, path)) ? readdirSync(join(folder, path)).map((entry) => join(folder, path, entry)) : [];
  const libraries = under(join(LIBRARY_FOLDER, 'nvidia'))[0];
  const version = libraries && readdirSync(libraries).find((file) => /^libcuda\.so\.\d+\./.test(file));
  if (libraries === undefined || version === undefined) throw new NotAvailable(`${folder} has no libcuda; remove it`);
  const nvidiaSmi = under('usr/lib/nvidia').map((directory) => join(directory, 'nvidia-smi'));
  return {
    name,
    version: version.slice('libcuda.so.'.length),
    libraries,
    libraryFiles: under(LIBRARY_FOLDER).filter((path) => path.includes('.so.')),
    nvidiaSmi: nvidiaSmi.find((path) => existsSync(path)) ?? null,
    programs,
  };
}

function run(program: string, args: readonly string[], cwd?: string): void {
  const done = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    ...(cwd === undefined ? {} : { cwd }),
  });
  if (done.status === 0) return;
  const said = (done.stderr ?? '').split('\n').filter((line) => line.startsWith('E: '))[0];
  throw new NotAvailable(`${program} ${args.at(-1) ?? ''}: ${done.error?.message ?? said ?? 'no reason'}`);
}
