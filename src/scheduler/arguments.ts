import { readPod, type Pod } from '../kube/pod.js';
import { nameOf } from '../kube/node.js';

/**
 * Bodies of the scheduler's calls. Their Go types have no JSON tags today (`Pod`, `NodeNames`) and had lower-case ones
 * before Kubernetes 1.17 (`pod`, `nodenames`); Go reads keys in any case, so all are read here too. What lies inside
 * pods and nodes is the API's own JSON, always in one case.
 */

/** `ExtenderArgs`: of filter and prioritize. */
export interface ExtenderArguments {
  readonly pod: Pod;
  /** Whole nodes, from schedulers with `nodeCacheCapable: false`. */
  readonly nodes: NodeList | null;
  /** Their names, from schedulers with `nodeCacheCapable: true`. */
  readonly nodeNames: readonly string[] | null;
}

export interface NodeList {
  readonly nodes: readonly NamedNode[];
  /** The list as it came, for the reply. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** A node as it came, and its name. */
export interface NamedNode {
  readonly name: string;
  readonly raw: unknown;
}

/** `ExtenderBindingArgs`. */
export interface BindingArguments {
  readonly podName: string;
  readonly podNamespace: string;
  readonly podUid: string;
  readonly node: string;
}

/** Pods that would have to go so that the pod fits on a node. */
export interface Victims {
  readonly uids: readonly string[];
  readonly pdbViolations: number;
}

/** `ExtenderPreemptionArgs`. */
export interface PreemptionArguments {
  readonly pod: Pod;
  readonly victims: ReadonlyMap<string, Victims>;
}

/** A body that does not match the verb; the message becomes the scheduler's `Error`. */
export class BadArguments extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'BadArguments';
  }
}

export function readExtenderArguments(body: string): ExtenderArguments {
  const document = documentOf(body);
  const pod = podOf(document);
  const nodes = field(document, 'Nodes');
  const names = field(document, 'NodeNames');
  if (nodes === null && names === null) throw new BadArguments('neither Nodes nor NodeNames given');
  return {
    pod,
    nodes: nodes === null ? null : nodeListOf(nodes),
    nodeNames: names === null ? null : namesOf(names, 'NodeNames'),
  };
}

export function readBindingArguments(body: string): BindingArguments {
  const document = documentOf(body);
  const text = (name: string): string => {
    const value = field(document, name);
    if (typeof value !== 'string' || value === '') throw new BadArguments(`${name} is missing`);
    return value;
  };
  return { podName: text('PodName'), podNamespace: text('PodNamespace'), podUid: text('PodUID'), node: text('Node') };
}

export function readPreemptionArguments(body: string): PreemptionArguments {
  const document = documentOf(body);
  const pod = podOf(document);
  const whole = field(document, 'NodeNameToVictims');
  const meta = field(document, 'NodeNameToMetaVictims');
  const byNode = meta ?? whole;
  if (!isRecord(byNode)) throw new BadArguments('neither NodeNameToVictims nor NodeNameToMetaVictims given');
  return { pod, victims: new Map(Object.entries(byNode).map(([node, victims]) => [node, victimsOf(node, victims)])) };
}

function victimsOf(node: string, value: unknown): Victims {
  const pods = isRecord(value) ? (field(value, 'Pods') ?? []) : null;
  if (!isRecord(value) || !Array.isArray(pods)) throw new BadArguments(`victims of ${node} are no list of pods`);
  const uids = pods.map((pod: unknown) => {
    const uid = !isRecord(pod) ? null : (field(pod, 'UID') ?? (isRecord(pod.metadata) ? pod.metadata.uid : null));
    if (typeof uid !== 'string') throw new BadArguments(`a victim on ${node} has no UID`);
    return uid;
  });
  const violations = field(value, 'NumPDBViolations');
  return { uids, pdbViolations: typeof violations === 'number' ? violations : 0 };
}

function documentOf(body: string): Record<string, unknown> {
  let document: unknown;
  try {
    document = JSON.parse(body);
  } catch (error) {
    throw new BadArguments(`the body is not JSON: ${(error as Error).message}`);
  }
  if (!isRecord(document)) throw new BadArguments('the body is no JSON object');
  return document;
}

function podOf(document: Record<string, unknown>): Pod {
  const pod = field(document, 'Pod');
  if (!isRecord(pod)) throw new BadArguments('Pod is missing');
  return readPod(pod);
}

function nodeListOf(value: unknown): NodeList {
  const items = isRecord(value) ? field(value, 'items') : null;
  if (!isRecord(value) || (items !== null && !Array.isArray(items))) throw new BadArguments('Nodes is no node list');
  const nodes = (items ?? []) as unknown[];
  if (!nodes.every(isRecord)) throw new BadArguments('Nodes holds something that is no node');
  return { nodes: nodes.map((raw) => ({ name: nameOf(raw), raw })), raw: value };
}

function namesOf(value: unknown, name: string): string[] {
  if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'string'))
    throw new BadArguments(`${name} is no list of names`);
  return value;
}

/**
 * The field's value under any case of its name; null where it is missing or null. The usual spelling is looked up
 * first.
 */
function field(document: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(document, name)) return document[name] ?? null;
  const wanted = name.toLowerCase();
  const key = Object.keys(document).find((candidate) => candidate.toLowerCase() === wanted);
  return key === undefined ? null : (document[key] ?? null);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
