import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { z } from 'zod';
import { ALLOCATION_MODES, type AgentConfig } from '../agent/config.js';
import { MIG_STRATEGIES } from '../gpu/mig.js';
import { CPU_AFFINITIES } from '../agent/nri/cpu-affinity.js';
import { AUDIT_POLICIES } from '../agent/slices/findings.js';
import { StartupError } from '../host/startup-error.js';
import type { LogLevel } from '../host/log.js';
import { packageFile } from '../host/package-files.js';

/** One flag of `gpu-manager run`. The table below is the only place that lists them. */
export interface Flag {
  readonly name: string;
  /** Placeholder of the value in the help; null for a switch, which also accepts `=true` and `=false`. */
  readonly value: string | null;
  readonly default: string;
  readonly help: string;
}

/** The flags of tkestack gpu-manager with its defaults, the flags of its earlier versions, and new flags. */
export const RUN_FLAGS: readonly Flag[] = [
  { name: 'driver', value: 'name', default: 'nvidia', help: 'GPUs to manage: nvidia, sim (simulated) or dummy (none)' },
  {
    name: 'sim-node',
    value: 'file',
    default: '',
    help: 'description of the simulated node: JSON, or the output of nvidia-smi topo -m; empty: one GPU',
  },
  {
    name: 'sim-state',
    value: 'dir',
    default: '',
    help: 'state folder of a simulated machine (GPU_SIM_STATE) on which programs run; empty: GPUs are simulated in the agent only',
  },
  {
    name: 'sim-device-path',
    value: 'dir',
    default: '/var/run/gpu-manager/devices',
    help: 'folder for the device nodes of simulated GPUs',
  },
  { name: 'nvml-path', value: 'file', default: '', help: 'path of libnvidia-ml; empty: search the usual places' },
  {
    name: 'health-config',
    value: 'file',
    default: '',
    help: 'JSON file with the classes of GPU errors; empty: etc/xid-classes.json',
  },
  {
    name: 'extra-config',
    value: 'file',
    default: '',
    help: 'JSON file with additional device nodes for every GPU container',
  },
  {
    name: 'volume-config',
    value: 'file',
    default: '',
    help: 'JSON file that lists the driver libraries to mirror; empty: none',
  },
  {
    name: 'host-root',
    value: 'dir',
    default: '',
    help: "mount point of the host's / or /usr; empty: /usr/local/host if it exists, else /",
  },
  {
    name: 'native-path',
    value: 'dir',
    default: '',
    help: 'folder of the control libraries and gpu-client; empty: the build folder',
  },
  {
    name: 'interposition',
    value: 'way',
    default: 'library-path',
    help: 'how containers find the control library: library-path, or cdi (kubelet 1.29 or later)',
  },
  {
    name: 'cdi-path',
    value: 'dir',
    default: '/etc/cdi',
    help: 'folder for CDI specifications; must survive a reboot, because the kubelet remembers devices',
  },
  {
    name: 'query-port',
    value: 'port',
    default: '5678',
    help: 'HTTP port of the page, graph, usage, version, metrics and probes',
  },
  { name: 'query-addr', value: 'address', default: 'localhost', help: 'HTTP address' },
  {
    name: 'probe-port',
    value: 'port',
    default: '',
    help: 'own HTTP port of the probes /healthz and /readyz, without TLS and tokens; empty: --query-port answers them',
  },
  { name: 'probe-addr', value: 'address', default: '0.0.0.0', help: 'address of --probe-port' },
  {
    name: 'tls-cert-file',
    value: 'file',
    default: '',
    help: 'TLS certificate (PEM), reloaded when it changes; empty: plain HTTP',
  },
  { name: 'tls-private-key-file', value: 'file', default: '', help: 'private key of the TLS certificate (PEM)' },
  {
    name: 'tls-self-signed',
    value: null,
    default: 'false',
    help: 'without certificate files, serve HTTPS with a certificate that the agent creates; clients cannot verify it',
  },
  {
    name: 'token-review',
    value: null,
    default: 'false',
    help: 'require a bearer token of the cluster that may get the path; files of the page and probes need none',
  },
  {
    name: 'display-socket',
    value: 'path',
    default: '/var/run/gpu-manager.sock',
    help: 'unix socket of the gRPC display service',
  },
  {
    name: 'kubeconfig',
    value: 'file',
    default: '',
    help: 'kubeconfig for the API server; empty: the service account of the pod',
  },
  {
    name: 'incluster-mode',
    value: null,
    default: 'true',
    help: 'use the service account of the pod if no kubeconfig is given',
  },
  {
    name: 'standalone',
    value: null,
    default: 'false',
    help: 'run without an API server; pods are known from the kubelet only',
  },
  {
    name: 'hostname-override',
    value: 'name',
    default: '',
    help: 'name of this node; empty: $NODE_NAME, else the host name',
  },
  { name: 'node-labels', value: 'k=v,...', default: '', help: 'labels to set on this node' },
  { name: 'sample-period', value: 'seconds', default: '1', help: 'polling interval of the GPU driver' },
  {
    name: 'low-priority-floor',
    value: 'cores',
    default: '5',
    help: 'cores of a GPU that its low slices get together while a high slice has work',
  },
  {
    name: 'virtual-manager-path',
    value: 'dir',
    default: '/etc/gpu-manager/vm',
    help: 'folder of the directories that containers see as /etc/vcuda',
  },
  {
    name: 'device-plugin-path',
    value: 'dir',
    default: '/var/lib/kubelet/device-plugins',
    help: 'folder of kubelet.sock and of the plugin sockets',
  },
  {
    name: 'plugin-proxy-path',
    value: 'dir',
    default: '',
    help: 'register with the device plugin proxy in this folder (gpu-manager plugin-proxy); empty: with the kubelet',
  },
  {
    name: 'pod-resources-socket',
    value: 'path',
    default: '/var/lib/kubelet/pod-resources/kubelet.sock',
    help: "socket of the kubelet's pod-resources service",
  },
  {
    name: 'checkpoint-path',
    value: 'dir',
    default: '/etc/gpu-manager/checkpoint',
    help: 'folder of the checkpoint',
  },
  {
    name: 'usage-tmpfs',
    value: null,
    default: 'false',
    help: 'keep each usage file in a tmpfs of its own size; needs the right to mount, with mount propagation to the host',
  },
  { name: 'share-mode', value: null, default: 'false', help: 'allocate parts of a GPU, not only whole GPUs' },
  {
    name: 'mig-strategy',
    value: 'strategy',
    default: 'none',
    help: 'GPUs that MIG divides: none (left out), shared (each instance is a GPU of 100 cores), or whole (each instance is one tencent.com/mig-<profile>)',
  },
  {
    name: 'allocation',
    value: 'mode',
    default: 'plugin',
    help: 'how pods get GPUs: plugin (device plugin), dra (resource claims), or mixed (those of --dra-gpus by claims)',
  },
  {
    name: 'dra-gpus',
    value: 'uuid,...',
    default: '',
    help: 'with --allocation=mixed: GPUs that are allocated by claims',
  },
  {
    name: 'dra-evict-failed',
    value: null,
    default: 'false',
    help: 'evict pods with claims from a failed or lost GPU',
  },
  {
    name: 'plugin-registry-path',
    value: 'dir',
    default: '/var/lib/kubelet/plugins_registry',
    help: 'directory in which the kubelet finds DRA drivers',
  },
  {
    name: 'dra-path',
    value: 'dir',
    default: '/var/lib/kubelet/plugins/gpu.tencent.com',
    help: 'directory of the socket of the DRA driver',
  },
  {
    name: 'allocation-check-period',
    value: 'seconds',
    default: '30',
    help: 'interval of ledger reconciliation with the kubelet',
  },
  {
    name: 'audit-policy',
    value: 'name',
    default: 'report',
    help: 'action on serious audit findings: report (event, metric, log) or evict (report and evict the pod)',
  },
  {
    name: 'memory-oversubscription',
    value: 'factor',
    default: '1',
    help: 'how many times its booked memory a slice of memory class low may hold, the rest on the host; 1: no slice may',
  },
  {
    name: 'allow-unenforced',
    value: null,
    default: 'false',
    help: 'pods may ask that their limits are not enforced, only compared with their use (tencent.com/vcuda-enforcement: none)',
  },
  {
    name: 'container-runtime-endpoint',
    value: 'path',
    default: '',
    help: 'socket of containerd or cri-o; empty: detected',
  },
  { name: 'docker-endpoint', value: 'path', default: '', help: 'socket of dockerd; empty: detected' },
  { name: 'cgroup-driver', value: 'name', default: '', help: 'accepted for compatibility; the driver is detected' },
  {
    name: 'nri',
    value: null,
    default: 'false',
    help: "also correct containers through the container runtime's Node Resource Interface (containerd 2.0, CRI-O 1.30 or later)",
  },
  {
    name: 'nri-socket',
    value: 'path',
    default: '/var/run/nri/nri.sock',
    help: 'socket of the Node Resource Interface',
  },
  {
    name: 'cpu-affinity',
    value: 'mode',
    default: 'off',
    help: 'with --nri, bind containers to CPUs near their GPUs: off, prefer, or strict (memory too, or the container fails); not where the CPU manager of the kubelet is static',
  },
  {
    name: 'runtime-request-timeout',
    value: 'duration',
    default: '5s',
    help: 'timeout of a request to the container runtime',
  },
  { name: 'wait-timeout', value: 'duration', default: '1m', help: 'timeout for the device plugins to start' },
  { name: 'v', value: 'level', default: '0', help: 'log verbosity: 0 and 1 info, 2 and 3 debug, 4 and more trace' },
  {
    name: 'logtostderr',
    value: null,
    default: 'true',
    help: 'accepted for compatibility; logs always go to standard error',
  },
  { name: 'alsologtostderr', value: null, default: 'false', help: 'accepted for compatibility' },
  { name: 'stderrthreshold', value: 'level', default: '', help: 'accepted for compatibility' },
  { name: 'vmodule', value: 'pattern', default: '', help: 'accepted for compatibility' },
  { name: 'log-backtrace-at', value: 'place', default: '', help: 'accepted for compatibility' },
  { name: 'log-dir', value: 'dir', default: '', help: 'accepted for compatibility; logs always go to standard error' },
];

