import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { certificates } from './certificates.js';
import { importImage } from './image.js';
import { chosenVersion, type KubernetesVersion } from './kubernetes-version.js';
import { Leftovers } from './leftovers.js';
import { ProcessTable } from './process-table.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';

const run = promisify(execFile);

export const NODE = 'node1';
/** The image of test pods: busybox only. */
export const BUSYBOX_IMAGE = 'docker.io/local/busybox:1';

const PROGRAMS = ['etcd', 'containerd', 'runc', 'ctr', 'kubectl', 'openssl', 'busybox', 'ip', 'curl'];
const KUBELET_SOCKET = '/var/lib/kubelet/device-plugins/kubelet.sock';
export const KUBELET_CHECKPOINT = '/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint';
const KUBELET_PORT = 10_250;
const LARGE = { maxBuffer: 64 * 1024 * 1024 };
const PORT = { api: 16_543, etcd: 23_890, etcdPeer: 23_990 } as const;
const ETCD = `http://127.0.0.1:${PORT.etcd}`;
export const STATE_VARIABLE = 'GPU_MANAGER_E2E_STATE';
/**
 * State of test clusters. Not below a home directory: containers in user namespaces need search permission on every
 * parent directory.
 */
export const STATE = process.env[STATE_VARIABLE] ?? '/var/lib/gpu-manager-e2e';
/** The network device that pods outside the node's network share; it is connected to no other network. */
const BRIDGE = 'gm-e2e0';
const CGROUP2_MAGIC = 0x63677270;

/** Reason why no cluster of this version can start here, or null. */
export function whyNoCluster(find: () => KubernetesVersion = chosenVersion): string | null {
  if (process.getuid?.() !== 0) return 'needs root';
  let version: KubernetesVersion;
  try {
    version = find();
  } catch (error) {
    return (error as Error).message;
  }
  const { missing } = version;
  if (missing.length > 0)
    return `no ${missing.join(', ')} in ${version.directory}: run npm run kubernetes -- build ${version.name}`;
  const absent = PROGRAMS.filter((name) => !isInPath(name, version));
  if (absent.length > 0) return `${absent.join(', ')} not installed`;
  return null;
}

function isInPath(name: string, version: KubernetesVersion): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore', env: version.environment });
    return true;
  } catch {
    return false;
  }
}

export interface ClusterOptions {
  readonly schedulerArgs?: readonly string[];
  readonly apiServerArgs?: readonly string[];
  /** Continues with the state of the cluster that was stopped last, as an upgrade does. */
  readonly keepState?: boolean;
}

export interface KubeletOptions {
  /** By default the version of the cluster. */
  readonly version?: KubernetesVersion;
  /** Fields of its configuration file, beside those of every test. */
  readonly settings?: object;
  readonly environment?: Readonly<Record<string, string>>;
  /** Flags, beside those of every test. */
  readonly flags?: readonly string[];
}

/** What the kubelet keeps of the devices that it may give, by resource. */
interface KubeletCheckpoint {
  readonly Data: { readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>> };
}

/** A real Kubernetes of one node on loopback: etcd, API server, controllers, scheduler, containerd, kubelet. */
export class TestCluster {
  readonly directory = join(STATE, 'cluster');
  readonly kubeconfig = join(this.directory, 'kubeconfig');
  readonly containerdSocket = join(this.directory, 'containerd.sock');
  /** Socket of containerd's Node Resource Interface; Kubernetes before 1.30 is tested with a containerd without one. */
  readonly nriSocket = join(this.directory, 'nri.sock');
  readonly version: KubernetesVersion;
  readonly processes: ProcessTable;
  readonly leftovers = new Leftovers(this.directory, BRIDGE);

  constructor(version: KubernetesVersion = chosenVersion()) {
    this.version = version;
    this.processes = new ProcessTable(join(this.directory, 'processes'), version.environment);
    // From here on, programs started by name are those of this version.
    process.env.PATH = version.environment.PATH;
  }

