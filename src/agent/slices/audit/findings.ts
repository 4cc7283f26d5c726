/** Decides which audit findings last long enough to be reported, and when a pod is evicted for them. Pure. */
import type { Finding, FindingCode } from './audit.js';

/** `report`: report findings; `evict`: also evict the pod for serious findings. */
export type AuditPolicy = 'report' | 'evict';
export const AUDIT_POLICIES: readonly AuditPolicy[] = ['report', 'evict'];

/** A finding, and the number of consecutive audits that had it. */
export interface LastingFinding {
  readonly finding: Finding;
  readonly audits: number;
  readonly raised: boolean;
}

/** By code and subject. */
export type FindingState = ReadonlyMap<string, LastingFinding>;
export const NO_FINDINGS: FindingState = new Map();

/** One sample is not enough: processes start and end between two samples. */
const AUDITS_TO_RAISE = 2;
const AUDITS_TO_EVICT = 3;
/** An eviction may be refused, for example by a disruption budget; it is requested again after this many audits. */
const AUDITS_TO_EVICT_AGAIN = 12;

export interface FindingChanges {
  readonly state: FindingState;
  /** Reported for the first time. */
  readonly raised: readonly Finding[];
  /** Were reported and have ended. */
  readonly cleared: readonly Finding[];
  /** The finding for which the container is to be evicted now; null if there is none. */
  readonly evict: Finding | null;
}

/** Updates the state with the findings of one audit of one container. */
export function advance(before: FindingState, found: readonly Finding[], policy: AuditPolicy): FindingChanges {
  const state = new Map<string, LastingFinding>();
  const raised: Finding[] = [];
  for (const finding of found) {
    const key = keyOf(finding);
    const known = before.get(key);
    const audits = (known?.audits ?? 0) + 1;
    const wasRaised = known?.raised === true;
    const isRaised = wasRaised || finding.certain === true || audits >= AUDITS_TO_RAISE;
    if (isRaised && !wasRaised) raised.push(finding);
    state.set(key, { finding, audits, raised: isRaised });
  }
  const lasting = [...state.values()];
  const cleared = [...before]
    .filter(([key, known]) => known.raised && !state.has(key))
    .map(([, { finding }]) => finding);
  const due = lasting.find(
    ({ finding, audits }) =>
      finding.serious && audits >= AUDITS_TO_EVICT && (audits - AUDITS_TO_EVICT) % AUDITS_TO_EVICT_AGAIN === 0,
  );
  return { state, raised, cleared, evict: policy === 'evict' ? (due?.finding ?? null) : null };
}

/** The reported findings that still last. */
export function reportedFindings(state: FindingState): Finding[] {
  return [...state.values()].filter(({ raised }) => raised).map(({ finding }) => finding);
}

function keyOf(finding: { readonly code: FindingCode; readonly subject: string }): string {
  return `${finding.code} ${finding.subject}`;
}