/** Mount point of the host in the DaemonSet, as in the original's. */
const MOUNTED_HOST = '/usr/local/host';

const BUILT_NATIVE = packageFile('native/build/');

const ENVIRONMENT_PREFIX = 'GPU_MANAGER_';

/** The environment variable of a flag: GPU_MANAGER_SHARE_MODE for `--share-mode`. */
export function environmentName(flag: string): string {
  return ENVIRONMENT_PREFIX + flag.toUpperCase().replaceAll('-', '_');
}

/** Values of all flags: the command line wins over the environment, which wins over the default. */
export function flagValues(
  given: Readonly<Record<string, string>>,
  environment: NodeJS.ProcessEnv,
): Record<string, string> {
  return Object.fromEntries(
    RUN_FLAGS.map((flag) => [
      flag.name,
      given[flag.name] ?? environment[environmentName(flag.name)] ?? ofOriginal(flag.name, environment) ?? flag.default,
    ]),
  );
}

/**
 * The level from LOG_LEVEL, by which the original's manifest sets its verbosity; other programs put words into that
 * variable, which are ignored.
 */
function ofOriginal(flag: string, { LOG_LEVEL: level = '' }: NodeJS.ProcessEnv): string | undefined {
  return flag === 'v' && /^\d+$/.test(level) ? level : undefined;
}

