import { DRIVER_NAME } from '../../gpu/claims/names.js';
import type { Clock } from '../../host/clock.js';
import { ALL_RESOURCE_SLICES } from '../../kube/api-path.js';
import type { KubeAnswer, KubeApi } from '../../kube/client.js';
import { list, record } from '../../kube/json.js';
import { openKubeClient } from '../../kube/open-client.js';
import type { ApiServerConfig } from '../api-server/index.js';
import { examineCdi, type ClaimsConfig } from '../claims/index.js';
import { failed, ok, skipped, warning, type Diagnosis } from './diagnosis.js';

/** Checks what resource claims need beside the device plugin: the API, its feature gates, and CDI in the runtime. */
export async function examineClaims(options: {
  readonly config: ClaimsConfig & ApiServerConfig;
  readonly clock: Clock;
}): Promise<readonly Diagnosis[]> {
  const { config, clock } = options;
  if (config.allocation === 'plugin') return [skipped('claims', '--allocation=plugin gives no GPU through claims')];
  return [...(await examineApi(config, clock)), { check: 'claims', ...(await examineCdi(config)).support }];
}

async function examineApi(config: ClaimsConfig & ApiServerConfig, clock: Clock): Promise<readonly Diagnosis[]> {
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

/** Diagnoses the API server from its answer to a list of this node's ResourceSlices. */
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
      'the running agent publishes its GPUs; if it does, they are still held through the device plugin (docs/reference/dra.md)',
    );
  if (devices.some((device) => record(device).allowMultipleAllocations === true))
    return ok('claims', `the API server has ${devices.length} devices of this node, which can be shared`);
  return warning(
    'claims',
    `the API server has ${devices.length} devices of this node, and none can be shared: claims get whole GPUs`,
    'shares need the feature gate DRAConsumableCapacity on API server, scheduler and kubelet (on by default from 1.36 on)',
  );
}
