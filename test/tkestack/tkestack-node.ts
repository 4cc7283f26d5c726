import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { packageFile } from '../../src/host/package-files.js';
import { criProto } from '../../src/rpc/proto.js';
import { UnixRpcServer } from '../../src/rpc/rpc-server.js';
import { RpcRefusal, unary } from '../../src/rpc/unary.js';
import { KubeletEmulator, type Admission, type EmulatorOptions } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedContainer, EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { MAIN } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';

export const NODE = 'node-1';
export const CHECKPOINT = '/etc/gpu-manager/checkpoint/gpumanager_internal_checkpoint';
export const KUBELET_CHECKPOINT = '/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint';
interface SimulatedGpus {
  readonly gpus: readonly { readonly memoryMiB: number }[];
  readonly links: readonly (readonly string[])[];
}

/** Two pairs of GPUs of 16 GiB. */
export const GPUS: SimulatedGpus = {
  gpus: [0, 1, 2, 3].map(() => ({ memoryMiB: 16_384 })),
  links: [
    ['X', 'PIX', 'PHB', 'PHB'],
    ['PIX', 'X', 'PHB', 'PHB'],
    ['PHB', 'PHB', 'X', 'PIX'],
    ['PHB', 'PHB', 'PIX', 'X'],
  ],
};
/**
 * The same under one bridge. Of two pairs that are equally free the original takes either one, because it keeps the
 * branches of its tree in a Go map. Of the GPUs of one branch it takes the lowest minor number.
 */
export const GPUS_UNDER_ONE_BRIDGE: SimulatedGpus = {
  gpus: GPUS.gpus,
  links: GPUS.links.map((row) => row.map((link) => (link === 'X' ? 'X' : 'PIX'))),
};
const SIMULATED_NODE = '/etc/simulated-gpus.json';
const KUBECONFIG = '/etc/kubeconfig';
const CRI_SOCKET = '/run/cri.sock';
const NOT_FOUND = 5;