const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

const path = z.string().transform((text) => (text === '' ? null : text));
const needed = z.string().min(1, 'must not be empty');
const bool = z.enum(['true', 'false'], 'expected true or false').transform((text) => text === 'true');
const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'expected a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
const factor = z
  .string()
  .regex(/^\d+(\.\d+)?$/, 'expected a number such as 1.5')
  .transform(Number)
  .pipe(z.number().min(1, 'must be at least 1').max(16, 'must be at most 16'));
const durationMs = z
  .string()
  .regex(DURATION, 'expected a duration such as 500ms, 5s or 1m')
  .transform((text) => {
    const match = DURATION.exec(text);
    return Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ''] ?? 0);
  });
/** As in the original, entries that are not pairs are ignored. */
const labels = z.string().transform((text) => {
  const [good, malformed] = [new Map<string, string>(), [] as string[]];
  for (const pair of text.split(',').filter((entry) => entry !== '')) {
    const [key, value, ...rest] = pair.split('=');
    if (key === undefined || key === '' || value === undefined || rest.length > 0) malformed.push(pair);
    else good.set(key, value);
  }
  return { good, malformed };
});

/** Null if the value is empty. */
const optionalPort = z.string().transform((text, context) => {
  const port = text === '' ? null : whole(0, 65_535).safeParse(text);
  if (port?.success !== false) return port?.data ?? null;
  context.addIssue({ code: 'custom', message: port.error.issues[0]?.message ?? 'expected a port' });
  return z.NEVER;
});

