import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { credentials, loadPackageDefinition, type Client, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { LABEL, type ContainerRuntime } from '../../../src/agent/runtimes/container.js';
import { CriRuntime, type CriVersion } from '../../../src/agent/runtimes/cri-runtime.js';
import { Daemon, findProgram, removeCgroups, unmountBelow } from './daemon.js';
import type { ContainerSpec, Engine, ExecResult } from './engine.js';
import {
  buildRootFileSystem,
  packImage,
  packLayer,
  TEST_IMAGE,
  type ImageConfig,
  type ImageFile,
} from './test-image.js';

export const CONTAINERD_PROGRAMS = ['containerd', 'ctr', 'runc', 'tar'];

/**
 * Reason why the containerd of this machine does not serve that version of CRI, or false. containerd 2 has dropped
 * v1alpha2.
 */
export function criSkipReason(version: CriVersion): string | false {
  const program = findProgram('containerd');
  if (program === null || version !== 'v1alpha2') return false;
  const [, major = ''] = / v?(\d+)\.\d+/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' })) ?? [];
  return Number(major) >= 2 ? `containerd ${major} has no CRI ${version}` : false;
}

const PROTO = fileURLToPath(new URL('../../../../test/agent/runtimes/cri-sandboxes.proto', import.meta.url));
const run = promisify(execFile);

/**
 * A cgroup tree for the test alone, as of a kubelet with `--cgroup-root`: a kubelet of this machine ends unknown
 * processes below /kubepods.
 */
const CGROUPS = `/gpu-manager-test-${process.pid}`;

interface Answer {
  readonly pod_sandbox_id?: string;
  readonly container_id?: string;
  readonly exit_code?: number;
  readonly stdout?: Buffer;
  readonly stderr?: Buffer;
}

type Callback = (error: Error | null, answer: Answer) => void;
type RuntimeService = Readonly<Record<string, (request: object, callback: Callback) => void>>;

/** A containerd of the test, called as the kubelet calls it; its pods use the network of the machine. */
export class ContainerdEngine implements Engine {
  readonly name: string;
  readonly #version: CriVersion;
  readonly #sandboxes = new Map<string, string>();
  #daemon: Daemon | null = null;
  #scratch = '';
  #client: RuntimeService | null = null;
  readonly #nri: boolean;

  /** `nri`: with its own Node Resource Interface, at `nriSocket`. */
  constructor(version: CriVersion = 'v1', nri = false) {
    this.#version = version;
    this.#nri = nri;
    this.name = `containerd by CRI ${version}`;
  }

  async start(scratch: string, files: readonly ImageFile[] = []): Promise<void> {
    this.#scratch = scratch;
    const socket = join(scratch, 'containerd.sock');
    mkdirSync(join(scratch, 'cni'), { recursive: true });
    writeFileSync(
      join(scratch, 'containerd.toml'),
      configuration(scratch, socket) + (this.#nri ? nriConfiguration(scratch) : ''),
    );
    this.#daemon = new Daemon(
      socket,
      ['containerd', '--config', join(scratch, 'containerd.toml')],
      join(scratch, 'containerd.log'),
      () => this.#answers(),
    );
    await this.#daemon.start();
    await this.importImage(scratch, buildRootFileSystem(scratch, files), TEST_IMAGE);
    const loaded = loadPackageDefinition(
      loadSync(PROTO, { keepCase: true, longs: String, enums: String, defaults: true }),
    ) as unknown as { runtime: { v1: { RuntimeService: ServiceClientConstructor } } };
    this.#client = new loaded.runtime.v1.RuntimeService(
      `unix:${socket}`,
      credentials.createInsecure(),
    ) as unknown as RuntimeService;
  }

  /** Imports the root file system `root` as the image `reference`; `scratch` holds temporary files. */
  async importImage(scratch: string, root: string, reference: string, config?: ImageConfig): Promise<void> {
    const image = packImage(scratch, packLayer(scratch, root), reference, config);
    await run('ctr', ['-a', this.#daemon?.socket ?? '', '-n', 'k8s.io', 'images', 'import', image]);
  }

  async #answers(): Promise<void> {
    (await this.connect()).close();
  }

  connect(): Promise<ContainerRuntime> {
    return CriRuntime.connect(this.#daemon?.socket ?? '', { versions: [this.#version] });
  }

  get nriSocket(): string {
    return join(this.#scratch, 'nri.sock');
  }

  async restart(): Promise<void> {
    await this.#daemon?.stop();
    await this.#daemon?.start();
  }

  async halt(): Promise<void> {
    await this.#daemon?.stop();
  }

  async run(spec: ContainerSpec): Promise<string> {
    const { pod, name } = spec;
    const labels = { [LABEL.podUid]: pod.uid, [LABEL.podNamespace]: pod.namespace, [LABEL.podName]: pod.name };
    const mode = spec.hostNamespaces === true ? 'NODE' : 'CONTAINER';
    const namespaces = { network: 'NODE', pid: mode, ipc: spec.hostNamespaces === true ? 'NODE' : 'POD' };
    const sandbox_config = {
      metadata: pod,
      labels,
      linux: {
        cgroup_parent: `${CGROUPS}/kubepods/burstable/pod${pod.uid}`,
        security_context: { namespace_options: namespaces },
      },
    };
    const known = this.#sandboxes.get(pod.uid);
    const pod_sandbox_id =
      known ?? (await this.#call('RunPodSandbox', { config: sandbox_config })).pod_sandbox_id ?? '';
    this.#sandboxes.set(pod.uid, pod_sandbox_id);
    const config = {
      metadata: { name, attempt: spec.attempt ?? 0 },
      image: { image: spec.image ?? TEST_IMAGE },
      command: spec.command ?? [],
      envs: [...Object.entries(spec.environment ?? {}), ...Object.entries(spec.laterEnvironment ?? {})].map(
        ([key, value]) => ({ key, value }),
      ),
      mounts: (spec.mounts ?? []).map(({ hostPath, containerPath, writable }) => ({
        host_path: hostPath,
        container_path: containerPath,
        readonly: !writable,
      })),
      devices: (spec.devices ?? []).map(({ hostPath, containerPath }) => ({
        host_path: hostPath,
        container_path: containerPath,
        permissions: 'rw',
      })),
      labels: { ...labels, [LABEL.containerName]: name },
      linux: {
        security_context: {
          namespace_options: namespaces,
          readonly_rootfs: spec.readOnlyRoot ?? false,
          ...(spec.user === undefined ? {} : { run_as_user: { value: spec.user } }),
        },
      },
    };
    const { container_id = '' } = await this.#call('CreateContainer', { pod_sandbox_id, config, sandbox_config });
    await this.#call('StartContainer', { container_id });
    return container_id;
  }

  async exec(containerId: string, command: readonly string[]): Promise<ExecResult> {
    const answer = await this.#call('ExecSync', { container_id: containerId, cmd: command, timeout: 60 });
    return {
      code: answer.exit_code ?? -1,
      output: `${answer.stdout?.toString() ?? ''}${answer.stderr?.toString() ?? ''}`,
    };
  }

  async end(containerId: string): Promise<void> {
    await this.#call('StopContainer', { container_id: containerId, timeout: 0 });
  }

  async stop(): Promise<void> {
    if (this.#daemon === null) return;
    for (const pod_sandbox_id of this.#sandboxes.values()) {
      await this.#call('StopPodSandbox', { pod_sandbox_id });
      await this.#call('RemovePodSandbox', { pod_sandbox_id });
    }
    (this.#client as unknown as Client).close();
    await this.#daemon.stop();
    unmountBelow(this.#scratch);
    removeCgroups(CGROUPS);
  }

  #call(method: string, request: object): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#client?.[method]?.(request, (error, answer) => (error === null ? resolve(answer) : reject(error)));
    });
  }
}

/** `restrict_oom_score_adj`: a machine that is a container itself cannot lower the OOM scores of its processes. */
function configuration(scratch: string, socket: string): string {
  return `version = 2
root = "${scratch}/root"
state = "${scratch}/state"
[grpc]
  address = "${socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${scratch}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${TEST_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${scratch}/cni"
    conf_dir = "${scratch}/cni"
`;
}

function nriConfiguration(scratch: string): string {
  return `[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "${scratch}/nri.sock"
  plugin_path = "${scratch}/nri-plugins"
  plugin_config_path = "${scratch}/nri-conf"
`;
}
