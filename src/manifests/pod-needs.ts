import { maxOf, plus, type Amount } from './amount.js';
import { isExtended } from './key.js';
import { readQuantity } from './quantity.js';
import { deriveGpu, VCUDA_CORE, VCUDA_MEMORY, type Amounts, type CardCatalog } from './gpu-resources.js';
import { chargedAmounts, type Annotation } from './gpu-resize.js';
import type { Json, ManifestReader } from './manifest-reader.js';

/** Requests and limits of one pod of a template. */
export interface PodNeeds {
  readonly ok: true;
  readonly requests: Readonly<Record<string, bigint>>;
  readonly limits: Readonly<Record<string, bigint>>;
  /** Quantities that some container does not state, such as `limits.cpu`. */
  readonly unspecified: readonly string[];
}

/** Why a template's resources cannot be read. */
export interface PodProblem {
  readonly ok: false;
  readonly code: 'InvalidQuantity' | 'QuantityTooLarge' | 'NegativeQuantity' | 'InvalidDemand';
  readonly reason: string;
}

interface Needs {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

interface Container extends Needs {
  /** An init container that runs beside the main containers. */
  readonly isSidecar: boolean;
}

/**
 * The most containers and distinct resources of a pod. Kubernetes has no such limits, and no node runs such a pod; but
 * the manifest of one fits into a request, and others would wait for its evaluation.
 */
const MOST = { containers: 1000, resources: 200 };

/**
 * Sums up a PodSpec as the scheduler does: the larger of the sum over concurrently running containers and the largest
 * initialisation step with its running sidecars; plus the pod's overhead; pod-level resources replace the containers'
 * resources. With the `status` of a running pod, its present allocation counts during an in-place resize, as in the
 * scheduler; with its annotations, what its containers have or may get of GPUs by a resize.
 */
export function podNeeds(
  reader: ManifestReader,
  spec: Json,
  path: string,
  gpuType: string,
  catalog: CardCatalog,
  { status, annotations }: { readonly status?: Json; readonly annotations?: Json } = {},
): PodNeeds | PodProblem {
  const missing = new Set<string>();
  const resources = new Set<string>();
  const annotation: Annotation = (key) => {
    const value = reader.at(annotations, key);
    return typeof value === 'string' ? value : undefined;
  };
  const isInfeasible = status !== undefined && isResizeInfeasible(reader, status);
  const read = (name: string, statuses: string): readonly Container[] | PodProblem => {
    const held = heldByName(reader, reader.at(status, statuses));
    const containers: Container[] = [];
    const items = reader.items(reader.at(spec, name), `${path}.${name}`);
    if (items.length > MOST.containers) return tooMany(`${path}.${name}`, items.length, MOST.containers);
    for (const [index, container] of items.entries()) {
      const isSidecar = reader.at(container, 'restartPolicy') === 'Always';
      const resized = name === 'containers' || isSidecar ? held.get(reader.at(container, 'name')) : undefined;
      const needs = containerNeeds(reader, container, `${path}.${name}[${index}]`, gpuType, catalog, missing, {
        held: resized,
        isInfeasible,
        annotation: name === 'containers' || isSidecar ? annotation : () => undefined,
      });
      if (!('requests' in needs)) return needs;
      for (const resource of [...needs.requests.keys(), ...needs.limits.keys()]) resources.add(resource);
      if (resources.size > MOST.resources) return tooMany(`resources of ${path}`, resources.size, MOST.resources);
      containers.push(needs);
    }
    return containers;
  };
  const main = read('containers', 'containerStatuses');
  if (!Array.isArray(main)) return main as PodProblem;
  const init = read('initContainers', 'initContainerStatuses');
  if (!Array.isArray(init)) return init as PodProblem;
  const whole = resourcesOf(reader, reader.at(spec, 'resources'), `${path}.resources`);
  const overhead = amountsOf(reader, reader.at(spec, 'overhead'), `${path}.overhead`);
  if ('code' in whole) return whole;
  if ('code' in overhead) return overhead;
  for (const [what, given] of [
    ['requests', whole.requests],
    ['limits', whole.limits],
  ] as const) {
    for (const name of given.keys()) missing.delete(`${what}.${name}`);
  }
  // As in the API server: a pod-level limit is also the request if no container requests the resource.
  const requested = [...(main as readonly Container[]), ...(init as readonly Container[])];
  for (const [name, amount] of whole.limits) {
    if (whole.requests.has(name) || requested.some(({ requests }) => requests.has(name))) continue;
    whole.requests.set(name, amount);
    missing.delete(`requests.${name}`);
  }
  return {
    ok: true,
    requests: total(main as readonly Container[], init as readonly Container[], 'requests', whole.requests, overhead),
    limits: total(main as readonly Container[], init as readonly Container[], 'limits', whole.limits, overhead),
    unspecified: [...missing].sort(),
  };
}

function total(
  main: readonly Container[],
  init: readonly Container[],
  what: 'requests' | 'limits',
  whole: Amounts,
  overhead: Amounts,
): Readonly<Record<string, bigint>> {
  let running: Amounts = new Map();
  const peak: Amounts = new Map();
  for (const container of init) {
    const during = sum(running, container[what]);
    raise(peak, during);
    if (container.isSidecar) running = during;
  }
  for (const container of main) running = sum(running, container[what]);
  raise(peak, running);
  for (const [name, amount] of whole) peak.set(name, amount);
  // Overhead is added only to existing limits: a pod without a limit stays unlimited.
  for (const [name, amount] of overhead)
    if (what === 'requests' || peak.has(name)) peak.set(name, plus(peak.get(name) ?? 0, amount));
  return Object.fromEntries([...peak].map(([name, amount]) => [name, BigInt(amount)]));
}

/** Allocation of a container during an in-place resize. */
interface Resize {
  readonly held: Amounts | undefined;
  /** The kubelet will never grant the request: only the present allocation counts. */
  readonly isInfeasible: boolean;
  /** The annotations of its pod that may resize its share of a GPU. */
  readonly annotation: Annotation;
}

/** Allocations of containers according to the kubelet: actual and allocated resources. */
function heldByName(reader: ManifestReader, statuses: Json): ReadonlyMap<Json, Amounts> {
  const held = new Map<Json, Amounts>();
  for (const status of reader.items(statuses, 'status')) {
    const amounts: Amounts = new Map();
    for (const given of [reader.at(status, 'resources', 'requests'), reader.at(status, 'allocatedResources')]) {
      const read = amountsOf(reader, given, 'status');
      if (!('code' in read)) raise(amounts, read);
    }
    if (amounts.size > 0) held.set(reader.at(status, 'name'), amounts);
  }
  return held;
}

/** API servers before 1.33 report this in a field, later ones in a condition. */
function isResizeInfeasible(reader: ManifestReader, status: Json): boolean {
  if (reader.at(status, 'resize') === 'Infeasible') return true;
  return reader
    .items(reader.at(status, 'conditions'), 'status.conditions')
    .some(
      (condition) =>
        reader.at(condition, 'type') === 'PodResizePending' &&
        reader.at(condition, 'status') === 'True' &&
        reader.at(condition, 'reason') === 'Infeasible',
    );
}

function containerNeeds(
  reader: ManifestReader,
  container: Json,
  path: string,
  gpuType: string,
  catalog: CardCatalog,
  missing: Set<string>,
  { held, isInfeasible, annotation }: Resize,
): Container | PodProblem {
  const needs = resourcesOf(reader, reader.at(container, 'resources'), `${path}.resources`);
  if ('code' in needs) return needs;
  // As in the API server: a limit without a request is also the request.
  for (const [name, amount] of needs.limits) if (!needs.requests.has(name)) needs.requests.set(name, amount);
  for (const [name, amount] of needs.requests)
    if (isExtended(name) && !needs.limits.has(name)) needs.limits.set(name, amount);
  for (const name of ['cpu', 'memory']) {
    if (!needs.requests.has(name)) missing.add(`requests.${name}`);
    if (!needs.limits.has(name)) missing.add(`limits.${name}`);
  }
  for (const [name, amount] of held ?? [])
    needs.requests.set(name, isInfeasible ? amount : maxOf(needs.requests.get(name) ?? 0, amount));
  const [cores, memoryBlocks] = [VCUDA_CORE, VCUDA_MEMORY].map((name) => Number(needs.requests.get(name) ?? 0));
  if (cores !== undefined && memoryBlocks !== undefined && cores > 0) {
    const name = reader.text(reader.at(container, 'name'), `${path}.name`);
    const charged = chargedAmounts(annotation, name, { cores, memoryBlocks });
    for (const amounts of [needs.requests, needs.limits]) {
      raise(amounts, new Map([[VCUDA_CORE, charged.cores]]));
      if (charged.memoryBlocks > 0) raise(amounts, new Map([[VCUDA_MEMORY, charged.memoryBlocks]]));
    }
  }
  const [requests, limits] = [deriveGpu(needs.requests, gpuType, catalog), deriveGpu(needs.limits, gpuType, catalog)];
  if (requests.isMemoryUnknown) missing.add('gpu.memory');
  const isSidecar = reader.text(reader.at(container, 'restartPolicy'), `${path}.restartPolicy`) === 'Always';
  return { requests: requests.amounts, limits: limits.amounts, isSidecar };
}

function resourcesOf(reader: ManifestReader, resources: Json, path: string): Needs | PodProblem {
  const requests = amountsOf(reader, reader.at(resources, 'requests'), `${path}.requests`);
  if ('code' in requests) return requests;
  const limits = amountsOf(reader, reader.at(resources, 'limits'), `${path}.limits`);
  return 'code' in limits ? limits : { requests, limits };
}

function amountsOf(reader: ManifestReader, value: Json, path: string): Amounts | PodProblem {
  const amounts: Amounts = new Map();
  const found = reader.size(value);
  if (found > MOST.resources) return tooMany(path, found, MOST.resources);
  for (const [name, quantity] of reader.quantities(value, path)) {
    const read = readQuantity(name, quantity, 'up');
    if (!read.ok) return { ok: false, code: read.code, reason: `${path}.${name.slice(0, 80)}: ${read.reason}` };
    if (read.amount < 0)
      return { ok: false, code: 'NegativeQuantity', reason: `${path}.${name.slice(0, 80)} is negative` };
    amounts.set(name, read.amount);
  }
  return amounts;
}

function tooMany(path: string, found: number, most: number): PodProblem {
  return { ok: false, code: 'InvalidDemand', reason: `${path}: expected at most ${most}, found ${found}` };
}

function sum(a: Amounts, b: Amounts): Amounts {
  const both = new Map(a);
  for (const [name, amount] of b) both.set(name, plus(both.get(name) ?? 0, amount));
  return both;
}

function raise(peak: Amounts, to: ReadonlyMap<string, Amount>): void {
  for (const [name, amount] of to) peak.set(name, maxOf(peak.get(name) ?? 0, amount));
}