const SCHEMA = z.object({
  driver: z.enum(['nvidia', 'sim', 'dummy'], 'expected nvidia, sim or dummy'),
  'sim-node': path,
  'sim-state': path,
  'sim-device-path': needed,
  'nvml-path': path,
  'health-config': path,
  'extra-config': path,
  'volume-config': path,
  'host-root': path,
  'native-path': path,
  interposition: z.enum(['library-path', 'cdi'], 'expected library-path or cdi'),
  'cdi-path': needed,
  'query-port': whole(0, 65_535),
  'query-addr': needed,
  'probe-port': optionalPort,
  'probe-addr': needed,
  'tls-cert-file': path,
  'tls-private-key-file': path,
  'tls-self-signed': bool,
  'token-review': bool,
  'display-socket': needed,
  kubeconfig: path,
  'incluster-mode': bool,
  standalone: bool,
  'hostname-override': z.string(),
  'node-labels': labels,
  'sample-period': whole(1, 3_600),
  'low-priority-floor': whole(1, 50),
  'virtual-manager-path': needed,
  'device-plugin-path': needed,
  'plugin-proxy-path': path,
  'pod-resources-socket': needed,
  'checkpoint-path': needed,
  'usage-tmpfs': bool,
  'share-mode': bool,
  'mig-strategy': z.enum(MIG_STRATEGIES, 'expected none, shared or whole'),
  allocation: z.enum(ALLOCATION_MODES, 'expected plugin, dra or mixed'),
  'dra-gpus': z.string().transform((text) => new Set(text.split(',').filter((uuid) => uuid !== ''))),
  'dra-evict-failed': bool,
  'plugin-registry-path': needed,
  'dra-path': needed,
  'allocation-check-period': whole(1, 86_400),
  'audit-policy': z.enum(AUDIT_POLICIES, 'expected report or evict'),
  'memory-oversubscription': factor,
  'allow-unenforced': bool,
  'container-runtime-endpoint': path,
  'docker-endpoint': path,
  nri: bool,
  'nri-socket': needed,
  'cpu-affinity': z.enum(CPU_AFFINITIES, 'expected off, prefer or strict'),
  'runtime-request-timeout': durationMs,
  'wait-timeout': durationMs,
  v: whole(0, 100),
});