  get #tls(): ReturnType<typeof certificates> {
    return certificates(join(STATE, 'certificates'));
  }

  async start(options: ClusterOptions = {}): Promise<void> {
    await this.startServer(options);
    this.#startControllers(options);
    this.processes.start('containerd', 'containerd', ['--config', join(this.directory, 'containerd.toml')]);
    await until('containerd', async () => run('ctr', ['-a', this.containerdSocket, 'version']).then(() => true));
    importImage(this.containerdSocket, BUSYBOX_IMAGE);
    this.startKubelet();
    await until('service accounts', async () => (await this.kubectl('get', 'serviceaccount', 'default')) !== '');
    await until(`${NODE} to be ready`, async () => /\sReady\s/.test(await this.kubectl('get', 'node', NODE)), 120_000);
  }

  /**
   * Replaces the API server, the controllers and the kubelet of another version by those of this one, on the same
   * etcd and container runtime, while the containers run.
   */
  async takeOver(): Promise<void> {
    for (const name of ['kubelet', 'scheduler', 'controller-manager', 'apiserver']) await this.processes.stop(name);
    await this.#startApiServer();
    this.#startControllers();
    this.startKubelet();
  }

  #startControllers(options: ClusterOptions = {}): void {
    this.processes.start('controller-manager', this.version.program('kube-controller-manager'), [
      `--kubeconfig=${this.kubeconfig}`,
      `--service-account-private-key-file=${this.#tls.saKey}`,
      `--root-ca-file=${this.#tls.ca}`,
      '--leader-elect=false',
      '--use-service-account-credentials',
      this.noPort,
      '--bind-address=127.0.0.1',
    ]);
    this.startScheduler([`--kubeconfig=${this.kubeconfig}`, '--leader-elect=false', ...(options.schedulerArgs ?? [])]);
  }

  /** Starts the kubelet. */
  startKubelet({ version = this.version, settings = {}, environment = {}, flags = [] }: KubeletOptions = {}): void {
    this.#writeKubeletFile(version, settings);
    const runtime = version.atLeast(27)
      ? []
      : ['--container-runtime=remote', `--container-runtime-endpoint=unix://${this.containerdSocket}`];
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    this.processes.start('kubelet', 'env', [
      ...variables,
      version.program('kubelet'),
      `--config=${join(this.directory, 'kubelet.yaml')}`,
      `--kubeconfig=${this.kubeconfig}`,
      ...runtime,
      `--hostname-override=${NODE}`,
      '--v=2',
      ...flags,
    ]);
  }

  /** Starts the scheduler with these arguments, by default without its server; a running one must have been stopped. */
  startScheduler(args: readonly string[], server: readonly string[] = [this.noPort]): void {
    this.processes.start('scheduler', this.version.program('kube-scheduler'), [
      ...args,
      ...server,
      '--bind-address=127.0.0.1',
    ]);
  }

  /** The flag that turns off the server of a component in this version. */
  get noPort(): string {
    return this.version.atLeast(24) ? '--secure-port=0' : '--port=0';
  }

  /** Runs etcd and the API server only; all other daemons are ended first. */
  async startServer(options: ClusterOptions = {}): Promise<void> {
    await this.stop();
    if (options.keepState !== true) this.leftovers.removeState();
    mkdirSync(join(this.directory, 'processes'), { recursive: true });
    nameNode(NODE);
    this.#writeFiles(`https://127.0.0.1:${PORT.api}`, this.#tls.ca);
    const peer = `http://127.0.0.1:${PORT.etcdPeer}`;
    this.processes.start('etcd', 'etcd', [
      '--data-dir',
      join(this.directory, 'etcd'),
      '--listen-client-urls',
      ETCD,
      '--advertise-client-urls',
      ETCD,
      '--listen-peer-urls',
      peer,
      '--initial-advertise-peer-urls',
      peer,
      '--initial-cluster',
      `default=${peer}`,
    ]);
    await this.#startApiServer(options);
  }

  async #startApiServer(options: ClusterOptions = {}): Promise<void> {
    const tls = this.#tls;
    this.processes.start('apiserver', this.version.program('kube-apiserver'), [
      `--etcd-servers=${ETCD}`,
      `--secure-port=${PORT.api}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      // An address of the loopback range may not become an endpoint; from 1.37 on the API server ends for it.
      '--endpoint-reconciler-type=none',
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
  }

  /** Runs kubectl and returns its output; rejects with its error output. */
  async kubectl(...args: string[]): Promise<string> {
    const { stdout } = await run('kubectl', ['--kubeconfig', this.kubeconfig, ...args], LARGE);
    return stdout.trim();
  }

  /** Deletes pods and waits until the kubelet has ended them. */
  async removePods(...names: readonly string[]): Promise<void> {
    await this.kubectl('delete', 'pods', ...names, '--wait=true', `--timeout=${timeLimit(60)}s`);
  }

  /** Address of the API server for a pod of the node's network: the address of its service is not reachable here. */
  readonly apiServer = { host: '127.0.0.1', port: PORT.api } as const;

  /** Applies objects unchanged. */
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

  /**
   * Waits until the current kubelet has the lists of these resources and has admitted the pods of the node again. The
   * API server would still show the report of an earlier kubelet; a kubelet counts registrations from its own start,
   * and writes its checkpoint, with the devices that it may give, for every list that it accepts.
   */
  async kubeletIsBack(...resources: readonly string[]): Promise<void> {
    const pods = (
      await this.kubectl('get', 'pods', '-A', `--field-selector=spec.nodeName=${NODE}`, '-o', 'name')
    ).split('\n');
    await until('the kubelet to have its device plugins and its pods', async () => {
      const metrics = await this.#askKubelet('metrics');
      const registered = resources.every((name) =>
        new RegExp(`^kubelet_device_plugin_registration_total\\{resource_name="${name}"\\} [1-9]`, 'm').test(metrics),
      );
      const { items } = JSON.parse(await this.#askKubelet('pods')) as { readonly items: readonly object[] | null };
      const isNew = statSync(KUBELET_CHECKPOINT).mtimeMs > this.processes.startedAt('kubelet');
      const { Data } = JSON.parse(readFileSync(KUBELET_CHECKPOINT, 'utf8')) as KubeletCheckpoint;
      const listed = resources.every((name) => (Data.RegisteredDevices[name] ?? []).length > 0);
      return registered && isNew && listed && (items ?? []).length >= pods.filter((name) => name !== '').length;
    });
  }

  async #askKubelet(path: string): Promise<string> {
    return (await run('curl', ['-sk', `https://127.0.0.1:${KUBELET_PORT}/${path}`], LARGE)).stdout;
  }

  /**
   * Ends every process that was started, containers first, and removes their leftovers. The state on disk stays until
   * the next start.
   */
  async stop(): Promise<void> {
    for (const name of ['kubelet', 'scheduler', 'controller-manager']) await this.processes.stop(name);
    if (this.processes.isAlive('containerd')) await this.#endContainers();
    await this.processes.stopAll();
    await until(
      'the remains of the cluster to go',
      async () => {
        this.leftovers.remove();
        return this.leftovers.list().length === 0;
      },
      10_000,
    ).catch(() => undefined);
  }

  async #endContainers(): Promise<void> {
    const ctr = (...args: string[]): Promise<string> =>
      run('ctr', ['-a', this.containerdSocket, '-n', 'k8s.io', ...args]).then(
        ({ stdout }) => stdout,
        () => '',
      );
    const containers = (await ctr('containers', 'ls', '-q')).split('\n').filter((line) => line !== '');
    for (const container of containers) {
      await ctr('tasks', 'delete', '--force', container);
      await ctr('containers', 'delete', container);
    }
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
    writeFileSync(at('cni/10-pods.conflist'), JSON.stringify(this.#network()));
    writeFileSync(at('containerd.toml'), this.#containerdFile());
  }

  /**
   * Pods outside the node's network get an interface of their own without a connection; on old versions loopback only.
   */
  #network(): object {
    if (!this.version.atLeast(30)) return { cniVersion: '0.4.0', name: 'lo', plugins: [{ type: 'loopback' }] };
    const ipam = {
      type: 'host-local',
      dataDir: join(this.directory, 'cni-ips'),
      ranges: [[{ subnet: '127.89.0.0/16' }]],
    };
    return {
      cniVersion: '1.0.0',
      name: 'pods',
      plugins: [{ type: 'bridge', bridge: BRIDGE, isGateway: false, ipam }],
    };
  }

  /** `restrict_oom_score_adj`: a sandbox without CAP_SYS_RESOURCE cannot lower OOM scores. */
  #containerdFile(): string {
    const at = (name: string): string => join(this.directory, name);
    if (!this.version.atLeast(30))
      return `version = 2
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
`;
    return `version = 3
root = "${at('containerd')}"
state = "${at('containerd-state')}"
[grpc]
  address = "${this.containerdSocket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${at('containerd-opt')}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${BUSYBOX_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["${this.version.program('cni')}"]
    conf_dir = "${at('cni')}"
[plugins."io.containerd.nri.v1.nri"]
  socket_path = "${this.nriSocket}"
  plugin_path = "${at('nri-plugins')}"
  plugin_config_path = "${at('nri-conf')}"
`;
  }

  #writeKubeletFile(version: KubernetesVersion, settings: object): void {
    const controlGroups2 = statfsSync('/sys/fs/cgroup').type === CGROUP2_MAGIC;
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
      maxPods: 500,
      staticPodPath: join(this.directory, 'static-pods'),
      ...(version.atLeast(27) ? { containerRuntimeEndpoint: `unix://${this.containerdSocket}` } : {}),
      // From 1.35 on a kubelet needs permission to use control groups v1; 1.31 was the first to know the field.
      ...(version.atLeast(31) && !controlGroups2 ? { failCgroupV1: false } : {}),
      ...settings,
    };
    mkdirSync(kubelet.staticPodPath, { recursive: true });
    writeFileSync(join(this.directory, 'kubelet.yaml'), JSON.stringify(kubelet));
  }
}

/** Gives a node the address of loopback, by which the API server reaches its kubelet. */
export function nameNode(name: string): void {
  const hosts = readFileSync('/etc/hosts', 'utf8');
  if (!new RegExp(`\\s${name}$`, 'm').test(hosts))
    writeFileSync('/etc/hosts', `${hosts.trimEnd()}\n127.0.0.1 ${name}\n`);
}

/** True while a kubelet serves on this machine: two cannot share /var/lib/kubelet. */
export function kubeletIsRunning(): boolean {
  if (!existsSync(KUBELET_SOCKET)) return false;
  return readFileSync('/proc/net/unix', 'utf8').includes(KUBELET_SOCKET);
}
