import { readSelection, selectionFor, selectionInWords } from '../gpu/gpu-selection.js';
import { convertRequest, type ConvertedRequest } from '../gpu/claims/converted-request.js';
import { MOST_GPU_CONTAINERS, tooManyContainers } from '../gpu/request.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../gpu/resources.js';
import { list, record, text, type JsonRecord } from '../kube/json.js';
import { readPod, type PodContainer } from '../kube/pod.js';
import { wholeQuantity } from '../manifests/quantity.js';

/** Result of the conversion of a pod that asks for the two extended resources. */
export type PodConversion =
  | { readonly kind: 'unchanged'; readonly warning: string | null }
  | { readonly kind: 'refused'; readonly reason: string }
  | {
      readonly kind: 'converted';
      /** JSON patch of the pod. */
      readonly patch: readonly object[];
      /** The templates that the patched pod names. */
      readonly templates: readonly ConvertedRequest[];
    };

const RESOURCES = [CORE_RESOURCE, MEMORY_RESOURCE];

/** A pod with more resource claims of its own is refused. */
const MOST_CLAIMS = 256;

interface Asked {
  readonly list: 'initContainers' | 'containers';
  readonly index: number;
  readonly name: string;
  /** Ends before the containers start. */
  readonly endsFirst: boolean;
  readonly cores: number | null;
  readonly memoryBlocks: number | null;
}

/**
 * Converts the requests of a new pod into claims. Each container gets a claim of its own; an init container that ends
 * before the others start uses the claim of a container with the same amounts. A converted pod does not change again.
 */
export function convertPod(object: unknown): PodConversion {
  const pod = readPod(object);
  const spec = record(record(object).spec);
  const asked = [...askedIn('initContainers', pod.initContainers), ...askedIn('containers', pod.containers)].filter(
    ({ cores, memoryBlocks }) => cores !== 0 || memoryBlocks !== 0,
  );
  if (asked.length === 0) return { kind: 'unchanged', warning: null };
  const present = list(spec.resourceClaims);
  if (present.length > MOST_CLAIMS)
    return {
      kind: 'refused',
      reason: `the pod has ${present.length} resource claims; at most ${MOST_CLAIMS} are supported`,
    };
  if (asked.length > MOST_GPU_CONTAINERS) return { kind: 'refused', reason: tooManyContainers(asked.length) };
  if (pod.node !== null)
    return {
      kind: 'unchanged',
      warning: `${CORE_RESOURCE} is not converted into a resource claim: the pod names its node, so that no scheduler would allocate the claim`,
    };
  const read = readSelection((key) => pod.annotations[key]);
  if (!read.ok) return { kind: 'refused', reason: read.reason };
  const { selection } = read;
  const others = selectionInWords({ ...selection, equalGpus: false, gpus: 1, gpusOf: undefined });
  if (others !== '')
    return {
      kind: 'refused',
      reason: `the pod's choice of GPUs cannot become a claim${others}; give it a claim with a selector instead`,
    };
  const templates = new Map<string, ConvertedRequest>();
  /** Names of pod claims by template, which init containers may use as well. */
  const reusable = new Map<string, string>();
  const taken = new Set(present.map((claim) => text(record(claim).name)));
  const added: object[] = [];
  const patch: object[] = [];
  // The containers come first, so that init containers find their claims.
  for (const container of [...asked].sort((a, b) => Number(a.endsFirst) - Number(b.endsFirst))) {
    const { cores, memoryBlocks, name } = container;
    if (cores === null || memoryBlocks === null)
      return { kind: 'refused', reason: `container ${name}: the amounts of ${RESOURCES.join(' and ')} must be whole` };
    const request = convertRequest({ cores, memoryBlocks }, selectionFor(selection, name));
    if (!request.ok) return { kind: 'refused', reason: `container ${name}: ${request.reason}` };
    const { converted } = request;
    templates.set(converted.name, converted);
    let claim = container.endsFirst ? reusable.get(converted.name) : undefined;
    if (claim === undefined) {
      claim = freeName(taken);
      taken.add(claim);
      added.push({ name: claim, resourceClaimTemplateName: converted.name });
    }
    // A sidecar may run beside init containers.
    if (container.endsFirst || container.list === 'containers') reusable.set(converted.name, claim);
    patch.push({
      op: 'replace',
      path: `/spec/${container.list}/${container.index}/resources`,
      value: withClaim(record(record(list(spec[container.list])[container.index]).resources), claim),
    });
  }
  return {
    kind: 'converted',
    patch: [...patch, { op: 'add', path: '/spec/resourceClaims', value: [...present, ...added] }],
    templates: [...templates.values()],
  };
}

function askedIn(where: Asked['list'], containers: readonly PodContainer[]): Asked[] {
  return containers.map(({ name, isSidecar, extended }, index) => ({
    list: where,
    index,
    name,
    endsFirst: where === 'initContainers' && !isSidecar,
    cores: wholeQuantity(extended(CORE_RESOURCE)),
    memoryBlocks: wholeQuantity(extended(MEMORY_RESOURCE)),
  }));
}

/** The resources of a container without the two extended resources, and with the claim. */
function withClaim(resources: JsonRecord, claim: string): object {
  const kept = (side: 'limits' | 'requests'): object => {
    const rest = Object.entries(record(resources[side])).filter(([name]) => !RESOURCES.includes(name));
    return rest.length === 0 ? {} : { [side]: Object.fromEntries(rest) };
  };
  return { ...kept('limits'), ...kept('requests'), claims: [...list(resources.claims), { name: claim }] };
}

function freeName(taken: ReadonlySet<string>): string {
  for (let number = 0; ; number++) if (!taken.has(`vcuda-${number}`)) return `vcuda-${number}`;
}
