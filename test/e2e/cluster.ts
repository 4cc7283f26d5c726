import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { certificates } from './certificates.js';
import { importImage } from './image.js';
import { ProcessTable } from './process-table.js';
import { until } from './until.js';

const run = promisify(execFile);

export const NODE = 'node1';
/** The image of test pods: busybox and nothing else. */
export const BUSYBOX_IMAGE = 'docker.io/local/busybox:1';

const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet'];
const PROGRAMS = ['etcd', 'containerd', 'runc', 'ctr', 'kubectl', 'openssl', 'busybox'];
const KUBELET_SOCKET = '/var/lib/kubelet/device-plugins/kubelet.sock';
const PORT = { api: 16_543, etcd: 23_890, etcdPeer: 23_990 } as const;

/** Where the binaries of a Kubernetes are expected, in `bin`; state of test clusters goes beside them. */
export function clusterHome(): string {
  return process.env.KUBE_E2E ?? join(homedir(), '.cache/kube-e2e');
}

/** Why no cluster can be started here, or null. */
export function whyNoCluster(): string | null {
  if (process.getuid?.() !== 0) return 'needs root';
  const missing = COMPONENTS.filter((name) => !existsSync(join(clusterHome(), 'bin', name)));
  if (missing.length > 0) return `no ${missing.join(', ')} in ${join(clusterHome(), 'bin')} (set KUBE_E2E)`;
  const absent = PROGRAMS.filter((name) => !isInPath(name));
  if (absent.length > 0) return `${absent.join(', ')} not installed`;
  return null;
}

