import type { Victims } from '../cluster/preemption.js';
import type { ExtenderArguments, NodeList } from './arguments.js';

/**
 * Replies to the scheduler. Keys have the case of today's Go types. Older schedulers read them as well, because Go
 * ignores case. Nodes of `FailedAndUnresolvableNodes` are in `FailedNodes` too: schedulers before 1.20 know only that,
 * and later ones give the former precedence.
 */
export interface FilterResult {
  /** Whole nodes as JSON, in pieces of the request. */
  readonly Nodes: readonly Buffer[] | null;
  readonly NodeNames: readonly string[] | null;
  readonly FailedNodes: Readonly<Record<string, string>>;
  readonly FailedAndUnresolvableNodes: Readonly<Record<string, string>>;
  readonly Error: string;
}

/** The fitting nodes (`fits`, in the given order), as names or as whole nodes like the request. */
export function filterResult(
  given: ExtenderArguments,
  fits: readonly string[],
  failed: Readonly<Record<string, string>>,
  unresolvable: Readonly<Record<string, string>>,
): FilterResult {
  const { nodes, nodeNames: names } = given;
  return {
    Nodes: nodes === null ? null : nodesThatFit(nodes, new Set(fits)),
    NodeNames: names === null ? null : fits,
    FailedNodes: { ...failed, ...unresolvable },
    FailedAndUnresolvableNodes: unresolvable,
    Error: '',
  };
}

/** The received list, reduced to the fitting items. Neighbours that fit are one piece, with what is between them. */
function nodesThatFit({ nodes, list, items, body }: NodeList, fits: ReadonlySet<string>): readonly Buffer[] {
  if (items === null) return [body.subarray(list.start, list.end)];
  const parts: Buffer[] = [body.subarray(list.start, items.start), OPEN];
  let run = { start: -1, end: -1 };
  const endRun = (): void => {
    if (run.start < 0) return;
    if (parts.length > 2) parts.push(COMMA);
    parts.push(body.subarray(run.start, run.end));
    run = { start: -1, end: -1 };
  };
  for (const { name, start, end } of nodes) {
    if (fits.has(name)) run = { start: run.start < 0 ? start : run.start, end };
    else endRun();
  }
  endRun();
  return [...parts, CLOSE, body.subarray(items.end, list.end)];
}

const [OPEN, COMMA, CLOSE] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')] as const;

/** The result as the scheduler reads it; with whole nodes in pieces, because these are megabytes. */
export function printFilterResult({ Nodes, ...others }: FilterResult): string | readonly Buffer[] {
  if (Nodes === null) return JSON.stringify({ Nodes, ...others });
  return [Buffer.from('{"Nodes":'), ...Nodes, COMMA, Buffer.from(JSON.stringify(others).slice(1))];
}

export function filterError(reason: string): FilterResult {
  return { Nodes: null, NodeNames: null, FailedNodes: {}, FailedAndUnresolvableNodes: {}, Error: reason };
}

export interface HostPriority {
  readonly Host: string;
  readonly Score: number;
}

/** Empty for success: the scheduler reads no other field. */
export interface BindingResult {
  readonly Error: string;
}

export interface PreemptionResult {
  readonly NodeNameToMetaVictims: Readonly<
    Record<string, { readonly Pods: readonly { readonly UID: string }[]; readonly NumPDBViolations: number }>
  >;
}

export function preemptionResult(victims: ReadonlyMap<string, Victims>): PreemptionResult {
  const entries = [...victims].map(
    ([node, { uids, pdbViolations }]) =>
      [node, { Pods: uids.map((UID) => ({ UID })), NumPDBViolations: pdbViolations }] as const,
  );
  return { NodeNameToMetaVictims: Object.fromEntries(entries) };
}

/** The node names of a request. */
export function nodeNames(given: ExtenderArguments): readonly string[] {
  return given.nodeNames ?? (given.nodes?.nodes ?? []).map(({ name }) => name);
}
