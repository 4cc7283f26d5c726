import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { packageFile } from '../../src/host/package-files.js';

/** A client cannot be installed on this machine; the message is the reason. */
export class NotInstallable extends Error {}

/** An installation did not end in time. A client that is said to be quick has to be: this is a failure. */
export class InstallationTimedOut extends Error {}

const INSTALL_TIMEOUT_MS = 1_800_000;
/** Set for a run that has to end soon: slow installations are left out. */
const QUICK_INSTALL_TIMEOUT_MS = 120_000;

/** Installs clients from package registries, by pinned name and version, into a folder that later runs reuse. */
export class Workshop {
  readonly #cache: string;
  readonly #timeoutMs: number;

  constructor({ quick }: { readonly quick: boolean }) {
    this.#cache = process.env['CLIENTS_CACHE'] ?? join(homedir(), '.cache/gpu-manager-clients');
    this.#timeoutMs = quick ? QUICK_INSTALL_TIMEOUT_MS : INSTALL_TIMEOUT_MS;
  }

  /** The folder of the results of runs. */
  get resultsPath(): string {
    mkdirSync(this.#cache, { recursive: true });
    return join(this.#cache, 'results.json');
  }

  /** A file of the client's folder in this repository. */
  source(client: string, file: string): string {
    return packageFile(`test/clients/${client}/${file}`);
  }

  /**
   * A Python with exactly the packages of `test/clients/CLIENT/requirements.txt`; `environment` is for packages that
   * are compiled.
   */
  python(client: string, environment: Readonly<Record<string, string>> = {}): PythonInstallation {
    const requirements = this.source(client, 'requirements.txt');
    const directory = this.#install(`python/${client}`, [readFileSync(requirements, 'utf8')], (target) => {
      this.#run('python3', ['-m', 'venv', target]);
      const pip = join(target, 'bin/pip');
      // Every package of the closure is listed, so pip resolves nothing.
      this.#run(pip, ['install', '--quiet', '--no-input', '--no-deps', '-r', requirements], environment);
    });
    return new PythonInstallation(directory);
  }

