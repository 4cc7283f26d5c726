/** One flag of `gpu-manager run`. The table below is the only place that lists them. */
export interface Flag {
  readonly name: string;
  /** Placeholder of the value in the help; null for a switch, which also accepts `=true` and `=false`. */
  readonly value: string | null;
  readonly default: string;
  readonly help: string;
}

/** Flags that belong together, under one heading of the help and of docs/reference/flags.md. */
export interface FlagGroup {
  readonly title: string;
  readonly flags: readonly Flag[];
}

/** The flags of tkestack gpu-manager with its defaults, the flags of its earlier versions, and new flags. */
export const RUN_FLAG_GROUPS: readonly FlagGroup[] = [
  {
    title: 'GPUs',
    flags: [
      {
        name: 'driver',
        value: 'name',
        default: 'nvidia',
        help: 'GPUs to manage: nvidia, sim (simulated) or dummy (none)',
      },
      { name: 'nvml-path', value: 'file', default: '', help: 'path of libnvidia-ml; empty: search the usual places' },
      {
        name: 'health-config',
        value: 'file',
        default: '',
        help: 'JSON file with the classes of GPU errors; empty: etc/xid-classes.json',
      },
      {
        name: 'mig-strategy',
        value: 'strategy',
        default: 'none',
        help: 'GPUs that MIG divides: none (left out), shared (each instance is a GPU of 100 cores), whole (each instance is one tencent.com/mig-<profile>), or dynamic (instances are created for resource claims and destroyed afterwards)',
      },
      { name: 'sample-period', value: 'seconds', default: '1', help: 'polling interval of the GPU driver' },
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
    ],
  },
  {
    title: 'Slices and limits',
    flags: [
      { name: 'share-mode', value: null, default: 'false', help: 'allocate parts of a GPU, not only whole GPUs' },
      {
        name: 'low-priority-floor',
        value: 'cores',
        default: '5',
        help: 'cores of a GPU that its low slices get together while a high slice has work',
      },
      {
        name: 'memory-enforcement',
        value: 'mode',
        default: 'auto',
        help: 'what enforces memory limits beside the control library: auto (the driver where it can, from 615 on), library (only the library), or driver (the agent does not start if the driver cannot)',
      },
      {
        name: 'sm-gpus',
        value: 'uuids',
        default: '',
        help: 'GPUs whose multiprocessors containers share, by MPS of driver 615 or later: all, or UUIDs separated by commas; only pods with tencent.com/vcuda-compute: sm get them; empty: all GPUs are shared in time',
      },
      {
        name: 'mps-control',
        value: 'path',
        default: '/usr/bin/nvidia-cuda-mps-control',
        help: "the driver's MPS control program, which the agent runs while containers share multiprocessors",
      },
      {
        name: 'memory-oversubscription',
        value: 'factor',
        default: '1',
        help: 'how many times its allocated memory a slice of memory class low may hold, the rest on the host; 1: no slice may',
      },
      {
        name: 'allow-unenforced',
        value: null,
        default: 'false',
        help: 'pods may ask that their limits are not enforced, only compared with their use (tencent.com/vcuda-enforcement: none)',
      },
      {
        name: 'allow-suspend',
        value: null,
        default: 'false',
        help: 'containers may be suspended: their GPU memory is moved to the host, and back when they use it (tencent.com/vcuda-suspend, gpu-manager suspend)',
      },
      {
        name: 'suspend-idle',
        value: 'duration',
        default: 'never',
        help: 'with --allow-suspend: suspend containers that have launched, copied and allocated nothing for so long, unless their pods say otherwise (tencent.com/vcuda-suspend-idle)',
      },
      {
        name: 'suspend-factor',
        value: 'number',
        default: '1',
        help: 'how many times its cores and memory each GPU offers: the part above its own only to pods with annotation tencent.com/vcuda-suspendable: "true", which take turns; needs --allow-suspend',
      },
      {
        name: 'allow-resize',
        value: null,
        default: 'false',
        help: 'pods may ask for more of their GPU than they requested, while they run (tencent.com/vcuda-core-resize, vcuda-memory-resize)',
      },
      {
        name: 'audit-policy',
        value: 'name',
        default: 'report',
        help: 'action on serious audit findings: report (event, metric, log) or evict (report and evict the pod)',
      },
      {
        name: 'usage-tmpfs',
        value: null,
        default: 'false',
        help: 'keep each usage file in a tmpfs of its own size; needs the right to mount, with mount propagation to the host',
      },
      {
        name: 'virtual-manager-path',
        value: 'dir',
        default: '/etc/gpu-manager/vm',
        help: 'folder of the directories that containers see as /etc/vcuda',
      },
    ],
  },
  {
    title: "The driver's libraries in containers",
    flags: [
      {
        name: 'volume-config',
        value: 'file',
        default: '',
        help: 'JSON file that lists the driver libraries to mirror; empty: none',
      },
      {
        name: 'extra-config',
        value: 'file',
        default: '',
        help: 'JSON file with additional device nodes for every GPU container',
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
        help: 'folder for CDI specifications; must survive a reboot, because the kubelet records devices',
      },
    ],
  },
  {
    title: 'Kubernetes',
    flags: [
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
    ],
  },
  {
    title: 'Kubelet',
    flags: [
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
        name: 'checkpoint-path',
        value: 'dir',
        default: '/etc/gpu-manager/checkpoint',
        help: 'folder of the checkpoint',
      },
      {
        name: 'allocation-check-period',
        value: 'seconds',
        default: '30',
        help: 'interval of ledger reconciliation with the kubelet',
      },
      { name: 'wait-timeout', value: 'duration', default: '1m', help: 'timeout for the device plugins to start' },
    ],
  },
  {
    title: 'Container runtime',
    flags: [
      {
        name: 'container-runtime-endpoint',
        value: 'path',
        default: '',
        help: 'socket of containerd or cri-o; empty: detected',
      },
      { name: 'docker-endpoint', value: 'path', default: '', help: 'socket of dockerd; empty: detected' },
      {
        name: 'runtime-request-timeout',
        value: 'duration',
        default: '5s',
        help: 'timeout of a request to the container runtime',
      },
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
    ],
  },
  {
    title: 'Display',
    flags: [
      {
        name: 'display-socket',
        value: 'path',
        default: '/var/run/gpu-manager.sock',
        help: 'unix socket of the gRPC display service',
      },
      {
        name: 'query-port',
        value: 'port',
        default: '5678',
        help: 'HTTP port of the page, graph, usage, version, metrics and probes',
      },
      { name: 'query-addr', value: 'address', default: 'localhost', help: 'HTTP address; :: are all, of IPv4 too' },
      {
        name: 'probe-port',
        value: 'port',
        default: '',
        help: 'separate HTTP port for /healthz and /readyz, without TLS and tokens; empty: --query-port answers them',
      },
      { name: 'probe-addr', value: 'address', default: '::', help: 'address of --probe-port' },
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
    ],
  },
  {
    title: 'Log',
    flags: [
      { name: 'v', value: 'level', default: '0', help: 'log verbosity: 0 and 1 info, 2 and 3 debug, 4 and more trace' },
    ],
  },
  {
    title: 'Accepted for compatibility',
    flags: [
      { name: 'cgroup-driver', value: 'name', default: '', help: 'accepted for compatibility; the driver is detected' },
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
      {
        name: 'log-dir',
        value: 'dir',
        default: '',
        help: 'accepted for compatibility; logs always go to standard error',
      },
    ],
  },
];

export const RUN_FLAGS: readonly Flag[] = RUN_FLAG_GROUPS.flatMap(({ flags }) => flags);

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
