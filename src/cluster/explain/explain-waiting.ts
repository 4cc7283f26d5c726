import {
  GPU_ASSIGNED_KEY,
  NODE_INVENTORY_KEY,
  PREDICATE_NODE_KEY,
  predicateGpuIndexKey,
} from '../../gpu/annotations.js';
import { consumedOf } from '../../gpu/claims/claim-units.js';
import { deviceName, DRIVER_NAME, poolName } from '../../gpu/claims/names.js';
import type { ClaimRef } from '../../gpu/claims/resource-claim.js';
import { encodeInventory, inventoryOf, THROUGH_CLAIMS, type NodeInventory } from '../../gpu/node-inventory.js';
import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../../gpu/resources.js';
import { ALL_RESOURCE_CLAIMS, resourceClaimPath } from '../../kube/api-path.js';
import { readResourceClaim } from '../../kube/claim-object.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { list, record, text } from '../../kube/json.js';
import { listKept } from '../../kube/list-all.js';
import type { Node } from '../../kube/node.js';
import { readPod, type Pod } from '../../kube/pod.js';
import { devicesOf } from '../../manifests/claim-needs.js';
import { ManifestReader } from '../../manifests/manifest-reader.js';
import { knownPods, type ClusterState } from './cluster-state.js';
import { explainIn, type WaitingAnswer } from './why-waiting.js';

/**
 * Explains why a pod waits. A pod with claims that wait for GPUs of this driver is placed on the GPUs that nodes give
 * through claims, beside the allocated claims. Rejects with a `KubeError`.
 */
export async function explainWaiting(api: KubeApi, state: ClusterState, pod: Pod): Promise<WaitingAnswer> {
  const wanted = await withClaimRequests(api, pod);
  const isByClaims = wanted.containers.length > pod.containers.length;
  return explainIn(isByClaims ? await claimState(api, state) : state, wanted, 'fragmentation');
}

/** The cluster as claims see it: GPUs that nodes give through claims, and each allocated device as a pod on them. */
async function claimState(api: KubeApi, { nodes, pods }: ClusterState): Promise<ClusterState> {
  const inventories = new Map(nodes.map((node) => [node.name, inventoryOf(node.annotations)]));
  const nodeOf = new Map([...inventories.keys()].map((name) => [poolName(name), name]));
  const locate = (pool: string, device: string): { readonly node: string; readonly gpu: number } | null => {
    const node = nodeOf.get(pool) ?? '';
    const found = inventories.get(node)?.gpus.find(({ gpu }) => deviceName(gpu.uuid) === device);
    return found === undefined ? null : { node, gpu: found.gpu.index };
  };
  const known = knownPods();
  const held = await listKept(api, 'the resource claims', ALL_RESOURCE_CLAIMS, (object) => {
    const claim = readResourceClaim(object);
    const results = claim?.allocation?.results ?? [];
    return results.flatMap((result, at) => {
      const place = result.driver === DRIVER_NAME ? locate(result.pool, result.device) : null;
      if (claim === null || place === null) return [];
      const pod = known(readPod(podOfDevice(`${claim.uid}/${at}`, claim, consumedOf(result), place)));
      // The scheduler evicts no pod for its claim.
      return [{ ...pod, view: { ...pod.view, priority: Number.MAX_SAFE_INTEGER } }];
    });
  });
  return {
    nodes: nodes.map((node) => withClaimGpus(node, inventories.get(node.name) ?? null)),
    pods: [...pods, ...held.flat()],
  };
}

/** The node with the GPUs alone that claims get, all of them free. */
function withClaimGpus(node: Node, inventory: NodeInventory | null): Node {
  const gpus = (inventory?.gpus ?? []).map((one) => ({
    ...one,
    healthy: one.reason === THROUGH_CLAIMS,
    foreign: false,
    freeCores: CORES_PER_GPU,
    freeMemoryBytes: one.gpu.memoryBytes,
  }));
  const allocatable = new Map(node.allocatable);
  allocatable.delete(CORE_RESOURCE);
  if (inventory === null || !gpus.some(({ healthy }) => healthy)) return { ...node, allocatable };
  allocatable.set(CORE_RESOURCE, gpus.length * CORES_PER_GPU);
  const annotations = { ...node.annotations, [NODE_INVENTORY_KEY]: encodeInventory({ ...inventory, gpus }) };
  return { ...node, allocatable, annotations };
}

/** A pod that holds what a device of a claim does. */
function podOfDevice(
  uid: string,
  { namespace, name }: ClaimRef,
  { cores, memoryBytes }: ReturnType<typeof consumedOf>,
  { node, gpu }: { readonly node: string; readonly gpu: number },
): object {
  const isWhole = cores === CORES_PER_GPU || memoryBytes === null;
  const amounts = {
    [CORE_RESOURCE]: isWhole ? CORES_PER_GPU : cores,
    [MEMORY_RESOURCE]: isWhole ? 0 : Math.ceil((memoryBytes ?? 0) / MEMORY_BLOCK_BYTES),
  };
  return {
    metadata: {
      ...{ uid, namespace, name: `claim ${name}` },
      annotations: {
        [predicateGpuIndexKey(0)]: String(gpu),
        [PREDICATE_NODE_KEY]: node,
        [GPU_ASSIGNED_KEY]: 'true',
      },
    },
    spec: { nodeName: node, containers: [{ name: 'claim', resources: { limits: amounts, requests: amounts } }] },
    status: { phase: 'Running' },
  };
}

/**
 * The pod with one more container for each device of this driver that its waiting claims ask for. Rejects with a
 * `KubeError`, also if a claim does not exist.
 */
async function withClaimRequests(api: KubeApi, pod: Pod): Promise<Pod> {
  const names = pod.claims.map(({ claimName, madeName }) => claimName || madeName).filter((name) => name !== '');
  const claims = await Promise.all(names.map((name) => readClaim(api, pod.namespace, name)));
  const asked = claims.flatMap((claim) => requestsOf(claim));
  return { ...pod, containers: [...pod.containers, ...asked] };
}

function requestsOf(claim: unknown): Pod['containers'] {
  const { spec, status } = record(claim);
  if (record(status).allocation !== undefined) return [];
  const reader = new ManifestReader();
  return list(record(record(spec).devices).requests).flatMap((request) => {
    const { exactly, name } = record(request);
    const { count = 1, deviceClassName } = record(exactly);
    const one = { requests: [{ ...record(request), exactly: { ...record(exactly), count: 1 } }] };
    const amounts = devicesOf(reader, one, 'spec.devices', null);
    if (amounts[CORE_RESOURCE] === undefined || text(deviceClassName) === '') return [];
    return Array.from({ length: Number(count) || 1 }, () => ({
      name: `${DRIVER_NAME} ${text(name)}`,
      isSidecar: false,
      extended: (resource: string) =>
        resource === MEMORY_RESOURCE || resource === CORE_RESOURCE ? (amounts[resource] ?? 0) : 0,
      env: {},
      running: false,
      terminated: false,
      waiting: '',
    }));
  });
}

async function readClaim(api: KubeApi, namespace: string, name: string): Promise<unknown> {
  const answer = await api.request({ method: 'GET', path: resourceClaimPath(namespace, name) });
  if (!answer.ok) throw new KubeError(`claim ${namespace}/${name}`, answer);
  return answer.body;
}
