/** Decides which audit findings last long enough to be reported, and when a pod is evicted for them. Pure. */
import type { Finding, FindingCode } from './audit.js';

/** `report`: report findings; `evict`: also evict the pod for serious findings. */
export type AuditPolicy = 'report' | 'evict';
export const AUDIT_POLICIES: readonly AuditPolicy[] = ['report', 'evict'];

/** A finding over the audits of one container. */
export interface LastingFinding {
  readonly finding: Finding;
  /** Consecutive audits with the finding in its latest occurrence, which ends with the first audit without it. */
  readonly audits: number;
  readonly occurrences: number;
  /** Consecutive audits without the finding, since that occurrence ended. */
  readonly auditsWithout: number;
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
/** A finding that proves a bypass is reported when it occurs again within this many audits, about an hour. */
const OCCURRENCES_TO_RAISE = 2;
const AUDITS_REMEMBERED = 720;

export interface FindingChanges {
  readonly state: FindingState;
  /** Reported for the first time, or again after they had ended. */
  readonly raised: readonly Finding[];
  /** Were reported and have ended. */
  readonly cleared: readonly Finding[];
  /** The finding for which the container is to be evicted now; null if there is none. */
  readonly evict: Finding | null;
}

/** Updates the state with the findings of one audit of one container. */
export function advance(before: FindingState, found: readonly Finding[], policy: AuditPolicy): FindingChanges {
  const state = new Map<string, LastingFinding>();
  for (const finding of found) state.set(keyOf(finding), again(before.get(keyOf(finding)), finding));
  const cleared: Finding[] = [];
  for (const [key, known] of before) {
    if (state.has(key)) continue;
    if (known.raised) cleared.push(known.finding);
    const auditsWithout = known.auditsWithout + 1;
    if (known.finding.proof === true && auditsWithout < AUDITS_REMEMBERED)
      state.set(key, { ...known, audits: 0, auditsWithout, raised: false });
  }
  const raised = [...state].filter(([key, { raised: now }]) => now && before.get(key)?.raised !== true);
  const due = policy === 'evict' ? [...state.values()].find(isDue) : undefined;
  return { state, raised: raised.map(([, { finding }]) => finding), cleared, evict: due?.finding ?? null };
}

/** The next state of a finding that this audit made. */
function again(known: LastingFinding | undefined, seen: Finding): LastingFinding {
  const audits = (known?.audits ?? 0) + 1;
  // A finding that one audit proved stays proved, even if the next audit shows less.
  const finding = audits > 1 && known?.finding.proof === true ? { ...seen, proof: true as const } : seen;
  const occurrences = (known?.occurrences ?? 0) + (audits > 1 ? 0 : finding.twice === true ? 2 : 1);
  const raised =
    known?.raised === true ||
    finding.certain === true ||
    audits >= AUDITS_TO_RAISE ||
    (finding.proof === true && occurrences >= OCCURRENCES_TO_RAISE);
  return { finding, audits, occurrences, auditsWithout: 0, raised };
}

/** True when a pod is to be evicted for a finding now: for a proof of a bypass as soon as it occurs again or lasts. */
function isDue({ finding, audits, occurrences }: LastingFinding): boolean {
  if (!finding.serious || audits === 0) return false;
  const first = finding.proof !== true ? AUDITS_TO_EVICT : occurrences < OCCURRENCES_TO_RAISE ? AUDITS_TO_RAISE : 1;
  return audits >= first && (audits - first) % AUDITS_TO_EVICT_AGAIN === 0;
}

/** The reported findings that still last. */
export function reportedFindings(state: FindingState): Finding[] {
  return [...state.values()].filter(({ raised }) => raised).map(({ finding }) => finding);
}

/** All bypasses of one container are one finding, whichever of its processes an audit saw. */
function keyOf({ code, subject }: { readonly code: FindingCode; readonly subject: string }): string {
  return code === 'no-library' || code === 'unregistered' ? 'bypass' : `${code} ${subject}`;
}
