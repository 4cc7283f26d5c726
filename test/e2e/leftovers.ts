import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const CGROUPS = '/sys/fs/cgroup';
const KUBELET_PODS = '/var/lib/kubelet/pods';
const KUBELET_STATE = [
  'pods',
  'device-plugins',
  'plugins',
  'plugins_registry',
  'pod-resources',
  'cpu_manager_state',
  'memory_manager_state',
  'dra_manager_state',
  'actuated_pods_state',
  'allocated_pods_state',
  'pod_status_manager_state',
  'checkpoints',
].map((name) => join('/var/lib/kubelet', name));

/** The leftovers of a cluster with its state in one directory after its daemons have ended. */
export class Leftovers {
  readonly #directory: string;
  readonly #bridge: string;

  /** `bridge`: the network device that its pods share. */
  constructor(directory: string, bridge: string) {
    this.#directory = directory;
    this.#bridge = bridge;
  }

  /** Descriptions of everything found; empty when nothing is left. */
  list(): string[] {
    return [
      ...this.#processes().map(({ pid, command }) => `process ${pid}: ${command.slice(0, 80)}`),
      ...this.#mounts().map((path) => `mount ${path}`),
      ...cgroups().map((path) => `control group ${path}`),
      ...(existsSync(join('/sys/class/net', this.#bridge)) ? [`network device ${this.#bridge}`] : []),
    ];
  }

  /** Ends shims, detaches mounts, removes control groups and the network of the pods. The state on disk stays. */
  remove(): void {
    for (const { pid } of this.#processes()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
    for (const path of this.#mounts().sort().reverse()) execFileSync('umount', ['-l', path], { stdio: 'ignore' });
    for (const path of cgroups()) {
      try {
        rmdirSync(path);
      } catch {
        // Its last process is still ending, or it went with its parent: list() tells.
      }
    }
    if (existsSync(join('/sys/class/net', this.#bridge)))
      execFileSync('ip', ['link', 'delete', this.#bridge], { stdio: 'ignore' });
  }

  /** Removes the state of the cluster and of its kubelet from disk. */
  removeState(): void {
    for (const path of [this.#directory, ...KUBELET_STATE, '/var/log/pods', '/var/log/containers'])
      rmSync(path, { recursive: true, force: true });
  }

  /** Shims, and all processes inside the control groups of pods. */
  #processes(): { readonly pid: number; readonly command: string }[] {
    const inPods = new Set(
      cgroups().flatMap((path) =>
        (readIfThere(join(path, 'cgroup.procs')) ?? '')
          .split('\n')
          .filter((line) => line !== '')
          .map(Number),
      ),
    );
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        const command = (readIfThere(join('/proc', name, 'cmdline')) ?? '').replaceAll('\0', ' ').trim();
        const isShim = command.includes('containerd-shim') && command.includes(this.#directory);
        return isShim || inPods.has(Number(name)) ? [{ pid: Number(name), command }] : [];
      });
  }

  #mounts(): string[] {
    return readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '')
      .filter((path) => path.startsWith(`${KUBELET_PODS}/`) || path.startsWith(`${this.#directory}/`));
  }
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** The control groups of the pods of a kubelet in every hierarchy, children before their parents. */
function cgroups(): string[] {
  const roots = ['', ...(existsSync(CGROUPS) ? readdirSync(CGROUPS) : [])].map((name) =>
    join(CGROUPS, name, 'kubepods'),
  );
  return roots.filter((path) => existsSync(path)).flatMap(below);
}

function below(directory: string): string[] {
  try {
    const children = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...children.flatMap(({ name }) => below(join(directory, name))), directory];
  } catch {
    return [];
  }
}
