import type { Clock } from '../../host/clock.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { declaredId, type GroupRecord, type StoredRecord } from '../../quota/internal.js';
import { QUOTA_LEASE } from '../../kube/quota/names.js';
import { LedgerObjects } from '../store/ledger-objects.js';
import type { LedgerPage } from '../store/ledger.js';
import { recordKey } from '../store/tail.js';
import { resolvePending } from '../store/transaction.js';

/** Result of a reset of the ledgers' time. */
export interface ClockReset {
  readonly ledgers: number;
  /** The latest time in any ledger before the reset, milliseconds. */
  readonly before: number;
}

/** The leading replica, and when it last renewed its lease by the API server's time; null if none leads. */
export async function leaderOf(
  api: KubeApi,
  namespace: string,
  now: number,
): Promise<{ readonly identity: string } | null> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases/${QUOTA_LEASE}`;
  const answer = await api.request({ method: 'GET', path });
  if (!answer.ok && answer.code === 'not-found') return null;
  if (!answer.ok) throw new KubeError(`the Lease ${QUOTA_LEASE} cannot be read`, answer);
  const { spec = {} } = answer.body as {
    readonly spec?: { holderIdentity?: string; renewTime?: string; leaseDurationSeconds?: number };
  };
  const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 15 } = spec;
  const isOver = now - Date.parse(renewTime) > leaseDurationSeconds * 1000;
  return holderIdentity === '' || isOver ? null : { identity: holderIdentity };
}

/** The latest time in any ledger; 0 without ledgers. */
export async function ledgerTime(api: KubeApi, clock: Clock): Promise<number> {
  let latest = 0;
  for await (const { ledger } of new LedgerObjects(api, clock).list())
    latest = Math.max(latest, ledger.page?.head.now ?? 0);
  return latest;
}

/**
 * Sets the time of all ledgers, forward or back. No replica may run, because a concurrent write makes the reset fail.
 * Reservations expire within `reservationMs`. Grants that began after the new time are removed, and the replicas issue
 * the grants of the current period again.
 */
export async function resetClock(api: KubeApi, clock: Clock, now: number, reservationMs: number): Promise<ClockReset> {
  const objects = new LedgerObjects(api, clock);
  const before = await ledgerTime(api, clock);
  let ledgers = 0;
  for await (const found of objects.list()) {
    const ledger = await resolvePending(objects, found.ledger, clock);
    if (ledger === null || ledger.page === null) continue;
    const written = await objects.put(ledger.group, ledger, pageAt(ledger.page, now, reservationMs), null);
    if (!written.ok)
      throw new Error(`the ledger of ${ledger.group} was changed by a running replica: stop all replicas and retry`);
    ledgers++;
  }
  return { ledgers, before };
}

function pageAt(page: LedgerPage, now: number, reservationMs: number): LedgerPage {
  const edits = new Map<string, StoredRecord>();
  const put = (record: StoredRecord): void => void edits.set(recordKey(record), record);
  const until = now + reservationMs;
  for (const record of page.records.values()) {
    if (record.kind === 'reservation' && record.value !== null) {
      const candidates = record.value.candidates.map((each) => ({
        ...each,
        expiresAt: Math.min(each.expiresAt, until),
      }));
      put({ ...record, value: { ...record.value, candidates } });
    } else if (record.kind === 'group' && record.value !== null)
      put({ ...record, value: groupAt(record.value, now, until) });
  }
  return { ...page, head: { ...page.head, now }, records: page.records.with(edits) };
}

function groupAt(group: GroupRecord, now: number, until: number): GroupRecord {
  const isLater = ({ begun }: { readonly begun: number | null }): boolean => begun !== null && begun > now;
  const repeated = new Set((group.grants ?? []).filter(isLater).map(({ name }) => declaredId(name)));
  const { limitReservation } = group;
  return {
    ...group,
    ...(limitReservation === undefined
      ? {}
      : {
          limitReservation: [limitReservation[0], Math.min(limitReservation[1], until), limitReservation[2]] as const,
        }),
    budgets: group.budgets.map((budget) => {
      const isRevoked = ({ validFrom, left }: (typeof budget.grants)[number]): boolean =>
        left !== null && validFrom > now;
      const revoked = budget.grants.filter(isRevoked).reduce((sum, { left }) => sum + BigInt(left ?? 0), 0n);
      return {
        ...budget,
        hard: `${BigInt(budget.hard) - revoked}`,
        grants: budget.grants.filter((grant) => !isRevoked(grant) && !(grant.left === null && repeated.has(grant.id))),
      };
    }),
    // The replicas find the difference to the object and declare the grants again.
    ...(group.grants === undefined ? {} : { grants: group.grants.filter((grant) => !isLater(grant)) }),
  };
}
