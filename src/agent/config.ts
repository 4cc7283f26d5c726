import { access, constants, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditPolicy } from './slices/findings.js';
import { kubeletPluginSockets } from './dra/kubelet-plugin.js';
import type { CpuAffinity } from './nri/cpu-affinity.js';
import { isLoopback } from '../http/loopback.js';
import type { LogLevel } from '../host/log.js';
import { socketPathProblem } from '../host/unix-socket.js';
import { StartupError } from '../host/startup-error.js';

export const ALLOCATION_MODES = ['plugin', 'dra', 'mixed'] as const;
export type AllocationMode = (typeof ALLOCATION_MODES)[number];

/** What `gpu-manager run` was asked to do; flags, environment and defaults already put together. */
export interface AgentConfig {
  readonly driver: 'nvidia' | 'sim' | 'dummy';
  /** Description of the simulated node; null: one GPU. */
  readonly simNodePath: string | null;
  /** Folder of the simulated machine whose libraries programs run on; null: GPUs that only the agent knows of. */
  readonly simStatePath: string | null;
  /** Where the simulated device nodes are made. */
  readonly simDevicePath: string;
  /** Path of libnvidia-ml; null: search the usual places. */
  readonly nvmlPath: string | null;
  /** Classes of GPU errors; null: the shipped ones. */
  readonly healthConfigPath: string | null;
  readonly extraConfigPath: string | null;
  readonly volumeConfigPath: string | null;
  /** Where the host's file system, or its /usr, is seen. */
  readonly hostRoot: string;
  /** Where the control libraries and gpu-client lie. */
  readonly nativePath: string;
  readonly interposition: 'library-path' | 'cdi';
  /** Where CDI specifications are written. */
  readonly cdiPath: string;
  readonly queryAddress: string;
  readonly queryPort: number;
  /** Where `/healthz` and `/readyz` are answered on a port of their own; null: only beside everything else. */
  readonly probes: { readonly address: string; readonly port: number } | null;
  /** PEM files of the HTTP side; null: plain HTTP, or a certificate of our own. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Without files, serve HTTPS with a certificate that the agent makes for itself. */
  readonly tlsSelfSigned: boolean;
  /** Who reads the node's data over HTTP needs a bearer token that the API server lets do so. */
  readonly tokenReview: boolean;
  readonly displaySocket: string;
  readonly kubeconfig: string | null;
  /** Without an API server: pods are known from the kubelet alone. */
  readonly standalone: boolean;
  readonly nodeName: string;
  readonly nodeLabels: ReadonlyMap<string, string>;
  /** Parts of `--node-labels` that are no pairs of key and value. */
  readonly malformedNodeLabels: readonly string[];
  readonly samplePeriodMs: number;
  readonly virtualManagerPath: string;
  readonly devicePluginPath: string;
  /** Where the device plugin proxy takes registrations; null: we register with the kubelet ourselves. */
  readonly pluginProxyPath: string | null;
  readonly podResourcesSocket: string;
  readonly checkpointPath: string;
  /** Usage files lie in file systems of their own. */
  readonly usageTmpfs: boolean;
  readonly shareMode: boolean;
  /** How GPUs are given to pods: by the device plugin, by resource claims, or some this way and some that. */
  readonly allocation: AllocationMode;
  /** UUIDs of the GPUs that `mixed` gives through claims. */
  readonly draGpus: ReadonlySet<string>;
  /** Whether pods are evicted from a GPU that failed. */
  readonly draEvictFailed: boolean;
  /** The kubelet's plugins_registry. */
  readonly pluginRegistryPath: string;
  /** Where the socket of the DRA driver lies. */
  readonly draPath: string;
  readonly allocationCheckPeriodMs: number;
  readonly containerRuntimeEndpoint: string | null;
  readonly dockerEndpoint: string | null;
  /** Socket of the runtime's Node Resource Interface; null: without it. */
  readonly nriSocket: string | null;
  /** Whether containers are bound to CPUs near their GPUs. */
  readonly cpuAffinity: CpuAffinity;
  readonly runtimeRequestTimeoutMs: number;
  readonly waitTimeoutMs: number;
  /** What is done about containers that do not keep to their limits. */
  readonly auditPolicy: AuditPolicy;
  /** How many times its booked memory a slice of memory class `low` may hold; 1: no slice holds more than it booked. */
  readonly memoryOversubscription: number;
  readonly logLevel: LogLevel;
}

/**
 * Refuses what cannot work before anything is started: paths too long for sockets, directories that cannot be written,
 * tokens for all to read.
 */
export async function checkConfig(config: AgentConfig): Promise<void> {
  if (config.tokenReview && config.standalone)
    throw new StartupError('--token-review: needs the API server, which --standalone does without');
  if (config.tokenReview && config.tls === null && !config.tlsSelfSigned && !isLoopback(config.queryAddress)) {
    throw new StartupError(
      '--token-review: tokens would cross the network unprotected; give --tls-cert-file and --tls-private-key-file, --tls-self-signed, or a --query-addr on loopback',
    );
  }
  if (config.probes !== null && config.probes.port !== 0 && config.probes.port === config.queryPort)
    throw new StartupError(`--probe-port: ${config.probes.port} is the --query-port already; probes need their own`);
  if (config.allocation !== 'plugin' && config.standalone)
    throw new StartupError(
      `--allocation=${config.allocation}: claims are read from the API server, which --standalone does without`,
    );
  if ((config.allocation === 'mixed') !== config.draGpus.size > 0)
    throw new StartupError('--dra-gpus: expected UUIDs of GPUs with --allocation=mixed, and none otherwise');
  if (config.cpuAffinity !== 'off' && config.nriSocket === null)
    throw new StartupError(
      `--cpu-affinity=${config.cpuAffinity}: containers are bound to CPUs through the Node Resource Interface; give --nri as well`,
    );
  const dra = kubeletPluginSockets(config.pluginRegistryPath, config.draPath);
  const sockets: readonly (readonly [string, string])[] = [
    ['--plugin-registry-path', dra.registration],
    ['--dra-path', dra.driver],
    ['--device-plugin-path', join(config.devicePluginPath, 'vmemory.sock')],
    ['--plugin-proxy-path', join(config.pluginProxyPath ?? '/', 'vmemory.sock')],
    ['--display-socket', config.displaySocket],
    ['--nri-socket', config.nriSocket ?? '/'],
  ];
  for (const [flag, path] of sockets) {
    const problem = socketPathProblem(path);
    if (problem !== null) throw new StartupError(`${flag}: ${problem}`);
  }
  const directories: readonly (readonly [string, string])[] = [
    ['--device-plugin-path', config.devicePluginPath],
    ...(config.pluginProxyPath === null ? [] : [['--plugin-proxy-path', config.pluginProxyPath] as const]),
    ['--virtual-manager-path', config.virtualManagerPath],
    ['--checkpoint-path', config.checkpointPath],
  ];
  for (const [flag, path] of directories) {
    try {
      await mkdir(path, { recursive: true });
      await access(path, constants.W_OK | constants.X_OK);
    } catch (error) {
      throw new StartupError(
        `${flag}: ${path} is not a writable directory: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`,
      );
    }
  }
}
