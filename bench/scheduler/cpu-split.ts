import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The parts of the extender's work. */
export const PARTS = ['filter', 'prioritize', 'binding', 'watching'] as const;

export type Part = (typeof PARTS)[number];

/**
 * Seconds in the JavaScript of each part. HTTP, system calls and garbage collection belong to none: a profile has the
 * time of the clock, and in a system call that wakes its reader most of this is the reader's.
 */
export type CpuSplit = Readonly<Record<Part, number>>;

interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: Frame;
  readonly children?: readonly number[];
}

interface Profile {
  /** Microseconds of the monotonic clock. */
  readonly startTime: number;
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Methods of the service, one for each verb. */
const VERBS: ReadonlyMap<string, Part> = new Map([
  ['filter', 'filter'],
  ['prioritize', 'prioritize'],
  ['bind', 'binding'],
]);

/** Splits the only profile in a directory, as `node --cpu-prof` writes it, from a time of the monotonic clock on. */
export function splitOf(directory: string, fromMicros: number): CpuSplit {
  const [file] = readdirSync(directory);
  if (file === undefined) throw new Error(`no profile in ${directory}`);
  return split(JSON.parse(readFileSync(join(directory, file), 'utf8')) as Profile, fromMicros);
}

function split({ nodes, samples, timeDeltas, startTime }: Profile, fromMicros: number): CpuSplit {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const routes = routeParts(nodes, byId);
  const partOf = new Map<number, Part | null>();
  const visit = (node: ProfileNode, above: Part | null): void => {
    const part = isOutside(node.callFrame) ? null : (above ?? partOfFrame(node.callFrame, routes));
    partOf.set(node.id, part);
    for (const child of node.children ?? []) visit(byId.get(child) as ProfileNode, part);
  };
  visit(nodes[0] as ProfileNode, null);
  const micros: Record<Part, number> = { filter: 0, prioritize: 0, binding: 0, watching: 0 };
  let now = startTime;
  for (const [at, id] of samples.entries()) {
    const lasted = timeDeltas[at] ?? 0;
    now += lasted;
    const part = partOf.get(id) ?? null;
    if (part !== null && now >= fromMicros) micros[part] += lasted;
  }
  return Object.fromEntries(PARTS.map((part) => [part, micros[part] / 1e6])) as unknown as CpuSplit;
}

/** A system call or the garbage collector. */
function isOutside({ functionName, url }: Frame): boolean {
  return url === '' && /^(write|\(garbage)/.test(functionName);
}

/** By handler of a verb in the routes: the part of the service that it calls. */
function routeParts(nodes: readonly ProfileNode[], byId: ReadonlyMap<number, ProfileNode>): ReadonlyMap<string, Part> {
  const called = new Map<string, Set<Part>>();
  for (const { callFrame, children = [] } of nodes) {
    if (!callFrame.url.endsWith('scheduler/verb-routes.js') || callFrame.functionName !== 'answer') continue;
    const parts = called.get(keyOf(callFrame)) ?? new Set();
    called.set(keyOf(callFrame), parts);
    for (const child of children) {
      const frame = (byId.get(child) as ProfileNode).callFrame;
      const part = frame.url.endsWith('scheduler/extender-service.js') ? VERBS.get(frame.functionName) : undefined;
      if (part !== undefined) parts.add(part);
    }
  }
  return new Map([...called].flatMap(([key, parts]) => (parts.size === 1 ? [[key, [...parts][0] as Part]] : [])));
}

function partOfFrame(frame: Frame, routes: ReadonlyMap<string, Part>): Part | null {
  const { functionName, url } = frame;
  if (url.endsWith('scheduler/extender-service.js')) return VERBS.get(functionName) ?? null;
  if (url.endsWith('scheduler/verb-routes.js')) return routes.get(keyOf(frame)) ?? null;
  if (url.endsWith('scheduler/results.js')) return functionName === 'printPriorities' ? 'prioritize' : 'filter';
  if (url.endsWith('scheduler/pod-writer.js') || url.endsWith('kube/pod-writes.js')) return 'binding';
  if (url.endsWith('kube/client.js')) return /^(#lines|watch|event)$/.test(functionName) ? 'watching' : 'binding';
  if (/(kube\/informer|kube\/pod|kube\/node|cluster\/cluster-cache)\.js$/.test(url)) return 'watching';
  return null;
}

function keyOf({ functionName, url, lineNumber, columnNumber }: Frame): string {
  return `${functionName} ${url}:${lineNumber}:${columnNumber}`;
}