/** A pod whose containers have the given cores and blocks of memory. */
export function podOf(
  number: number,
  name: string,
  containers: readonly (readonly [name: string, cores: number, memoryBlocks: number])[],
): EmulatedPod {
  return {
    uid: `a0000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    namespace: 'default',
    name,
    initContainers: [],
    containers: containers.map(([container, cores, memoryBlocks]) => ({ name: container, cores, memoryBlocks })),
  };
}

/** Creates a node with so many GPUs of 16 GiB. */
export function seedNode(api: ApiServer, name: string, gpus: number): void {
  const amounts = {
    ...{ cpu: '64', memory: '256Gi', pods: '110' },
    'tencent.com/vcuda-core': String(gpus * 100),
    'tencent.com/vcuda-memory': String(gpus * 64),
  };
  api.seed('nodes', {
    // The original panics on a node without labels.
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    spec: {},
    status: { capacity: amounts, allocatable: amounts },
  });
}

interface RunningContainer {
  readonly id: string;
  readonly pod: EmulatedPod;
  readonly name: string;
  readonly cgroup: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mounts: readonly { readonly hostPath: string; readonly containerPath: string }[];
  readonly pid: number;
}

/** What the node's programs are: the real daemon of tkestack, or this project's agent with the same flags. */
export type Daemon = 'original' | 'ours';

/**
 * The node of one run, in the namespaces of `private-node`: simulated GPUs, an emulated kubelet, runtime and API
 * server, and real processes in control groups as containers.
 */
export class TkestackNode {
  readonly api = new ApiServer();
  readonly #programs: string;
  readonly #logs: string;
  readonly #gpus: SimulatedGpus;
  readonly #containers = new Map<string, RunningContainer>();
  readonly #processes = new Set<ChildProcess>();
  readonly #cri: UnixRpcServer;
  #kubelet: KubeletEmulator | null = null;
  #daemon: ChildProcess | null = null;
  #kind: Daemon = 'original';
  #port = 0;

  /** `programs` has the original's programs; logs are written to `logs`. */
  constructor(programs: string, logs: string, gpus = GPUS) {
    this.#programs = programs;
    this.#logs = logs;
    this.#gpus = gpus;
    mkdirSync(logs, { recursive: true });
    this.#cri = this.#runtime();
  }

  get kubelet(): KubeletEmulator {
    if (this.#kubelet === null) throw new Error('the kubelet is not running');
    return this.#kubelet;
  }

  async start(): Promise<void> {
    // Of an earlier node of the same test.
    for (const name of ['checkpoint', 'vm']) rmSync(`/etc/gpu-manager/${name}`, { recursive: true, force: true });
    await this.api.start();
    seedNode(this.api, NODE, this.#gpus.gpus.length);
    writeFileSync(KUBECONFIG, kubeconfig({ url: this.api.url }, {}));
    writeFileSync(SIMULATED_NODE, JSON.stringify(this.#gpus));
    // The original ends where it is missing.
    writeFileSync(KUBELET_CHECKPOINT, '{"Data":{"PodDeviceEntries":[],"RegisteredDevices":{}},"Checksum":0}');
    await this.#cri.start();
  }

  async stop(): Promise<void> {
    await this.stopDaemon('SIGKILL');
    await this.#kubelet?.stop();
    // Also one that has not yet entered its control group: the test would wait for it.
    for (const child of this.#processes) child.kill('SIGKILL');
    await this.#cri.stop();
    await this.api.stop();
  }

  /** Starts a daemon, and the kubelet with it: the original's has no preferences. */
  async startDaemon(daemon: Daemon): Promise<void> {
    await this.#kubelet?.stop();
    this.#kubelet = new KubeletEmulator({
      directory: '/var/lib/kubelet/device-plugins',
      podResourcesSocket: '/var/lib/kubelet/pod-resources/kubelet.sock',
      usesPreferences: daemon === 'ours',
    } satisfies EmulatorOptions);
    await this.#kubelet.start();
    for (const { pod } of this.#containers.values()) await this.#kubelet.inherit(pod, []);
    this.#port = await freePort();
    const flags = [
      '--extra-config=/etc/gpu-manager/extra-config.json',
      `--hostname-override=${NODE}`,
      '--share-mode=true',
      '--volume-config=/etc/gpu-manager/volume.conf',
      '--query-addr=127.0.0.1',
      `--query-port=${this.#port}`,
      `--kubeconfig=${KUBECONFIG}`,
      `--container-runtime-endpoint=${CRI_SOCKET}`,
      '--allocation-check-period=2',
    ];
    const log = openSync(join(this.#logs, `${daemon}.log`), 'a');
    const [program, ...before] =
      daemon === 'original'
        ? [join(this.#programs, 'gpu-manager'), '--logtostderr=true', '--v=4']
        : [process.execPath, MAIN, 'run', `--native-path=${packageFile('native/build')}`];
    const child = spawn(program ?? '', [...before, ...flags], {
      env: { ...this.#driverEnvironment(), HOME: '/tmp' },
      stdio: ['ignore', log, log],
    });
    [this.#daemon, this.#kind] = [child, daemon];
    const { kubelet } = this;
    await kubelet.until(() => {
      if (child.exitCode !== null) throw new Error(`${daemon} ended with ${child.exitCode}, see ${this.#logs}`);
      return kubelet.allocatable('core') > 0 && kubelet.allocatable('memory') > 0;
    }, timeLimit(120_000));
    await until('the daemon to answer', async () => (await fetch(this.#url('/version'))).ok);
  }

  async stopDaemon(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#daemon;
    this.#daemon = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit');
  }

  /** Creates the pod, admits it and starts its containers, each with a process that has a context on its GPU. */
  async run(pod: EmulatedPod, { works = true }: { readonly works?: boolean } = {}): Promise<Admission> {
    if (this.api.read('pods', pod.namespace, pod.name) === null) this.submit(pod, NODE);
    // The daemons look for waiting pods in what they have watched.
    await delay(500);
    const admission = await this.kubelet.admit(pod);
    if (!admission.ok) {
      this.#status(pod, { phase: 'Failed', reason: 'UnexpectedAdmissionError', message: admission.message });
      return admission;
    }
    for (const { name } of pod.containers) await this.kubelet.startContainer(pod.uid, name);
    for (const given of admission.containers) await this.#startContainer(pod, given, works);
    this.#status(pod, {
      phase: 'Running',
      qosClass: 'BestEffort',
      containerStatuses: [...this.#containers.values()]
        .filter((container) => container.pod.uid === pod.uid)
        .map(({ id, name }) => ({ name, ready: true, state: { running: {} }, containerID: `containerd://${id}` })),
    });
    await until('the daemon to know the pod', async () => pod.uid in (await this.usage()));
    return admission;
  }

  /** A pod as the API server has it; without a node the scheduler has yet to find one. */
  submit(pod: EmulatedPod, nodeName: string | null): void {
    this.api.seed('pods', {
      metadata: {
        name: pod.name,
        namespace: pod.namespace,
        uid: pod.uid,
        annotations: {},
        creationTimestamp: new Date().toISOString(),
      },
      spec: {
        ...(nodeName === null ? {} : { nodeName }),
        containers: pod.containers.map((container) => ({
          name: container.name,
          image: 'program',
          resources: resourcesOf(container),
        })),
      },
      status: { phase: 'Pending' },
    });
  }

  bind(pod: EmulatedPod): void {
    this.api.edit('pods', pod.namespace, pod.name, (object) => ({
      ...object,
      spec: { ...(object['spec'] as object), nodeName: NODE },
    }));
  }

  /** The pod has ended and is deleted. */
  async end(pod: EmulatedPod): Promise<void> {
    this.api.remove('pods', pod.namespace, pod.name);
    // The original frees what pods had that its informer does not have any more.
    if (this.#kind === 'original')
      await until('the daemon to forget the pod', async () => !(pod.uid in (await this.usage())));
    for (const [id, container] of this.#containers) {
      if (container.pod.uid !== pod.uid) continue;
      endProcesses(container.cgroup);
      this.#containers.delete(id);
    }
    this.kubelet.remove(pod.uid);
    // The kubelet frees devices when it admits the next pod.
    await this.kubelet.admit({ ...podOf(999, 'none', []), containers: [] });
    this.kubelet.remove(podOf(999, 'none', []).uid);
  }

  container(pod: EmulatedPod, name: string): RunningContainer {
    const found = [...this.#containers.values()].find((entry) => entry.pod.uid === pod.uid && entry.name === name);
    if (found === undefined) throw new Error(`no container ${pod.name}/${name}`);
    return found;
  }

  /** The original's client registers in a container, as its control library does before it reads the limits. */
  async register(pod: EmulatedPod, name: string): Promise<number> {
    const { id } = this.container(pod, name);
    const client = join(this.#programs, 'gpu-client');
    const child = this.#inside(
      this.container(pod, name),
      `exec '${client}' --addr /etc/vcuda/vcuda.sock --bus-id 0 --pod-uid ${pod.uid} --cont-id ${id}`,
    );
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? -1;
  }

  async answer(path: string): Promise<string> {
    return (await fetch(this.#url(path))).text();
  }

  async usage(): Promise<Usage> {
    return (JSON.parse(await this.answer('/usage')) as { usage?: Usage }).usage ?? {};
  }

  /** Free cores and MiB of each GPU, by `/graph`. */
  async free(): Promise<readonly string[]> {
    const { graph } = JSON.parse(await this.answer('/graph')) as { graph: string };
    return graph
      .split('\n')
      .flatMap((line) => {
        const found = /GPU(\d+) .*allocatableCores: (\d+), allocatableMemory: (\d+)\)/.exec(line);
        return found === null ? [] : [`GPU${found[1]}: ${found[2]} cores, ${Number(found[3]) / (1 << 20)} MiB`];
      })
      .sort();
  }

  #url(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  #driverEnvironment(): NodeJS.ProcessEnv {
    return {
      PATH: process.env['PATH'],
      GPU_SIM_NODE: SIMULATED_NODE,
      GPU_SIM_STATE: '/dev/shm/simulated-gpus',
      LD_LIBRARY_PATH: '/var/lib/driver',
    };
  }

  #status(pod: EmulatedPod, status: object): void {
    this.api.edit('pods', pod.namespace, pod.name, (object) => ({ ...object, status }));
  }

  async #startContainer(
    pod: EmulatedPod,
    given: Extract<Admission, { ok: true }>['containers'][number],
    works: boolean,
  ): Promise<void> {
    const name = Buffer.from(given.name).toString('hex');
    const id = (pod.uid.replaceAll('-', '') + name).padEnd(64, 'f').slice(0, 64);
    const cgroup = `/sys/fs/cgroup/memory/kubepods/besteffort/pod${pod.uid}/${id}`;
    mkdirSync(cgroup, { recursive: true });
    const { environment, annotations } = given;
    const mounts = given.mounts.filter(({ containerPath }) => containerPath === '/etc/vcuda');
    const container = { id, pod, name: given.name, cgroup, environment, annotations, mounts };
    const { pid = 0 } = this.#inside(container, 'exec sleep 100000');
    this.#containers.set(id, { ...container, pid });
    await until('the container to run', () => processesIn(cgroup).includes(pid));
    if (!works) return;
    const { pid: tenant = 0 } = this.#inside(container, `exec '${packageFile('native/build/bench/tenant')}' 3600 idle`);
    await until('the program to run in the container', () => processesIn(cgroup).includes(tenant));
  }

  /** Runs a script as a process of the container: in its control group, with its environment and /etc/vcuda. */
  #inside(container: Omit<RunningContainer, 'pid'>, script: string): ChildProcess {
    const binds = container.mounts.map(
      ({ hostPath, containerPath }) => `mount --bind '${hostPath}' '${containerPath}'`,
    );
    const steps = [`echo $$ >'${container.cgroup}/cgroup.procs'`, ...binds, script].join(' && ');
    const log = openSync(join(this.#logs, 'containers.log'), 'a');
    const child = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', steps], {
      env: {
        ...this.#driverEnvironment(),
        CUDA_VISIBLE_DEVICES: container.environment['NVIDIA_VISIBLE_DEVICES'],
      },
      stdio: ['ignore', log, log],
    });
    this.#processes.add(child);
    child.once('exit', () => this.#processes.delete(child));
    return child;
  }

  /** A runtime of the version that the original asks for, on a socket. */
  #runtime(): UnixRpcServer {
    const listed = ({ id, pod, name, annotations }: RunningContainer): object => ({
      id,
      pod_sandbox_id: pod.uid,
      metadata: { name, attempt: 0 },
      state: 'CONTAINER_RUNNING',
      annotations,
      labels: {
        'io.kubernetes.container.name': name,
        'io.kubernetes.pod.name': pod.name,
        'io.kubernetes.pod.namespace': pod.namespace,
        'io.kubernetes.pod.uid': pod.uid,
      },
    });
    const answers: Readonly<Record<string, (request: Record<string, unknown>) => object>> = {
      Version: () => ({
        version: '0.1.0',
        runtime_name: 'containerd',
        runtime_version: '1.6.0',
        runtime_api_version: 'v1alpha2',
      }),
      Status: () => ({ status: { conditions: [] }, info: {} }),
      ListContainers: ({ filter }) => {
        const wanted = Object.entries(
          (filter as { label_selector?: Record<string, string> } | null)?.label_selector ?? {},
        );
        return {
          containers: [...this.#containers.values()]
            .map((container) => listed(container) as { labels: Record<string, string> })
            .filter(({ labels }) => wanted.every(([key, value]) => labels[key] === value)),
        };
      },
      ContainerStatus: ({ container_id: id }) => {
        const container = this.#containers.get(String(id));
        if (container === undefined) throw new RpcRefusal(NOT_FOUND, 'no such container');
        return {
          status: { ...listed(container), created_at: 1, started_at: 1 },
          info: { info: JSON.stringify({ pid: container.pid }) },
        };
      },
    };
    const methods = Object.entries(criProto().runtime.v1.RuntimeService.service)
      .filter(([name]) => name in answers)
      .map(([name, method]) => [name, { ...method, path: method.path.replace('/runtime.v1.', '/runtime.v1alpha2.') }]);
    return new UnixRpcServer(CRI_SOCKET, [
      {
        definition: Object.fromEntries(methods) as never,
        handlers: Object.fromEntries(
          Object.entries(answers).map(([name, answer]) => [
            name,
            unary(async (request: Record<string, unknown>) => answer(request)),
          ]),
        ),
      },
    ]);
  }
}

/** The part of `/usage` that both daemons answer. */
export type Usage = Readonly<
  Record<
    string,
    {
      readonly project: string;
      readonly spec: Readonly<Record<string, { readonly gpu?: number; readonly mem?: number }>>;
      readonly stat: Readonly<
        Record<
          string,
          {
            readonly dev: readonly {
              readonly card_idx: string;
              readonly mem?: number;
              readonly pids?: readonly number[];
            }[];
          }
        >
      >;
    }
  >
>;

function resourcesOf({ cores, memoryBlocks }: EmulatedContainer): object {
  const amounts = {
    ...(cores === 0 ? {} : { 'tencent.com/vcuda-core': String(cores) }),
    ...(memoryBlocks === 0 ? {} : { 'tencent.com/vcuda-memory': String(memoryBlocks) }),
  };
  return { limits: amounts, requests: amounts };
}

function processesIn(cgroup: string): number[] {
  return readFileSync(join(cgroup, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
}

function endProcesses(cgroup: string): void {
  for (const pid of processesIn(cgroup)) process.kill(pid, 'SIGKILL');
}
