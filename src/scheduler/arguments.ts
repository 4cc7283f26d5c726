import type { Victims } from '../cluster/preemption.js';
import { readPod, type Pod } from '../kube/pod.js';
import {
  BrokenJson,
  eachElement,
  eachMember,
  endOfValue,
  isArrayAt,
  isObjectAt,
  skipSpace,
  valueAt,
} from './json-slices.js';

/**
 * Bodies of the scheduler's calls. Their Go types have no JSON tags today (`Pod`, `NodeNames`) and had lower-case tags
 * before Kubernetes 1.17 (`pod`, `nodenames`); Go reads keys in any case, so all cases are read here. Inside pods and
 * nodes the keys are the API's own JSON, always in one case.
 */

/** An API server takes a pod of 3 MiB; 100,000 names of nodes have fewer. */
const MOST_PARSED_BYTES = 6 << 20;
/** Four names of at most 253 characters. */
const MOST_BINDING_BYTES = 16 << 10;

/** `ExtenderArgs`: of filter and prioritize. */
export interface ExtenderArguments {
  readonly pod: Pod;
  /** Whole nodes, from schedulers with `nodeCacheCapable: false`. */
  readonly nodes: NodeList | null;
  /** Node names, from schedulers with `nodeCacheCapable: true`. */
  readonly nodeNames: readonly string[] | null;
}

/** A list of whole nodes as received. Of each node only the name is read: five thousand nodes are 14 MB. */
export interface NodeList {
  readonly nodes: readonly NamedNode[];
  /** The list in the body, and its array of items; null without items. */
  readonly list: Slice;
  readonly items: Slice | null;
  readonly body: Buffer;
}

/** A range of bytes in the body. */
export interface Slice {
  readonly start: number;
  readonly end: number;
}

/** The range of a node in the body, and its name; the name may be empty. */
export interface NamedNode extends Slice {
  readonly name: string;
}

/** `ExtenderBindingArgs`. */
export interface BindingArguments {
  readonly podName: string;
  readonly podNamespace: string;
  readonly podUid: string;
  readonly node: string;
}

/** `ExtenderPreemptionArgs`. */
export interface PreemptionArguments {
  readonly pod: Pod;
  readonly victims: ReadonlyMap<string, Victims>;
}

/** A body that does not match the verb; the message becomes `Error` in the answer to the scheduler. */
export class BadArguments extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'BadArguments';
  }
}

export function readExtenderArguments(body: Buffer): ExtenderArguments {
  let pod: unknown = null;
  let nodes: NodeList | null = null;
  let names: readonly string[] | null = null;
  inJson(() => {
    const whole = (start: number, keep: (value: unknown) => void): number => {
      const end = endOfValue(body, start);
      if (end - start > MOST_PARSED_BYTES)
        throw new BadArguments(`a pod or list of names has more than ${MOST_PARSED_BYTES} bytes`);
      keep(valueAt(body, start, end));
      return end;
    };
    const start = skipSpace(body, 0);
    if (!isObjectAt(body, start) && valueAt(body, start, endOfValue(body, start)) !== undefined)
      throw new BadArguments('the body is not a JSON object');
    const end = eachMember(body, start, (key, at) => {
      switch (key.toLowerCase()) {
        case 'pod':
          return whole(at, (value) => (pod = value));
        case 'nodenames':
          return whole(at, (value) => {
            if (value !== null) names = namesOf(value);
          });
        case 'nodes': {
          if (!isObjectAt(body, at))
            return whole(at, (value) => {
              if (value !== null) throw new BadArguments('Nodes is not a node list');
            });
          nodes = nodeListAt(body, at);
          return nodes.list.end;
        }
        default:
          return endOfValue(body, at);
      }
    });
    if (skipSpace(body, end) < body.length) throw new BrokenJson(end, 'the end of the body');
  });
  if (!isRecord(pod)) throw new BadArguments('Pod is missing');
  if (nodes === null && names === null) throw new BadArguments('neither Nodes nor NodeNames given');
  return { pod: readPod(pod), nodes, nodeNames: names };
}

