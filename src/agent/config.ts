import { access, constants, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditPolicy } from './slices/findings.js';
import { kubeletPluginSockets } from './dra/kubelet-plugin.js';
import type { MigStrategy } from '../gpu/mig.js';
import type { CpuAffinity } from './nri/cpu-affinity.js';
import { isLoopback } from '../http/loopback.js';
import type { LogLevel } from '../host/log.js';
import { socketPathProblem } from '../host/unix-socket.js';
import { StartupError } from '../host/startup-error.js';

export const ALLOCATION_MODES = ['plugin', 'dra', 'mixed'] as const;
export type AllocationMode = (typeof ALLOCATION_MODES)[number];

/** The configuration of `gpu-manager run`, combined from flags, environment and defaults. */
export interface AgentConfig {
  readonly driver: 'nvidia' | 'sim' | 'dummy';
  /** Description of the simulated node; null: one GPU. */
  readonly simNodePath: string | null;
  /** Folder of the simulated machine whose libraries programs use; null: GPUs that only the agent knows. */
  readonly simStatePath: string | null;
  /** Directory of the simulated device nodes. */
  readonly simDevicePath: string;
  /** Path of libnvidia-ml; null: search the usual places. */
  readonly nvmlPath: string | null;
  /** Classes of GPU errors; null: the shipped ones. */
  readonly healthConfigPath: string | null;
  readonly extraConfigPath: string | null;
  readonly volumeConfigPath: string | null;
  /** Mount point of the host's file system, or of its /usr. */
  readonly hostRoot: string;
  /** Directory of the control libraries and gpu-client. */
  readonly nativePath: string;
  readonly interposition: 'library-path' | 'cdi';
  /** Directory of the CDI specifications. */
  readonly cdiPath: string;
  readonly queryAddress: string;
  readonly queryPort: number;
  /** Separate address for `/healthz` and `/readyz`; null: only on the display's address. */
  readonly probes: { readonly address: string; readonly port: number } | null;
  /** PEM files of the HTTP side; null: plain HTTP, or a self-signed certificate. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Without files: serve HTTPS with a certificate that the agent creates. */
  readonly tlsSelfSigned: boolean;
  /** Whether HTTP readers of the node's data need a bearer token that the API server authorises. */
  readonly tokenReview: boolean;
  readonly displaySocket: string;
  readonly kubeconfig: string | null;
  /** Whether to run without an API server: pods are known from the kubelet alone. */
  readonly standalone: boolean;
  readonly nodeName: string;
  readonly nodeLabels: ReadonlyMap<string, string>;
  /** Parts of `--node-labels` that are not pairs of key and value. */
  readonly malformedNodeLabels: readonly string[];
  readonly samplePeriodMs: number;
  /** Cores of a GPU that its low slices get together while a high slice has work; absent: 5. */
  readonly lowPriorityFloor?: number;
  readonly virtualManagerPath: string;
  readonly devicePluginPath: string;
  /**
   * Directory in which the device plugin proxy accepts registrations; null: the agent registers with the kubelet
   * itself.
   */
  readonly pluginProxyPath: string | null;
  readonly podResourcesSocket: string;
  readonly checkpointPath: string;
  /** Whether each usage file is on a separate file system. */
  readonly usageTmpfs: boolean;
  readonly shareMode: boolean;
  /** How the agent uses GPUs that are partitioned by MIG. */
  readonly migStrategy: MigStrategy;
  /** How pods get GPUs: by the device plugin, by resource claims, or some GPUs by each. */
  readonly allocation: AllocationMode;
  /** UUIDs of the GPUs that `mixed` assigns to claims. */
  readonly draGpus: ReadonlySet<string>;
  /** Whether pods are evicted from a failed GPU. */
  readonly draEvictFailed: boolean;
  /** The kubelet's plugins_registry directory. */
  readonly pluginRegistryPath: string;
  /** Directory of the DRA driver's socket. */
  readonly draPath: string;
  readonly allocationCheckPeriodMs: number;
  readonly containerRuntimeEndpoint: string | null;
  readonly dockerEndpoint: string | null;
  /** Socket of the runtime's Node Resource Interface; null: NRI is not used. */
  readonly nriSocket: string | null;
  /** Whether containers are bound to CPUs near their GPUs. */
  readonly cpuAffinity: CpuAffinity;
  readonly runtimeRequestTimeoutMs: number;
  readonly waitTimeoutMs: number;
  /** Action on containers that exceed their limits. */
  readonly auditPolicy: AuditPolicy;
  /** How many times its booked memory a slice of memory class `low` may hold; 1: no slice holds more than it booked. */
  readonly memoryOversubscription: number;
  /** Pods may ask that their limits are not enforced. */
  readonly allowUnenforced: boolean;
  readonly logLevel: LogLevel;
}

/**
 * Refuses an impossible configuration before anything is started: paths too long for sockets, directories that cannot
 * be written, tokens that would be sent without encryption.
 */
export async function checkConfig(config: AgentConfig): Promise<void> {
  if (config.tokenReview && config.standalone)
    throw new StartupError('--token-review: needs the API server, which --standalone does not use');
  if (config.tokenReview && config.tls === null && !config.tlsSelfSigned && !isLoopback(config.queryAddress)) {
    throw new StartupError(
      '--token-review: tokens would cross the network unprotected; give --tls-cert-file and --tls-private-key-file, --tls-self-signed, or a --query-addr on loopback',
    );
  }
  if (config.migStrategy === 'whole' && config.pluginProxyPath !== null)
    throw new StartupError(
      '--mig-strategy=whole: the device plugin proxy serves cores and memory only; give no --plugin-proxy-path, or use shared',
    );
  if (config.probes !== null && config.probes.port !== 0 && config.probes.port === config.queryPort)
    throw new StartupError(`--probe-port: ${config.probes.port} is the --query-port already; probes need their own`);
  if (config.allocation !== 'plugin' && config.standalone)
    throw new StartupError(
      `--allocation=${config.allocation}: claims are read from the API server, which --standalone does not use`,
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
