import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** The programs that each version brings with it. */
const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet'];
/** Sets the version of a test that runs by itself; `npm run test:e2e -- --kubernetes` sets it. */
export const VERSION_VARIABLE = 'GPU_MANAGER_KUBERNETES';

/** Directory of the programs of each version, below `MINOR/bin`, as `npm run kubernetes -- build` makes it. */
export function kubernetesHome(): string {
  return process.env.KUBE_E2E ?? join(homedir(), '.cache/kube-e2e');
}

/** One minor version of Kubernetes whose programs are on this machine. */
export class KubernetesVersion {
  readonly name: string;
  readonly #minor: number;

  constructor(name: string) {
    const minor = /^1\.(\d+)$/.exec(name)?.[1];
    if (minor === undefined) throw new Error(`expected a minor version such as 1.36, found ${name}`);
    this.name = name;
    this.#minor = Number(minor);
  }

  /** Whether this is version 1.`minor` or a later one. */
  atLeast(minor: number): boolean {
    return this.#minor >= minor;
  }

  get directory(): string {
    return join(kubernetesHome(), this.name, 'bin');
  }

  get missing(): readonly string[] {
    return COMPONENTS.filter((name) => !existsSync(join(this.directory, name)));
  }

  program(name: string): string {
    return join(this.directory, name);
  }

  /**
   * The environment in which programs of this version find each other before those of the machine, and those of no
   * other version.
   */
  get environment(): NodeJS.ProcessEnv {
    const home = join(kubernetesHome(), '/');
    const others = (process.env.PATH ?? '').split(delimiter).filter((directory) => !directory.startsWith(home));
    return { ...process.env, PATH: [this.directory, ...others].join(delimiter) };
  }
}

/** Every version with a complete build, oldest first. */
export function builtVersions(): readonly KubernetesVersion[] {
  const home = kubernetesHome();
  if (!existsSync(home)) return [];
  return readdirSync(home)
    .filter((name) => /^1\.\d+$/.test(name))
    .sort((a, b) => Number(a.slice(2)) - Number(b.slice(2)))
    .map((name) => new KubernetesVersion(name))
    .filter(({ missing }) => missing.length === 0);
}

/** The version that the environment names, or else the newest one with a build. Throws where there is none. */
export function chosenVersion(): KubernetesVersion {
  const named = process.env[VERSION_VARIABLE];
  const version = named === undefined ? builtVersions().at(-1) : new KubernetesVersion(named);
  if (version === undefined)
    throw new Error(`no Kubernetes is built in ${kubernetesHome()}: run npm run kubernetes -- build`);
  return version;
}
