import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { LABEL, type ContainerRuntime, type InspectedContainer } from '../../../src/agent/runtimes/container.js';
import { NodeContainers } from '../../../src/agent/runtimes/node-containers.js';
import { scratchDirectory } from '../../scratch.js';
import { daemonSkipReason, findProgram, removeCgroups } from './daemon.js';
import { buildRootFileSystem, imageSkipReason } from './test-image.js';

const CGROUPS = '/sys/fs/cgroup';
const CGROUP2_MAGIC = 0x63677270;

/** Whether this machine has control groups v2 only, which test:cgroup2 runs the tests on. */
export const controlGroups2 = statfsSync(CGROUPS).type === CGROUP2_MAGIC;

/** Reason why this OCI runtime cannot run here, or false. */
export function ociSkipReason(program: 'runc' | 'crun'): string | false {
  if (program === 'crun' && existsSync(join(CGROUPS, 'unified')))
    return 'crun does not run where control groups v1 and v2 are mounted: npm run test:cgroup2';
  return daemonSkipReason(program) || imageSkipReason();
}

/** A tree of control groups for one test alone: a kubelet of this machine ends unknown processes below /kubepods. */
export function cgroupTree(t: Pick<Test, 'teardown'>): string {
  const tree = `/gpu-manager-test-${process.pid}`;
  t.teardown(() => removeCgroups(tree));
  return tree;
}

/** The directory of a control group: of its only hierarchy, or of the one with the controller `memory`. */
export const cgroupDirectory = (path: string): string => join(CGROUPS, controlGroups2 ? '' : 'memory', path);

interface OciConfig {
  readonly process: object;
  readonly linux: object;
}

interface Wish {
  readonly id: string;
  readonly podUid: string;
  /** Path of the control group, as a container runtime of Kubernetes chooses it. */
  readonly cgroup: string;
  readonly command: readonly string[];
}

/** Containers that runc or crun runs by itself, in the control groups that each test names. */
export class OciRuntime {
  readonly #program: string;
  readonly #scratch: string;
  readonly #root: string;
  readonly #config: OciConfig;
  readonly #containers = new Map<string, InspectedContainer>();

  private constructor(program: string, scratch: string) {
    this.#program = findProgram(program) ?? program;
    this.#scratch = scratch;
    this.#root = buildRootFileSystem(scratch);
    execFileSync(this.#program, ['spec'], { cwd: scratch });
    this.#config = JSON.parse(readFileSync(join(scratch, 'config.json'), 'utf8')) as OciConfig;
  }

  /** Its containers end when the test ends. */
  static async start(t: Test, program: string): Promise<OciRuntime> {
    const runtime = new OciRuntime(program, await scratchDirectory(t));
    t.teardown(() => {
      for (const id of [...runtime.#containers.keys()]) runtime.end(id);
    });
    return runtime;
  }

  run({ id, podUid, cgroup, command }: Wish): InspectedContainer {
    const bundle = join(this.#scratch, id);
    const pidFile = join(bundle, 'pid');
    mkdirSync(bundle);
    const config = {
      ...this.#config,
      process: { ...this.#config.process, terminal: false, args: command },
      root: { path: this.#root, readonly: true },
      linux: { ...this.#config.linux, cgroupsPath: cgroup },
    };
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(config));
    this.#run('run', '--detach', '--pid-file', pidFile, '--bundle', bundle, id);
    const pid = Number(readFileSync(pidFile, 'utf8'));
    const pod = { uid: podUid, namespace: 'default', name: 'trainer' };
    const labels = { [LABEL.podUid]: podUid };
    const container = { id, name: 'main', pod, labels, state: 'running', attempt: 0, createdAtMs: 0, pid } as const;
    this.#containers.set(id, container);
    return container;
  }

  exec(id: string, command: readonly string[]): void {
    this.#run('exec', '--detach', id, ...command);
  }

  end(id: string): void {
    this.#run('delete', '--force', id);
    this.#containers.delete(id);
  }

  /** The containers as the agent finds them. */
  containers(): NodeContainers {
    const runtime: ContainerRuntime = {
      endpoint: this.#program,
      version: async () => ({ name: this.#program, version: '1', protocol: 'oci' }),
      inspect: async (id) => this.#containers.get(id) ?? null,
      list: async () => [...this.#containers.values()],
      close: () => undefined,
    };
    return new NodeContainers({ connect: async () => runtime });
  }

  #run(...args: readonly string[]): void {
    // A container keeps the standard streams open, so none may be a pipe.
    execFileSync(this.#program, ['--root', join(this.#scratch, 'state'), ...args], { stdio: 'ignore' });
  }
}

/** Moves a process to a control group, which is made if it is not there. */
export function moveTo(cgroup: string, pid: number): void {
  const directory = cgroupDirectory(cgroup);
  if (!existsSync(directory)) mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'cgroup.procs'), String(pid));
}
