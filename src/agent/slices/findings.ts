/** Decides which audit findings last long enough to be reported, and when a pod is evicted for them. Pure. */
import type { Finding, FindingCode } from './audit.js';

/** `report`: report findings; `evict`: also evict the pod for serious findings. */
export type AuditPolicy = 'report' | 'evict';
export const AUDIT_POLICIES: readonly AuditPolicy[] = ['report', 'evict'];

/** A finding, and in how many audits in a row it was there. */
export interface Standing {
  readonly finding: Finding;
  readonly audits: number;
  readonly raised: boolean;
}

/** By code and subject. */
export type FindingState = ReadonlyMap<string, Standing>;
export const NO_FINDINGS: FindingState = new Map();

/** One sample is no evidence: processes start and end between two samples. */
const AUDITS_TO_RAISE = 2;
const AUDITS_TO_EVICT = 3;
/** An eviction may be refused, by a disruption budget for one; it is asked for again after so many audits. */
const AUDITS_TO_EVICT_AGAIN = 12;

export interface FindingNews {
  readonly state: FindingState;
  /** Said for the first time. */
  readonly raised: readonly Finding[];
  /** Were said, and are no more. */
  readonly cleared: readonly Finding[];
  /** Why the container is to be evicted now; null when it is not. */
  readonly evict: Finding | null;
}

/** Takes in what one audit of one container found. */
export function advance(before: FindingState, found: readonly Finding[], policy: AuditPolicy): FindingNews {
  const state = new Map<string, Standing>();
  const raised: Finding[] = [];
  for (const finding of found) {
    const key = keyOf(finding);
    const known = before.get(key);
    const audits = (known?.audits ?? 0) + 1;
    const said = known?.raised === true;
    const say = said || finding.certain === true || audits >= AUDITS_TO_RAISE;
    if (say && !said) raised.push(finding);
    state.set(key, { finding, audits, raised: say });
  }
  const standing = [...state.values()];
  const cleared = [...before]
    .filter(([key, known]) => known.raised && !state.has(key))
    .map(([, { finding }]) => finding);
  const due = standing.find(
    ({ finding, audits }) =>
      finding.serious && audits >= AUDITS_TO_EVICT && (audits - AUDITS_TO_EVICT) % AUDITS_TO_EVICT_AGAIN === 0,
  );
  return { state, raised, cleared, evict: policy === 'evict' ? (due?.finding ?? null) : null };
}

/** Those that were said and still stand. */
export function standing(state: FindingState): Finding[] {
  return [...state.values()].filter(({ raised }) => raised).map(({ finding }) => finding);
}

function keyOf(finding: { readonly code: FindingCode; readonly subject: string }): string {
  return `${finding.code} ${finding.subject}`;
}
