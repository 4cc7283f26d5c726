import { access, readFile, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../host/clock.js';
import { charLinkCommand, missingCharLinks } from '../../host/char-links.js';
import type { Log } from '../../host/log.js';
import { hostDevices, nvidiaNodeNames } from '../../host/nvidia-nodes.js';
import {
  KUBELET_CHECKPOINT_FILE,
  ONE_PLUGIN,
  readKubeletCheckpoint,
  PodResourcesClient,
  kubeletFile,
} from '../device-plugin/index.js';
import { CPU_MANAGER_FILE, readCpuManagerPolicy, type NriConfig } from '../nri/index.js';
import {
  NODE_ARCHITECTURE,
  openHostRoot,
  findHostLibrary,
  describeControlLibrary,
  type LibrariesConfig,
  hostLibraries,
} from '../libraries/index.js';
import { connectConfiguredRuntime, type RuntimeConfig } from '../runtimes/index.js';
import { failed, ok, reasonOf, skipped, warning, type Check, type Diagnosis } from './diagnosis.js';
import { examineClaims } from './claims.js';
import { examineMemoryLimits } from './memory-limits.js';
import { examineMps } from './mps.js';
import { examineInterposition, examineMirror } from './interposition.js';
import { openDriver, type DriverConfig, type SmGpus } from '../gpus/index.js';
import type { ApiServerConfig } from '../api-server/index.js';
import type { ClaimsConfig } from '../claims/index.js';
import type { MemoryEnforcement } from '../slices/index.js';

/** The flags of the agent that are checked. */
export interface DoctorConfig
  extends ApiServerConfig, ClaimsConfig, DriverConfig, LibrariesConfig, NriConfig, RuntimeConfig {
  readonly displaySocket: string;
  readonly devicePluginPath: string;
  readonly podResourcesSocket: string;
  /** Absent: auto. */
  readonly memoryEnforcement?: MemoryEnforcement;
  /** Absent: none. */
  readonly smGpus?: SmGpus;
  readonly mpsControlPath?: string;
}

export interface DoctorOptions {
  readonly config: DoctorConfig;
  readonly clock: Clock;
  readonly log: Log;
  /** Reasons why the running agent is not ready; null when it does not answer. */
  readonly agentWaitsFor: () => Promise<readonly string[] | null>;
}

/**
 * Checks everything that a node needs to share GPUs, in order; changes nothing. Never rejects: an error becomes a
 * diagnosis.
 */
export async function* examine(options: DoctorOptions): AsyncIterable<Diagnosis> {
  const { config } = options;
  const checks: readonly (readonly [Check, () => Promise<readonly Diagnosis[]>])[] = [
    ['driver', () => examineDriver(options)],
    ['libraries', () => examineLibraries(config)],
    ['devices', () => Promise.resolve(examineDevices(config))],
    ['native', () => examineNative(config)],
    ['mirror', () => examineMirror(config)],
    ['interposition', () => examineInterposition(config)],
    ['kubelet', () => examineKubelet(config)],
    ['runtime', () => examineRuntime(config)],
    ['claims', () => examineClaims(options)],
    ['nri', () => examineNri(config)],
    ['cgroups', () => examineCgroups()],
    ['memory', () => examineMemoryLimits(options)],
    ['mps', () => examineMps(options)],
    ['agent', () => examineAgent(options)],
  ];
  for (const [check, look] of checks) {
    try {
      yield* await look();
    } catch (error) {
      yield failed(
        check,
        reasonOf(error),
        'this check itself failed; run it as the user of the agent and in its container',
      );
    }
  }
}

async function examineDriver({ config, clock, log }: DoctorOptions): Promise<readonly Diagnosis[]> {
  if (config.driver === 'dummy') return [skipped('driver', '--driver=dummy manages no GPU')];
  let driver;
  try {
    driver = await openDriver(config, hostLibraries(config.hostRoot), clock, log);
    const { driverVersion, gpus, excluded, notes } = await driver.inventory();
    const advice = 'see docs/reference/gpus.md; the agent does not change GPUs that it cannot share';
    return [
      gpus.length === 0
        ? failed(
            'driver',
            'the driver answers, but has no GPU that can be shared',
            'check nvidia-smi on the host; this node needs no agent if it has no GPU',
          )
        : ok(
            'driver',
            `${config.driver} ${driverVersion ?? 'of unknown version'}, ${gpus.length} GPUs: ${[...new Set(gpus.map(({ model }) => model))].join(', ')}`,
          ),
      ...excluded.map(({ gpu, reason }) => warning('driver', `GPU ${gpu.index} is excluded: ${reason}`, advice)),
      ...notes.map((note) => warning('driver', note, advice)),
    ];
  } catch (error) {
    return [
      failed(
        'driver',
        reasonOf(error),
        'load the kernel module on the host (modprobe nvidia; nvidia-smi must list the GPUs), and mount the host at --host-root or name libnvidia-ml with --nvml-path',
      ),
    ];
  } finally {
    // A GPU that hangs was reported already.
    await driver?.close().catch(() => undefined);
  }
}

async function examineLibraries(config: DoctorConfig): Promise<readonly Diagnosis[]> {
  if (config.driver !== 'nvidia')
    return [skipped('libraries', `--driver=${config.driver} needs no libraries of the host`)];
  const root = await openHostRoot(config.hostRoot);
  const found = await Promise.all(
    ['libcuda.so.1', 'libnvidia-ml.so.1'].map(async (name) => ({
      name,
      path: await findHostLibrary(root, name, NODE_ARCHITECTURE),
    })),
  );
  return found.map(({ name, path }) =>
    path === null
      ? failed(
          'libraries',
          `${name} is not among the libraries of the host below ${config.hostRoot}`,
          "install the driver's user space on the host (packages libnvidia-compute or nvidia-driver-cuda), and mount the host's / at --host-root",
        )
      : ok('libraries', `${name}: ${path}`),
  );
}

function examineDevices({ driver, hostRoot }: DoctorConfig): readonly Diagnosis[] {
  if (driver !== 'nvidia') return [skipped('devices', `--driver=${driver} hands out no device nodes of the host`)];
  const devices = hostDevices(hostRoot);
  const nodes = nvidiaNodeNames(devices);
  if (nodes.length === 0) return [skipped('devices', `the driver has no device nodes below ${devices}`)];
  const missing = missingCharLinks(nodes, devices);
  if (missing.length === 0) return [ok('devices', `systemd can find ${nodes.length} device nodes below ${devices}`)];
  return missing.map((link) =>
    warning(
      'devices',
      `/dev/${link.path} does not lead to ${basename(link.target)}: where systemd manages control groups, systemctl daemon-reload takes this device from running containers`,
      `the agent makes the link at its start if it can write the host's /dev; else run at each boot: ${charLinkCommand([link])}`,
    ),
  );
}

async function examineNative(config: DoctorConfig): Promise<readonly Diagnosis[]> {
  try {
    await Promise.all(
      ['libcuda-control.so', 'libnvml-control.so'].map((name) => describeControlLibrary(join(config.nativePath, name))),
    );
    await access(join(config.nativePath, 'gpu-client'));
    return [ok('native', `control libraries and gpu-client are in ${config.nativePath}`)];
  } catch (error) {
    return [
      failed(
        'native',
        reasonOf(error),
        'build them with npm run native, or set --native-path to their directory in the image',
      ),
    ];
  }
}

async function examineKubelet(config: DoctorConfig): Promise<readonly Diagnosis[]> {
  const socket = join(config.devicePluginPath, 'kubelet.sock');
  const problem = await socketProblem(socket);
  if (problem !== null)
    return [
      failed(
        'kubelet',
        `${socket}: ${problem}`,
        'the kubelet creates it; mount its device plugin directory at --device-plugin-path',
      ),
    ];
  const results = [ok('kubelet', `listens at ${socket}`)];
  const client = new PodResourcesClient(config.podResourcesSocket);
  try {
    results.push(ok('kubelet', `pod-resources lists ${(await client.list()).length} containers`));
  } catch (error) {
    results.push(
      warning(
        'kubelet',
        `pod-resources at ${config.podResourcesSocket} does not answer: ${reasonOf(error)}`,
        "mount its directory at --pod-resources-socket; without it the agent only has the kubelet's checkpoint",
      ),
    );
  } finally {
    client.close();
  }
  const checkpoint = await readKubeletCheckpoint(join(config.devicePluginPath, KUBELET_CHECKPOINT_FILE));
  if (checkpoint.ok) {
    const { entries, ofNvidia } = checkpoint;
    results.push(ok('kubelet', `its checkpoint names ${entries.length} holders of devices`));
    if (ofNvidia.length > 0)
      results.push(warning('kubelet', `NVIDIA's device plugin offers ${ofNvidia.join(' and ')} here too`, ONE_PLUGIN));
  } else
    results.push(
      warning(
        'kubelet',
        `its checkpoint cannot be read: ${checkpoint.reason}`,
        'it appears with the first pod that gets a device; with an unknown format, init containers are not known',
      ),
    );
  return results;
}

/** Why a unix socket does not answer; null if it does. */
async function socketProblem(path: string): Promise<string | null> {
  try {
    if (!(await stat(path)).isSocket()) return 'is not a socket';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? reasonOf(error);
  }
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(null);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

async function examineRuntime(config: DoctorConfig): Promise<readonly Diagnosis[]> {
  try {
    const runtime = await connectConfiguredRuntime(config);
    try {
      const { name, version, protocol } = await runtime.version();
      return [ok('runtime', `${name} ${version} (${protocol}) at ${runtime.endpoint}`)];
    } finally {
      runtime.close();
    }
  } catch (error) {
    return [
      warning(
        'runtime',
        reasonOf(error),
        "mount the runtime's socket, or name it with --container-runtime-endpoint; without it the container names of processes without the control library are unknown",
      ),
    ];
  }
}

async function examineNri(config: DoctorConfig): Promise<readonly Diagnosis[]> {
  const { nriSocket, cpuAffinity, podResourcesSocket, hostRoot } = config;
  if (nriSocket === null) return [skipped('nri', 'without --nri the Node Resource Interface is not used')];
  const problem = await socketProblem(nriSocket);
  const results = [
    problem === null
      ? ok('nri', `listens at ${nriSocket}`)
      : warning(
          'nri',
          `${nriSocket}: ${problem}`,
          'containerd 2 and CRI-O 1.30 create it; containerd 1.7 needs disable = false in [plugins."io.containerd.nri.v1.nri"]; set another path with --nri-socket',
        ),
  ];
  if (cpuAffinity === 'off') return results;
  const state = kubeletFile(dirname(podResourcesSocket), hostRoot, CPU_MANAGER_FILE);
  const policy = await readCpuManagerPolicy(state);
  const binds = policy === 'none' ? null : `--cpu-affinity=${cpuAffinity} binds nothing`;
  return [
    ...results,
    binds === null
      ? ok('nri', 'the CPU manager of the kubelet has the policy none: containers are bound to CPUs near their GPUs')
      : policy === null
        ? warning(
            'nri',
            `${state} cannot be read: ${binds}`,
            "mount the kubelet's root, or the host's / at --host-root",
          )
        : warning(
            'nri',
            `the CPU manager of the kubelet has the policy ${policy}: ${binds}`,
            "leave CPUs to the kubelet and its topology manager, or set cpuManagerPolicy: none in the kubelet's configuration",
          ),
  ];
}

/** Magic numbers of statfs(2). */
const CGROUP2_MAGIC = 0x6367_7270;

async function examineCgroups(): Promise<readonly Diagnosis[]> {
  const own = (await readFile('/proc/1/cgroup', 'utf8').catch(() => '')).trim();
  const { type } = await statfs('/sys/fs/cgroup');
  const version = type === CGROUP2_MAGIC ? 'version 2' : 'version 1';
  if (own === '')
    return [failed('cgroups', 'processes of the host cannot be seen', 'run the agent with hostPID: true')];
  return [ok('cgroups', `${version} at /sys/fs/cgroup`)];
}

async function examineAgent({ config, agentWaitsFor }: DoctorOptions): Promise<readonly Diagnosis[]> {
  const waiting = await agentWaitsFor();
  if (waiting === null)
    return [
      warning(
        'agent',
        `no agent answers at ${config.displaySocket}`,
        'start it (gpu-manager run), or name its socket with --display-socket',
      ),
    ];
  if (waiting.length === 0) return [ok('agent', 'is running and can serve pods')];
  return waiting.map((reason) =>
    failed('agent', `is running and cannot serve pods: ${reason}`, 'see the checks above and its log'),
  );
}