function namesOf(value: unknown): readonly string[] {
  if (!Array.isArray(value) || !value.every((name) => typeof name === 'string'))
    throw new BadArguments('NodeNames is not a list of names');
  return value;
}

function nodeListAt(body: Buffer, start: number): NodeList {
  const nodes: NamedNode[] = [];
  let items: Slice | null = null;
  const end = eachMember(body, start, (key, at) => {
    if (key.toLowerCase() !== 'items') return endOfValue(body, at);
    if (!isArrayAt(body, at)) {
      const last = endOfValue(body, at);
      if (valueAt(body, at, last) !== null) throw new BadArguments('Nodes is not a node list');
      return last;
    }
    const last = eachElement(body, at, (element) => {
      if (!isObjectAt(body, element)) throw new BadArguments('Nodes contains an item that is not a node');
      const node = nodeAt(body, element);
      nodes.push(node);
      return node.end;
    });
    items = { start: at, end: last };
    return last;
  });
  return { nodes, list: { start, end }, items, body };
}

function nodeAt(body: Buffer, start: number): NamedNode {
  let name = '';
  const end = eachMember(body, start, (key, at) => {
    if (key !== 'metadata' || !isObjectAt(body, at)) return endOfValue(body, at);
    return -eachMember(body, at, (inner, value) => {
      if (inner !== 'name') return endOfValue(body, value);
      const last = endOfValue(body, value);
      const read = valueAt(body, value, last);
      name = typeof read === 'string' ? read : '';
      return -last;
    });
  });
  return { name, start, end };
}

function inJson(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (error instanceof BrokenJson) throw new BadArguments(`the body is not JSON: ${error.message}`);
    throw error;
  }
}

export function readBindingArguments(body: Buffer): BindingArguments {
  if (body.length > MOST_BINDING_BYTES) throw new BadArguments(`a binding has more than ${MOST_BINDING_BYTES} bytes`);
  const document = documentOf(body);
  const text = (name: string): string => {
    const value = field(document, name);
    if (typeof value !== 'string' || value === '') throw new BadArguments(`${name} is missing`);
    return value;
  };
  return { podName: text('PodName'), podNamespace: text('PodNamespace'), podUid: text('PodUID'), node: text('Node') };
}

export function readPreemptionArguments(body: Buffer): PreemptionArguments {
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
  if (!isRecord(value) || !Array.isArray(pods)) throw new BadArguments(`victims of ${node} are not a list of pods`);
  const uids = pods.map((pod: unknown) => {
    const uid = !isRecord(pod) ? null : (field(pod, 'UID') ?? (isRecord(pod.metadata) ? pod.metadata.uid : null));
    if (typeof uid !== 'string') throw new BadArguments(`a victim on ${node} has no UID`);
    return uid;
  });
  const violations = field(value, 'NumPDBViolations');
  return { uids, pdbViolations: typeof violations === 'number' ? violations : 0 };
}

function documentOf(body: Buffer): Record<string, unknown> {
  let document: unknown;
  inJson(() => {
    endOfValue(body, skipSpace(body, 0));
    document = valueAt(body, 0, body.length);
  });
  if (!isRecord(document)) throw new BadArguments('the body is not a JSON object');
  return document;
}

function podOf(document: Record<string, unknown>): Pod {
  const pod = field(document, 'Pod');
  if (!isRecord(pod)) throw new BadArguments('Pod is missing');
  return readPod(pod);
}

/** The field's value under any case of its name; null if it is missing or null. The usual spelling is tried first. */
function field(document: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(document, name)) return document[name] ?? null;
  const wanted = name.toLowerCase();
  const key = Object.keys(document).find((candidate) => candidate.toLowerCase() === wanted);
  return key === undefined ? null : (document[key] ?? null);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
