import { createHash } from 'node:crypto';
import { checkRequest, divisionOf } from '../division.js';
import type { GpuSelection } from '../gpu-selection.js';
import { checkPair, refuse, type ContainerRequest, type RequestRefusal } from '../request.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../resources.js';
import { CORES_CAPACITY, MAX_GPUS, MEMORY_CAPACITY } from './claim-units.js';
import { DRIVER_NAME } from './names.js';

/** DeviceClasses of etc/dra/device-classes.yaml. */
export const WHOLE_CLASS = 'gpu.tencent.com';
export const SHARE_CLASS = 'vgpu.tencent.com';
export const INSTANCE_CLASS = 'mig.tencent.com';

/** Sizes of linked sets that GPUs have as attributes. */
const LINKED_SIZES = [2, 4, 8];
const MEBIBYTE = 2 ** 20;

/** A ResourceClaimTemplate for the amounts of one container. */
export interface ConvertedRequest {
  /** Depends only on the specification: equal requests share a template, and a changed specification gets a new one. */
  readonly name: string;
  /** The specification of the claims. */
  readonly spec: object;
}

/**
 * The claim that gives the same as the two extended resources of a container: a share or a whole GPU, or several whole
 * GPUs or equal parts of several, linked if such a set is free, else near one NUMA node if possible. `selection` says
 * how many GPUs have parts, and whether several GPUs must be of one model.
 */
export function convertRequest(
  request: ContainerRequest,
  selection: GpuSelection,
): { readonly ok: true; readonly converted: ConvertedRequest } | RequestRefusal {
  const { cores, memoryBlocks } = request;
  const refusal = checkPair(request) ?? checkRequest(request, selection);
  if (refusal !== null) return refusal;
  const { gpus: count, coresEach } = divisionOf(cores, selection);
  if (count > MAX_GPUS)
    return refuse('bad-core-count', `${count} GPUs in one container; a claim has at most ${MAX_GPUS}`);
  if (memoryBlocks % count !== 0)
    return refuse(
      'mismatch',
      `${MEMORY_RESOURCE}: ${memoryBlocks} blocks cannot be divided equally among ${count} GPUs, as a claim needs; ask for a multiple of ${count}`,
    );
  const devices =
    memoryBlocks === 0
      ? { deviceClassName: WHOLE_CLASS }
      : {
          deviceClassName: SHARE_CLASS,
          capacity: {
            requests: {
              [CORES_CAPACITY]: String(coresEach),
              [MEMORY_CAPACITY]: `${(memoryBlocks / count) * (MEMORY_BLOCK_BYTES / MEBIBYTE)}Mi`,
            },
          },
        };
  const wanted = { ...devices, allocationMode: 'ExactCount', count };
  const isLinked = LINKED_SIZES.includes(count);
  const isEqual = selection.equalGpus && count > 1;
  const constraints = [
    ...(isLinked
      ? [
          { requests: ['gpu/linked'], matchAttribute: `${DRIVER_NAME}/linkGroup${count}` },
          { requests: ['gpu/near'], matchAttribute: 'resource.kubernetes.io/numaNode' },
        ]
      : []),
    ...(isEqual ? [{ requests: ['gpu'], matchAttribute: `${DRIVER_NAME}/model` }] : []),
  ];
  const spec = {
    devices: {
      requests: [
        isLinked
          ? { name: 'gpu', firstAvailable: ['linked', 'near', 'any'].map((name) => ({ name, ...wanted })) }
          : { name: 'gpu', exactly: wanted },
      ],
      ...(constraints.length === 0 ? {} : { constraints }),
    },
  };
  const amounts = [
    count === 1 ? cores : `${count}x${coresEach === CORES_PER_GPU ? '' : coresEach}`,
    ...(memoryBlocks === 0 ? [] : [memoryBlocks]),
    ...(isEqual ? ['equal'] : []),
  ].join('-');
  const hash = createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 8);
  return { ok: true, converted: { name: `vcuda-${amounts}-${hash}`, spec } };
}