/** Checks the values of all flags together. Throws a StartupError that names the first wrong one. */
export function agentConfig(values: Readonly<Record<string, string>>, environment: NodeJS.ProcessEnv): AgentConfig {
  const parsed = SCHEMA.safeParse(values);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const flag = String(issue?.path[0] ?? '');
    throw new StartupError(`--${flag}: ${issue?.message ?? 'malformed'} (got ${JSON.stringify(values[flag])})`);
  }
  const flags = parsed.data;
  return {
    driver: flags.driver,
    simNodePath: flags['sim-node'],
    simStatePath: flags['sim-state'],
    simDevicePath: flags['sim-device-path'],
    nvmlPath: flags['nvml-path'],
    healthConfigPath: flags['health-config'],
    extraConfigPath: flags['extra-config'],
    volumeConfigPath: flags['volume-config'],
    hostRoot: flags['host-root'] ?? (existsSync(MOUNTED_HOST) ? MOUNTED_HOST : '/'),
    nativePath: flags['native-path'] ?? BUILT_NATIVE,
    interposition: flags.interposition,
    cdiPath: flags['cdi-path'],
    queryAddress: flags['query-addr'],
    queryPort: flags['query-port'],
    probes: flags['probe-port'] === null ? null : { address: flags['probe-addr'], port: flags['probe-port'] },
    tls: tlsFiles(flags['tls-cert-file'], flags['tls-private-key-file']),
    tlsSelfSigned: flags['tls-self-signed'],
    tokenReview: flags['token-review'],
    displaySocket: flags['display-socket'],
    kubeconfig: flags.kubeconfig,
    standalone: flags.standalone,
    nodeName: flags['hostname-override'] || environment.NODE_NAME || hostname(),
    nodeLabels: flags['node-labels'].good,
    malformedNodeLabels: flags['node-labels'].malformed,
    samplePeriodMs: flags['sample-period'] * 1_000,
    lowPriorityFloor: flags['low-priority-floor'],
    virtualManagerPath: flags['virtual-manager-path'],
    devicePluginPath: flags['device-plugin-path'],
    pluginProxyPath: flags['plugin-proxy-path'],
    podResourcesSocket: flags['pod-resources-socket'],
    checkpointPath: flags['checkpoint-path'],
    usageTmpfs: flags['usage-tmpfs'],
    shareMode: flags['share-mode'],
    migStrategy: flags['mig-strategy'],
    allocation: flags.allocation,
    draGpus: flags['dra-gpus'],
    draEvictFailed: flags['dra-evict-failed'],
    pluginRegistryPath: flags['plugin-registry-path'],
    draPath: flags['dra-path'],
    allocationCheckPeriodMs: flags['allocation-check-period'] * 1_000,
    containerRuntimeEndpoint: flags['container-runtime-endpoint'],
    dockerEndpoint: flags['docker-endpoint'],
    nriSocket: flags.nri ? flags['nri-socket'] : null,
    cpuAffinity: flags['cpu-affinity'],
    runtimeRequestTimeoutMs: flags['runtime-request-timeout'],
    waitTimeoutMs: flags['wait-timeout'],
    auditPolicy: flags['audit-policy'],
    memoryOversubscription: flags['memory-oversubscription'],
    allowUnenforced: flags['allow-unenforced'],
    logLevel: logLevel(flags.v),
  };
}

function tlsFiles(certFile: string | null, keyFile: string | null): AgentConfig['tls'] {
  if ((certFile === null) !== (keyFile === null))
    throw new StartupError('--tls-cert-file and --tls-private-key-file must be given together');
  return certFile === null || keyFile === null ? null : { certFile, keyFile };
}

function logLevel(verbosity: number): LogLevel {
  if (verbosity >= 4) return 'trace';
  return verbosity >= 2 ? 'debug' : 'info';
}
