import type { GpuOfType } from './gpu-resources.js';
import { readQuantity } from './quantity.js';
import type { Json, ManifestReader } from './manifest-reader.js';

/** Amounts by resource. */
type Amounts = Record<string, number>;

/** DeviceClasses of this project: shares are charged like the resources of the device plugin. */
const OWN_CLASSES: ReadonlySet<string> = new Set(['gpu.tencent.com', 'vgpu.tencent.com']);
const NVIDIA_CLASS = 'gpu.nvidia.com';
const BLOCK_BYTES = 2 ** 28;
const WHOLE_CORES = 100;

export const CLAIM_API_VERSION = 'resource.k8s.io/v1';

/** Memory of a whole GPU; null for an unknown type. */
export function cardBytesOf({ type, catalog }: GpuOfType): number | null {
  return Object.hasOwn(catalog, type) ? (catalog[type] as number) : null;
}

/** Adds the requests of claims to a pod, as one more container. */
export function withClaims(reader: ManifestReader, spec: Json, claimed: Readonly<Record<string, number>>): Json {
  if (Object.keys(claimed).length === 0) return spec;
  const asked = { cpu: 0, memory: 0, ...claimed };
  const containers = reader.items(reader.at(spec, 'containers'), 'spec.containers');
  return {
    ...(spec as object | undefined),
    containers: [...containers, { name: 'claims', resources: { requests: asked, limits: asked } }],
  };
}

/** Requests of the claims that are created from templates for each pod. `cardBytes` is the memory of a whole GPU. */
export function claimAmounts(
  reader: ManifestReader,
  spec: Json,
  path: string,
  lookup: (apiVersion: string, kind: string, name: string) => Json,
  cardBytes: number | null,
): Readonly<Amounts> {
  const sum: Amounts = {};
  for (const [index, claim] of reader.items(reader.at(spec, 'resourceClaims'), `${path}.resourceClaims`).entries()) {
    const at = `${path}.resourceClaims[${index}]`;
    const name = reader.text(reader.at(claim, 'resourceClaimTemplateName'), at);
    if (name === '') continue;
    const template = lookup(CLAIM_API_VERSION, 'ResourceClaimTemplate', name);
    if (template === undefined) reader.problems.push(`${at}: unknown ResourceClaimTemplate ${name}`);
    add(sum, devicesOf(reader, reader.at(template, 'spec', 'spec', 'devices'), at, cardBytes));
  }
  return sum;
}

/** DeviceClasses in the claims of a pod. */
export function deviceClassesOf(
  reader: ManifestReader,
  spec: Json,
  lookup: (apiVersion: string, kind: string, name: string) => Json,
): readonly string[] {
  return reader.items(reader.at(spec, 'resourceClaims'), 'resourceClaims').flatMap((claim) => {
    const name = reader.text(reader.at(claim, 'resourceClaimTemplateName'), 'resourceClaims');
    const template = name === '' ? undefined : lookup(CLAIM_API_VERSION, 'ResourceClaimTemplate', name);
    return reader
      .items(reader.at(template, 'spec', 'spec', 'devices', 'requests'), 'requests')
      .flatMap((request) => alternativesOf(reader, request))
      .map((asked) => reader.text(reader.at(asked, 'deviceClassName'), 'deviceClassName'));
  });
}

/** Sum of all requests; for alternatives, the maximum of each resource. */
export function devicesOf(reader: ManifestReader, devices: Json, path: string, cardBytes: number | null): Amounts {
  const sum: Amounts = {};
  for (const [index, request] of reader.items(reader.at(devices, 'requests'), `${path}.requests`).entries()) {
    const most: Amounts = {};
    for (const asked of alternativesOf(reader, request))
      for (const [resource, amount] of Object.entries(
        deviceAmounts(reader, asked, `${path}.requests[${index}]`, cardBytes),
      ))
        most[resource] = Math.max(most[resource] ?? 0, amount);
    add(sum, most);
  }
  return sum;
}

function alternativesOf(reader: ManifestReader, request: Json): readonly Json[] {
  const exactly = reader.at(request, 'exactly');
  return exactly === undefined ? reader.items(reader.at(request, 'firstAvailable'), 'firstAvailable') : [exactly];
}

function deviceAmounts(reader: ManifestReader, asked: Json, path: string, cardBytes: number | null): Amounts {
  if (reader.at(asked, 'allocationMode') === 'All')
    reader.problems.push(`${path}: allocationMode All cannot be charged; request a count`);
  const count = reader.count(reader.at(asked, 'count'), `${path}.count`, 1);
  const deviceClass = reader.text(reader.at(asked, 'deviceClassName'), `${path}.deviceClassName`);
  const amounts: Amounts = { [`${deviceClass}.deviceclass.resource.k8s.io/devices`]: count };
  if (deviceClass === NVIDIA_CLASS) return { ...amounts, 'nvidia.com/gpu': count };
  const capacity = reader.quantities(reader.at(asked, 'capacity', 'requests'), `${path}.capacity.requests`);
  const [cores, memory] = [capacity.get('cores'), capacity.get('memory')];
  if (!OWN_CLASSES.has(deviceClass) && cores === undefined) return amounts;
  const read = (resource: string, quantity: string | number): number => {
    const parsed = readQuantity(resource, quantity, 'up');
    if (parsed.ok) return Number(parsed.amount);
    reader.problems.push(`${path}.capacity.requests: ${parsed.reason}`);
    return 0;
  };
  // A missing capacity request means the whole device.
  const bytes = memory === undefined ? cardBytes : read('memory', memory);
  return {
    ...amounts,
    'tencent.com/vcuda-core': count * (cores === undefined ? WHOLE_CORES : read('tencent.com/vcuda-core', cores)),
    ...(bytes === null ? {} : { 'tencent.com/vcuda-memory': count * Math.ceil(bytes / BLOCK_BYTES) }),
  };
}

function add(sum: Amounts, more: Readonly<Amounts>): void {
  for (const [resource, amount] of Object.entries(more)) sum[resource] = (sum[resource] ?? 0) + amount;
}
