import { access, constants, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileReason } from '../host/file-reason.js';
import type { ApiServerConfig } from './api-server/index.js';
import { type ClaimsConfig, kubeletPluginSockets } from './claims/index.js';
import type { DisplayConfig } from './display/index.js';
import type { DriverConfig, SmGpus } from './gpus/index.js';
import type { Interposition, LibrariesConfig } from './libraries/index.js';
import type { NriConfig } from './nri/index.js';
import type { RuntimeConfig } from './runtimes/index.js';
import type { AuditPolicy, MemoryEnforcement } from './slices/index.js';
import { isLoopback } from '../http/loopback.js';
import type { LogLevel } from '../host/log.js';
import { socketPathProblem } from '../host/unix-socket.js';
import { StartupError } from '../host/startup-error.js';

/** The configuration of `gpu-manager run`, combined from flags, environment and defaults. */
export interface AgentConfig
  extends ApiServerConfig, ClaimsConfig, DisplayConfig, DriverConfig, LibrariesConfig, NriConfig, RuntimeConfig {
  /** Directory of the simulated device nodes. */
  readonly simDevicePath: string;
  /** Classes of GPU errors; null: the shipped ones. */
  readonly healthConfigPath: string | null;
  readonly extraConfigPath: string | null;
  readonly interposition: Interposition;
  readonly nodeLabels: ReadonlyMap<string, string>;
  /** Parts of `--node-labels` that are not pairs of key and value. */
  readonly malformedNodeLabels: readonly string[];
  readonly samplePeriodMs: number;
  /** Cores of a GPU that its low slices get together while a high slice has work; absent: 5. */
  readonly lowPriorityFloor?: number;
  /**
   * Directory in which the device plugin proxy accepts registrations; null: the agent registers with the kubelet
   * itself.
   */
  readonly pluginProxyPath: string | null;
  readonly devicePluginPath: string;
  readonly checkpointPath: string;
  /** Whether each usage file is on a separate file system. */
  readonly usageTmpfs: boolean;
  readonly shareMode: boolean;
  readonly waitTimeoutMs: number;
  /** Action on containers that exceed their limits. */
  readonly auditPolicy: AuditPolicy;
  /** How many times its allocated memory a slice of memory class `low` may hold; 1: no slice holds more than that. */
  readonly memoryOversubscription: number;
  /** What enforces memory limits beside the control library; absent: auto. */
  readonly memoryEnforcement?: MemoryEnforcement;
  /** GPUs whose multiprocessors containers share; absent: none. */
  readonly smGpus?: SmGpus;
  /** Path of the driver's `nvidia-cuda-mps-control`; absent: where the driver installs it. */
  readonly mpsControlPath?: string;
  /** Pods may ask that their limits are not enforced. */
  readonly allowUnenforced: boolean;
  /** Containers may be suspended: their GPU memory moved to the host, and back. */
  readonly allowSuspend: boolean;
  /** How long containers are idle before they are suspended, unless their pod says otherwise; null: never. */
  readonly suspendIdleMs: number | null;
  /** How many times its cores and memory a GPU offers, the rest to suspendable pods; 1: what it has. */
  readonly suspendFactor: number;
  /** Pods may ask for more of their GPU than they requested. */
  readonly allowResize: boolean;
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
  if (config.migStrategy === 'dynamic' && config.allocation !== 'dra')
    throw new StartupError(
      `--mig-strategy=dynamic: instances are created for resource claims; give --allocation=dra instead of ${config.allocation}`,
    );
  if (config.migStrategy === 'dynamic' && config.driver === 'sim' && config.simStatePath === null)
    throw new StartupError(
      '--mig-strategy=dynamic: GPUs that only the agent knows cannot be divided; give --sim-state as well',
    );
  if (config.probes !== null && config.probes.port !== 0 && config.probes.port === config.queryPort)
    throw new StartupError(`--probe-port: ${config.probes.port} is the --query-port already; probes need their own`);
  if (config.allocation !== 'plugin' && config.standalone)
    throw new StartupError(
      `--allocation=${config.allocation}: claims are read from the API server, which --standalone does not use`,
    );
  if ((config.allocation === 'mixed') !== config.draGpus.size > 0)
    throw new StartupError('--dra-gpus: expected UUIDs of GPUs with --allocation=mixed, and none otherwise');
  checkSmGpus(config);
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
      throw new StartupError(`${flag}: ${path} is not a writable directory: ${fileReason(error)}`);
    }
  }
}

/** Throws a StartupError where the multiprocessors of GPUs cannot be shared. */
function checkSmGpus({ smGpus = 'none', allocation, draGpus, shareMode, virtualManagerPath }: AgentConfig): void {
  if (smGpus === 'none') return;
  const isClaimed = smGpus === 'every' ? allocation !== 'plugin' : [...smGpus].some((uuid) => draGpus.has(uuid));
  if (allocation === 'dra' || isClaimed)
    throw new StartupError(
      '--sm-gpus: resource claims share GPUs in time only; give GPUs that the device plugin offers',
    );
  if (!shareMode)
    throw new StartupError('--sm-gpus: no parts of GPUs are allocated on this node; give --share-mode as well');
  const problem = socketPathProblem(join(virtualManagerPath, '.mps', 's'.repeat(40), 's'.repeat(18), 'control'));
  if (problem !== null) throw new StartupError(`--sm-gpus: --virtual-manager-path is too long for MPS: ${problem}`);
}
