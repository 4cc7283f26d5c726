import { DRIVER_NAME } from '../gpu/claims/names.js';
import type { Clock } from '../host/clock.js';
import { ALL_RESOURCE_SLICES } from '../kube/api-path.js';
import type { KubeAnswer, KubeApi } from '../kube/client.js';
import { list, record } from '../kube/json.js';
import { openKubeClient } from '../kube/open-client.js';
import type { AgentConfig } from './config.js';
import { failed, ok, reasonOf, skipped, warning, type Diagnosis } from './diagnosis.js';
import type { CdiConfiguration, RuntimeVersion } from './runtimes/container.js';
import { connectRuntime } from './runtimes/endpoint.js';

/** Checks what resource claims need beside the device plugin: the API, its feature gates, and CDI in the runtime. */
export async function examineClaims(options: {
  readonly config: AgentConfig;
  readonly clock: Clock;
}): Promise<readonly Diagnosis[]> {
  const { config, clock } = options;
  if (config.allocation === 'plugin') return [skipped('claims', '--allocation=plugin gives no GPU through claims')];
  return [...(await examineApi(config, clock)), (await examineCdi(config)).diagnosis];
}

async function examineApi(config: AgentConfig, clock: Clock): Promise<readonly Diagnosis[]> {
  const client = await openKubeClient(config.kubeconfig, clock);
  try {
    return [diagnoseSlices(await slicesOf(client, config.nodeName), config.nodeName)];
  } finally {
    client.close();
  }
}

const slicesOf = (api: KubeApi, node: string): Promise<KubeAnswer> =>
  api.request({
    method: 'GET',
    path: ALL_RESOURCE_SLICES,
    query: { fieldSelector: `spec.driver=${DRIVER_NAME},spec.nodeName=${node}` },
  });

/** What the answer to a list of this node's ResourceSlices says about the API server. */
export function diagnoseSlices(answer: KubeAnswer, node: string): Diagnosis {
  if (!answer.ok && answer.code === 'not-found')
    return failed(
      'claims',
      'the API server does not serve resource.k8s.io/v1',
      'claims need Kubernetes 1.34 or later with the feature gate DynamicResourceAllocation; set --allocation=plugin on others',
    );
  if (!answer.ok)
    return warning(
      'claims',
      `ResourceSlices cannot be listed: ${answer.code}: ${answer.message}`,
      'the agent needs the rules for resource.k8s.io of daemonset.yaml',
    );
  const devices = list(record(answer.body).items).flatMap((slice) => list(record(record(slice).spec).devices));
  if (devices.length === 0)
    return warning(
      'claims',
      `the API server serves resource.k8s.io/v1, and has no device of node ${node}`,
      'the running agent publishes its GPUs; if it does, they are still held through the device plugin (docs/dra.md)',
    );
  if (devices.some((device) => record(device).allowMultipleAllocations === true))
    return ok('claims', `the API server has ${devices.length} devices of this node, which can be shared`);
  return warning(
    'claims',
    `the API server has ${devices.length} devices of this node, and none can be shared: claims get whole GPUs`,
    'shares need the feature gate DRAConsumableCapacity on API server, scheduler and kubelet (on by default from 1.36 on)',
  );
}

/** The runtime's answer about CDI devices. */
export interface CdiAnswer {
  readonly diagnosis: Diagnosis;
  /** The runtime accepts no CDI device. */
  readonly rejects: boolean;
}

/** Asks the container runtime whether it accepts CDI devices and where it looks for their specifications. */
export async function examineCdi(
  config: Pick<AgentConfig, 'runtimeRequestTimeoutMs' | 'containerRuntimeEndpoint' | 'dockerEndpoint' | 'cdiPath'>,
): Promise<CdiAnswer> {
  try {
    const runtime = await connectRuntime({
      timeoutMs: config.runtimeRequestTimeoutMs,
      ...(config.containerRuntimeEndpoint === null ? {} : { criEndpoint: config.containerRuntimeEndpoint }),
      ...(config.dockerEndpoint === null ? {} : { dockerEndpoint: config.dockerEndpoint }),
    });
    try {
      const cdi = (await runtime.cdi?.()) ?? null;
      const diagnosis = diagnoseCdi(await runtime.version(), cdi, config.cdiPath);
      return { diagnosis, rejects: cdi?.enabled === false };
    } finally {
      runtime.close();
    }
  } catch (error) {
    const diagnosis = warning('claims', `CDI cannot be checked: ${reasonOf(error)}`, 'see the check of the runtime');
    return { diagnosis, rejects: false };
  }
}

/** Whether the runtime reads the CDI specifications that the agent writes to `directory`. */
export function diagnoseCdi(
  { name, version }: Pick<RuntimeVersion, 'name' | 'version'>,
  cdi: CdiConfiguration | null,
  directory: string,
): Diagnosis {
  const runtime = `${name} ${version}`;
  if (cdi === null || cdi.enabled === null)
    return warning(
      'claims',
      `${runtime} does not tell whether it accepts CDI devices`,
      'pods with claims need CDI: containerd 2, CRI-O 1.28, or containerd 1.7 with enable_cdi = true',
    );
  if (!cdi.enabled)
    return failed(
      'claims',
      `${runtime} does not accept CDI devices: pods with claims fail when they start`,
      'set enable_cdi = true in [plugins."io.containerd.grpc.v1.cri"] of its configuration and restart it, or use containerd 2',
    );
  const { directories } = cdi;
  if (directories !== null && !directories.includes(directory))
    return failed(
      'claims',
      `${runtime} looks for CDI specifications in ${directories.join(', ')}, and the agent writes them to ${directory}`,
      'set --cdi-path to one of these directories, and mount it there from the host',
    );
  return ok('claims', `${runtime} accepts CDI devices of ${directory}`);
}