function isInPath(name: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export interface ClusterOptions {
  readonly schedulerArgs?: readonly string[];
  readonly apiServerArgs?: readonly string[];
}

/** A real Kubernetes of one node on loopback: etcd, API server, controllers, scheduler, containerd, kubelet. */
export class TestCluster {
  readonly directory = join(clusterHome(), 'gpu-manager');
  readonly kubeconfig = join(this.directory, 'kubeconfig');
  readonly containerdSocket = join(this.directory, 'containerd.sock');
  readonly processes = new ProcessTable(join(this.directory, 'processes'));

  async start(options: ClusterOptions = {}): Promise<void> {
    const tls = await this.startServer(options);
    const at = (name: string): string => join(this.directory, name);
    const binary = (name: string): string => join(clusterHome(), 'bin', name);
    this.processes.start('controller-manager', binary('kube-controller-manager'), [
      `--kubeconfig=${this.kubeconfig}`,
      `--service-account-private-key-file=${tls.saKey}`,
      `--root-ca-file=${tls.ca}`,
      '--leader-elect=false',
      '--port=0',
      '--bind-address=127.0.0.1',
    ]);
    this.processes.start('scheduler', binary('kube-scheduler'), [
      `--kubeconfig=${this.kubeconfig}`,
      '--leader-elect=false',
      '--port=0',
      '--bind-address=127.0.0.1',
      ...(options.schedulerArgs ?? []),
    ]);
    this.processes.start('containerd', 'containerd', ['--config', at('containerd.toml')]);
    await until('containerd', async () => run('ctr', ['-a', this.containerdSocket, 'version']).then(() => true));
    importImage(this.containerdSocket, BUSYBOX_IMAGE);
    this.processes.start('kubelet', binary('kubelet'), [
      `--config=${at('kubelet.yaml')}`,
      `--kubeconfig=${this.kubeconfig}`,
      '--container-runtime=remote',
      `--container-runtime-endpoint=unix://${this.containerdSocket}`,
      `--hostname-override=${NODE}`,
      '--v=2',
    ]);
    await until('service accounts', async () => (await this.kubectl('get', 'serviceaccount', 'default')) !== '');
    await until(`${NODE} to be ready`, async () => /\sReady\s/.test(await this.kubectl('get', 'node', NODE)), 120_000);
  }

  /** etcd and the API server alone; whatever else ran before is ended. */
  async startServer(options: ClusterOptions = {}): Promise<ReturnType<typeof certificates>> {
    await this.stop();
    this.#forget();
    mkdirSync(this.directory, { recursive: true });
    this.#nameNode();
    const api = `https://127.0.0.1:${PORT.api}`;
    const tls = certificates(join(clusterHome(), 'gpu-manager-certificates'));
    this.#writeFiles(api, tls.ca);
    const at = (name: string): string => join(this.directory, name);
    const binary = (name: string): string => join(clusterHome(), 'bin', name);
    const etcd = `http://127.0.0.1:${PORT.etcd}`;
    const peer = `http://127.0.0.1:${PORT.etcdPeer}`;
    this.processes.start('etcd', 'etcd', [
      '--data-dir',
      at('etcd'),
      '--listen-client-urls',
      etcd,
      '--advertise-client-urls',
      etcd,
      '--listen-peer-urls',
      peer,
      '--initial-advertise-peer-urls',
      peer,
      '--initial-cluster',
      `default=${peer}`,
    ]);
    this.processes.start('apiserver', binary('kube-apiserver'), [
      `--etcd-servers=${etcd}`,
      `--secure-port=${PORT.api}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--tls-cert-file=${tls.cert}`,
      `--tls-private-key-file=${tls.key}`,
      `--client-ca-file=${tls.ca}`,
      `--token-auth-file=${tls.tokens}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${tls.saPublic}`,
      `--service-account-signing-key-file=${tls.saKey}`,
      '--service-cluster-ip-range=10.98.0.0/24',
      '--allow-privileged=true',
      ...(options.apiServerArgs ?? []),
    ]);
    await until('the API server', async () => (await this.kubectl('get', '--raw', '/readyz')) === 'ok');
    return tls;
  }

  /** Runs kubectl and answers what it printed; rejects with what it complained about. */
  async kubectl(...args: string[]): Promise<string> {
    const { stdout } = await run('kubectl', ['--kubeconfig', this.kubeconfig, ...args], {
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout.trim();
  }

  /** Where a pod of the node's network finds the API server: nobody here makes the address of its service reachable. */
  readonly apiServer = { host: '127.0.0.1', port: PORT.api } as const;

  /** Applies objects as they are. */
  async apply(...objects: object[]): Promise<void> {
    const file = join(this.directory, 'apply.json');
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    await this.kubectl('apply', '-f', file);
  }

  async get<T>(kind: string, name: string): Promise<T> {
    return JSON.parse(await this.kubectl('get', kind, name, '-o', 'json')) as T;
  }

  restartKubelet(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    return this.processes.restart('kubelet', signal);
  }

  /** Ends every process that was started, containers first. What lies on disk stays until the next start. */
  async stop(): Promise<void> {
    for (const name of ['kubelet', 'scheduler', 'controller-manager']) await this.processes.stop(name);
    if (this.processes.isAlive('containerd')) {
      const { stdout } = await run('ctr', ['-a', this.containerdSocket, '-n', 'k8s.io', 'tasks', 'ls', '-q']).catch(
        () => ({ stdout: '' }),
      );
      for (const task of stdout.split('\n').filter((line) => line !== '')) {
        await run('ctr', ['-a', this.containerdSocket, '-n', 'k8s.io', 'tasks', 'kill', '-s', 'SIGKILL', task]).catch(
          () => undefined,
        );
      }
      await until(
        'containers to end',
        async () =>
          (await run('ctr', ['-a', this.containerdSocket, '-n', 'k8s.io', 'tasks', 'ls'])).stdout.includes(
            'RUNNING',
          ) === false,
        10_000,
      ).catch(() => undefined);
    }
    for (const name of ['apiserver', 'etcd', 'containerd']) await this.processes.stop(name);
  }

  /** Removes the state of an earlier cluster, its mounts first. */
  #forget(): void {
    const mounts = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '')
      .filter((path) => path.startsWith('/var/lib/kubelet/pods') || path.startsWith(this.directory));
    for (const path of mounts.sort().reverse()) execFileSync('umount', ['-l', path], { stdio: 'ignore' });
    for (const path of [
      this.directory,
      '/var/lib/kubelet/pods',
      '/var/lib/kubelet/device-plugins',
      '/var/lib/kubelet/cpu_manager_state',
      '/var/log/pods',
    ]) {
      rmSync(path, { recursive: true, force: true });
    }
    mkdirSync(join(this.directory, 'processes'), { recursive: true });
  }

  #nameNode(): void {
    const hosts = readFileSync('/etc/hosts', 'utf8');
    if (!new RegExp(`\\s${NODE}$`, 'm').test(hosts))
      writeFileSync('/etc/hosts', `${hosts.trimEnd()}\n127.0.0.1 ${NODE}\n`);
  }

  #writeFiles(api: string, ca: string): void {
    const at = (name: string): string => join(this.directory, name);
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: api, 'certificate-authority': ca } }],
      users: [{ name: 'admin', user: { token: 'admintoken' } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
      'current-context': 'test',
    };
    writeFileSync(this.kubeconfig, JSON.stringify(config));
    mkdirSync(at('cni'), { recursive: true });
    writeFileSync(
      at('cni/10-loopback.conflist'),
      JSON.stringify({ cniVersion: '0.4.0', name: 'lo', plugins: [{ type: 'loopback' }] }),
    );
    // A sandbox without CAP_SYS_RESOURCE cannot lower OOM scores.
    writeFileSync(
      at('containerd.toml'),
      `version = 2
root = "${at('containerd')}"
state = "${at('containerd-state')}"
[grpc]
  address = "${this.containerdSocket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${BUSYBOX_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${at('cni')}"
`,
    );
    const kubelet = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: 'AlwaysAllow' },
      cgroupDriver: 'cgroupfs',
      failSwapOn: false,
      evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
      enforceNodeAllocatable: [],
      address: '127.0.0.1',
      syncFrequency: '5s',
    };
    writeFileSync(at('kubelet.yaml'), JSON.stringify(kubelet));
  }
}

/** True while some kubelet serves on this machine: two cannot share /var/lib/kubelet. */
export function kubeletIsRunning(): boolean {
  if (!existsSync(KUBELET_SOCKET)) return false;
  return readFileSync('/proc/net/unix', 'utf8').includes(KUBELET_SOCKET);
}
