import { sliceObject } from '../../src/agent/claims/slice-object.js';
import { publishedDevices, type PublishedGpu } from '../../src/gpu/claims/published-device.js';
import { planSlices } from '../../src/gpu/claims/slice-plan.js';
import { NODE_INVENTORY_KEY } from '../../src/gpu/annotations.js';
import { encodeInventory } from '../../src/gpu/node-inventory.js';
import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { uniformTopology } from '../../src/gpu/topology/topology.js';

export const GPUS = 8;
/** Every pod asks for this part of a GPU: three fit on each. */
export const SHARE = { cores: 30, memoryBlocks: 16 } as const;
const BLOCKS = 320;
const TOPOLOGY = uniformTopology(GPUS, 'NODE');

/** How pods ask for their part of a GPU. */
export type Way = 'resources' | 'claims';

function gpusOf(node: string): PublishedGpu[] {
  return Array.from({ length: GPUS }, (_, index) => ({
    index,
    minor: index,
    uuid: `GPU-${node}-${index}`,
    pciBusId: `00000000:0${index}:00.0`,
    model: 'NVIDIA H100 80GB HBM3',
    memoryBytes: BLOCKS * MEMORY_BLOCK_BYTES,
    numaNode: null,
    modelName: 'H100',
    computeCapability: '9.0',
    pcieRoot: null,
    illness: null,
  }));
}

/** A node as its agent describes it. No kubelet runs there. */
export function nodeObject(name: string): object {
  const gpus = gpusOf(name).map((gpu) => ({
    gpu,
    healthy: true,
    reason: '',
    foreign: false,
    freeCores: 100,
    freeMemoryBytes: gpu.memoryBytes,
  }));
  const amounts = {
    cpu: '96',
    memory: '512Gi',
    pods: '110',
    [CORE_RESOURCE]: String(100 * GPUS),
    [MEMORY_RESOURCE]: String(BLOCKS * GPUS),
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: { 'kubernetes.io/hostname': name },
      annotations: { [NODE_INVENTORY_KEY]: encodeInventory({ gpus, topology: TOPOLOGY }) },
    },
    status: { capacity: amounts, allocatable: amounts },
  };
}

/** The same GPUs for claims. */
export function resourceSlice(node: string): object {
  const gpus = gpusOf(node);
  const devices = publishedDevices(
    {
      gpus,
      topology: TOPOLOGY,
      wholeInstances: false,
      divided: [],
      driverVersion: '580.95.05',
      cudaVersion: 13_000,
    },
    () => true,
  );
  const [write] = planSlices(node, { devices, counterSets: [] }, []).writes;
  if (write === undefined) throw new Error('a node without a ResourceSlice');
  return sliceObject(write.slice, { name: node, uid: `uid-${node}` }, null);
}

export const claimObject = (name: string): object => ({
  apiVersion: 'resource.k8s.io/v1',
  kind: 'ResourceClaim',
  metadata: { name },
  spec: {
    devices: {
      requests: [
        {
          name: 'gpu',
          exactly: {
            deviceClassName: 'vgpu.tencent.com',
            capacity: { requests: { cores: String(SHARE.cores), memory: `${SHARE.memoryBlocks * 256}Mi` } },
          },
        },
      ],
    },
  },
});

/** A member of a pod group that asks for a whole node. */
export const memberObject = (group: string, name: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    schedulingGroup: { podGroupName: group },
    containers: [{ name: 'main', image: 'none', resources: { limits: { [CORE_RESOURCE]: String(100 * GPUS) } } }],
  },
});

export function podObject(name: string, way: Way): object {
  const limits = { [CORE_RESOURCE]: String(SHARE.cores), [MEMORY_RESOURCE]: String(SHARE.memoryBlocks) };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      containers: [
        { name: 'main', image: 'none', resources: way === 'claims' ? { claims: [{ name: 'g' }] } : { limits } },
      ],
      ...(way === 'claims' ? { resourceClaims: [{ name: 'g', resourceClaimName: name }] } : {}),
    },
  };
}