  /** The programs of the crate in `test/clients/CLIENT`, built by its lock file; returns their folder. */
  cargo(client: string, subcommand: readonly string[] = ['build']): string {
    const manifest = this.source(client, 'Cargo.toml');
    const key = [
      readFileSync(manifest, 'utf8'),
      readFileSync(this.source(client, 'Cargo.lock'), 'utf8'),
      ...subcommand,
    ];
    for (const file of readdirSync(this.source(client, 'src')))
      key.push(readFileSync(this.source(client, `src/${file}`), 'utf8'));
    const directory = this.#install(`cargo/${client}`, key, (target) =>
      this.#run('cargo', [...subcommand, '--quiet', '--locked', '--manifest-path', manifest], {
        CARGO_TARGET_DIR: target,
      }),
    );
    return join(directory, 'debug');
  }

  /** The test program of a crate that the one in `test/clients/CLIENT` depends on, with these features of the crate. */
  crateTests(client: string, crate: string, features: string): string {
    const manifest = this.source(client, 'Cargo.toml');
    const lock = readFileSync(this.source(client, 'Cargo.lock'), 'utf8');
    const directory = this.#install(`cargo/${client}-tests`, [lock, crate, features], (target) => {
      const metadata = JSON.parse(
        this.#run('cargo', ['metadata', '--quiet', '--locked', '--format-version', '1', '--manifest-path', manifest]),
      ) as { readonly packages: readonly { readonly name: string; readonly manifest_path: string }[] };
      const found = metadata.packages.find(({ name }) => name === crate);
      if (found === undefined)
        throw new NotInstallable(`the crate ${crate} is not among the dependencies of ${manifest}`);
      const source = join(target, 'source');
      rmSync(source, { recursive: true, force: true });
      cpSync(dirname(found.manifest_path), source, { recursive: true });
      const built = this.#run(
        'cargo',
        ['test', '--no-run', '--lib', '--message-format=json', '--no-default-features', '--features', features].concat(
          '--manifest-path',
          join(source, 'Cargo.toml'),
        ),
        { CARGO_TARGET_DIR: join(target, 'target') },
      );
      const executable = /"executable":"([^"]+)"/.exec(built)?.[1];
      if (executable === undefined) throw new NotInstallable(`cargo built no test program of ${crate}`);
      copyFileSync(executable, join(target, 'tests'));
    });
    return join(directory, 'tests');
  }

  /** Go programs: of the module in `test/clients/CLIENT`, or of the packages that it names. */
  go(client: string, packages: readonly string[] = ['.']): string {
    const source = this.source(client, '');
    const key = readdirSync(source)
      .filter((name) => /\.(go|mod|sum)$/.test(name))
      .map((name) => readFileSync(join(source, name), 'utf8'));
    return this.#install(`go/${client}`, [...key, ...packages], (target) => {
      mkdirSync(target, { recursive: true });
      this.#run('go', ['build', '-C', source, '-mod=readonly', '-o', `${target}/`, ...packages], { GOFLAGS: '' });
    });
  }

  /** The jars that `test/clients/CLIENT/pom.xml` depends on, as a class path. */
  maven(client: string): string {
    const pom = this.source(client, 'pom.xml');
    const directory = this.#install(`maven/${client}`, [readFileSync(pom, 'utf8')], (target) =>
      this.#run('mvn', ['-q', '-B', '-f', pom, 'dependency:copy-dependencies', `-DoutputDirectory=${target}`]),
    );
    return readdirSync(directory)
      .filter((name) => name.endsWith('.jar'))
      .map((name) => join(directory, name))
      .join(':');
  }

  /** The program of one C file in `test/clients/CLIENT`, compiled by the gcc of this machine. */
  gcc(client: string, file: string, options: readonly string[]): string {
    const source = this.source(client, file);
    const directory = this.#install(`gcc/${client}`, [readFileSync(source, 'utf8'), ...options], (target) => {
      mkdirSync(target, { recursive: true });
      this.#run('gcc', ['-O1', ...options, source, '-o', join(target, 'program')]);
    });
    return join(directory, 'program');
  }

  /** A program of this machine; `debian` is the package to install if it is missing. */
  tool(name: string, debian: string): string {
    const found = (process.env['PATH'] ?? '')
      .split(':')
      .map((folder) => join(folder, name))
      .find((path) => existsSync(path));
    if (found === undefined) throw new NotInstallable(`${name} is not installed (Debian package ${debian})`);
    return found;
  }

  /** The version of a Debian package on this machine. */
  debianVersion(name: string): string {
    const query = spawnSync('dpkg-query', ['-W', '-f', '${source:Upstream-Version}', name], { encoding: 'utf8' });
    if (query.status !== 0 || query.stdout === '')
      throw new NotInstallable(`the Debian package ${name} is not installed`);
    return query.stdout;
  }

  /** Runs a program of an installation; returns its output. */
  #run(program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): string {
    const done = spawnSync('nice', ['-n', '10', program, ...args], {
      encoding: 'utf8',
      env: { ...process.env, ...environment },
      timeout: this.#timeoutMs,
      maxBuffer: 64 << 20,
    });
    if (done.status === 0) return done.stdout;
    if (done.error !== undefined && 'code' in done.error && done.error.code === 'ETIMEDOUT')
      throw new InstallationTimedOut(`${program} ${args[0] ?? ''} did not end within ${this.#timeoutMs / 1000} s`);
    const said = `${done.stdout}\n${done.stderr}`.split('\n').filter((line) => line.trim() !== '');
    const why =
      done.error?.message ??
      said.findLast((line) => /error|not found|no such/i.test(line)) ??
      said.at(-1) ??
      'no reason';
    throw new NotInstallable(`${program} ${args[0] ?? ''} failed: ${why.trim().slice(0, 200)}`);
  }

  /** A folder that `install` fills; it is made anew if its sources have changed or it was not finished. */
  #install(name: string, key: readonly string[], install: (target: string) => void): string {
    const target = join(this.#cache, name);
    const stamp = join(target, '.installed');
    const wanted = createHash('sha256').update(JSON.stringify(key)).digest('hex');
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return target;
    rmSync(stamp, { force: true });
    if (!name.startsWith('cargo/')) rmSync(target, { recursive: true, force: true });
    mkdirSync(join(target, '..'), { recursive: true });
    install(target);
    writeFileSync(stamp, wanted);
    return target;
  }
}

/** A virtual environment of Python. */
export class PythonInstallation {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get interpreter(): string {
    return join(this.#directory, 'bin/python');
  }

  /** A program of a package. */
  program(name: string): string {
    return join(this.#directory, 'bin', name);
  }

  /** A folder below site-packages. */
  packageFolder(path: string): string {
    const lib = join(this.#directory, 'lib');
    const [version = 'python3'] = readdirSync(lib);
    return join(lib, version, 'site-packages', path);
  }
}
