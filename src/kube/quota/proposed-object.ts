import { API_VERSION, ALLOCATION_KIND, CONSUMER_KIND } from './names.js';
import { record, text } from '../json.js';

/**
 * API groups of the proposal that first described Consumers and Allocations (kubernetes/community, pull request 328,
 * 2017): its own spelling, the one that it meant, and that of the project that came of it.
 */
const PROPOSED_GROUPS: readonly string[] = [
  'kuabe-arbitrator.incubator.k8s.io',
  'kube-arbitrator.incubator.k8s.io',
  'arbitrator.incubator.k8s.io',
];

/** What becomes of an object of the proposal. */
export type ProposedConversion =
  | { readonly kind: 'unchanged' }
  /** It is written by the arbitrator and not by users. */
  | { readonly kind: 'left-out'; readonly reason: string }
  | { readonly kind: 'renamed'; readonly apiVersion: string; readonly name: string; readonly notes: readonly string[] };

/** Converts a Consumer as the proposal writes it: its amounts have the same names here, its API group has not. */
export function convertProposed(object: unknown): ProposedConversion {
  const { apiVersion, kind, metadata } = record(object);
  if (!PROPOSED_GROUPS.includes(text(apiVersion).split('/')[0] as string)) return { kind: 'unchanged' };
  if (kind === ALLOCATION_KIND)
    return { kind: 'left-out', reason: 'left out: the arbitrator writes an Allocation for each namespace' };
  if (kind !== CONSUMER_KIND) return { kind: 'unchanged' };
  const { name, namespace } = record(metadata);
  const [own, within] = [text(name), text(namespace)];
  const isMoved = within !== '' && within !== own;
  return {
    kind: 'renamed',
    apiVersion: API_VERSION,
    name: within === '' ? own : within,
    notes: isMoved
      ? [`named ${within}, after its namespace: a Consumer has the name of the namespace that it limits`]
      : [],
  };
}
