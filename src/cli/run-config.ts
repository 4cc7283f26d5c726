import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import * as z from 'zod';
import type { AgentConfig } from '../agent/config.js';
import { ALLOCATION_MODES } from '../agent/claims/claims-config.js';
import { MIG_STRATEGIES } from '../gpu/mig.js';
import { CPU_AFFINITIES } from '../agent/nri/cpu-affinity.js';
import { MEMORY_ENFORCEMENTS } from '../agent/slices/driver-memory/gpu-enforcement.js';
import { AUDIT_POLICIES } from '../agent/slices/audit/findings.js';
import { StartupError } from '../host/startup-error.js';
import type { LogLevel } from '../host/log.js';
import { packageFile } from '../host/package-files.js';
import { parseIdle } from '../kube/limit-annotations.js';

/** Mount point of the host in the DaemonSet, as in the original's. */
const MOUNTED_HOST = '/usr/local/host';

const BUILT_NATIVE = packageFile('native/build/');

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
const idle = z.string().transform((text, context) => {
  const ms = parseIdle(text);
  if (ms !== null) return Number.isFinite(ms) ? ms : null;
  context.addIssue({ code: 'custom', message: 'expected never, or a duration of at least 1s such as 15m' });
  return z.NEVER;
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

/** The kubelet gets each offered unit by name, in one message of at most 4 MiB. */
const MOST_SUSPEND_FACTOR = 8;

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
  'mig-strategy': z.enum(MIG_STRATEGIES, 'expected none, shared, whole or dynamic'),
  allocation: z.enum(ALLOCATION_MODES, 'expected plugin, dra or mixed'),
  'dra-gpus': z.string().transform(uuidsOf),
  'dra-evict-failed': bool,
  'plugin-registry-path': needed,
  'dra-path': needed,
  'allocation-check-period': whole(1, 86_400),
  'audit-policy': z.enum(AUDIT_POLICIES, 'expected report or evict'),
  'memory-enforcement': z.enum(MEMORY_ENFORCEMENTS, 'expected auto, library or driver'),
  'sm-gpus': z.string().transform((text) => (text === '' ? 'none' : text === 'all' ? 'every' : uuidsOf(text))),
  'mps-control': needed,
  'memory-oversubscription': factor,
  'allow-unenforced': bool,
  'allow-suspend': bool,
  'suspend-idle': idle,
  'suspend-factor': whole(1, MOST_SUSPEND_FACTOR),
  'allow-resize': bool,
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
  // Without compilation: compiling a check that is used once takes longer than the check.
  const parsed = SCHEMA.safeParse(values, { jitless: true });
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
    memoryEnforcement: flags['memory-enforcement'],
    smGpus: flags['sm-gpus'],
    mpsControlPath: flags['mps-control'],
    memoryOversubscription: flags['memory-oversubscription'],
    allowUnenforced: flags['allow-unenforced'],
    allowSuspend: flags['allow-suspend'],
    suspendIdleMs: flags['suspend-idle'],
    suspendFactor: suspendFactor(flags),
    allowResize: flags['allow-resize'],
    logLevel: logLevel(flags.v),
  };
}

function uuidsOf(text: string): ReadonlySet<string> {
  return new Set(text.split(',').filter((uuid) => uuid !== ''));
}

function tlsFiles(certFile: string | null, keyFile: string | null): AgentConfig['tls'] {
  if ((certFile === null) !== (keyFile === null))
    throw new StartupError('--tls-cert-file and --tls-private-key-file must be given together');
  return certFile === null || keyFile === null ? null : { certFile, keyFile };
}

function suspendFactor(flags: { readonly 'suspend-factor': number; readonly 'allow-suspend': boolean }): number {
  const factor = flags['suspend-factor'];
  if (factor > 1 && !flags['allow-suspend'])
    throw new StartupError(`--suspend-factor ${factor} needs --allow-suspend: containers beyond the GPU take turns`);
  return factor;
}

function logLevel(verbosity: number): LogLevel {
  if (verbosity >= 4) return 'trace';
  return verbosity >= 2 ? 'debug' : 'info';
}
