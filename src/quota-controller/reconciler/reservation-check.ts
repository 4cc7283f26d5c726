import type { Clock } from '../../host/clock.js';
import { Rounds } from '../../host/rounds.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { KubeApi } from '../../kube/client.js';
import { versionOf, type KubeObject } from '../../kube/object.js';
import { refOfKey, type OpenReservation, type QuotaEngine } from '../../quota/internal.js';
import { readObject, servedKind, type ServedKind } from '../workloads/kinds.js';

export interface ReservationCheckOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly kinds: () => readonly ServedKind[];
  readonly clock: Clock;
  readonly log: StructuredLog;
  /** How long the API server may take to store an admitted object. */
  readonly reservationMs: number;
  /** Whether this process admitted the object with this uid. */
  readonly isOurs: (uid: string) => boolean;
  /** Charges an object as it was read from the API server; false if it names no group. */
  readonly found: (kind: ServedKind, object: KubeObject) => Promise<boolean>;
}

/** Reads of objects at a time. */
const READS_AT_ONCE = 8;
const MIN_ROUND_MS = 10;
const ROUNDS_PER_RESERVATION = 30;

/**
 * Ends expired reservations. A watch may be late, so that each object is read from the API server: a stored object is
 * charged, and a reservation is cancelled only if its object was not stored. While the API server does not answer,
 * reservations stay.
 */
export class ReservationCheck {
  readonly #options: ReservationCheckOptions;
  readonly #rounds: Rounds;
  /**
   * When this process first saw each reservation, by the monotonic clock, so that a jump of the engine's time ends no
   * reservation.
   */
  readonly #seenAt = new Map<string, { readonly expiresAt: number; readonly at: number }>();

  constructor(options: ReservationCheckOptions) {
    this.#options = options;
    const everyMs = Math.max(MIN_ROUND_MS, options.reservationMs / ROUNDS_PER_RESERVATION);
    this.#rounds = new Rounds(
      options.clock,
      () => everyMs,
      () => this.#round(),
    );
  }

  start(): void {
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  async #round(): Promise<void> {
    const due = this.#due();
    const next = due.values();
    const work = async (): Promise<void> => {
      for (const reservation of next) await this.#check(reservation);
    };
    await Promise.all(Array.from({ length: Math.min(READS_AT_ONCE, due.length) }, work));
  }

  /**
   * Reservations whose objects the API server can no longer store. The replica that admitted an object reads it first.
   */
  #due(): readonly OpenReservation[] {
    const { engine, clock, reservationMs, isOurs } = this.#options;
    const [now, at] = [clock.now(), performance.now()];
    const open = engine.reservations();
    const ids = new Set(open.map(({ id }) => id));
    for (const id of this.#seenAt.keys()) if (!ids.has(id)) this.#seenAt.delete(id);
    return open.filter(({ id, expiresAt, uid }) => {
      const seen = this.#seenAt.get(id);
      if (seen?.expiresAt !== expiresAt) {
        this.#seenAt.set(id, { expiresAt, at });
        return false;
      }
      return now >= expiresAt && at - seen.at >= (isOurs(uid) ? 1 : 1.5) * reservationMs;
    });
  }

  async #check(reservation: OpenReservation): Promise<void> {
    const { id, workload, uid, version, expiresAt } = reservation;
    const { engine, log, found } = this.#options;
    try {
      const kind = servedKind(this.#options.kinds(), workload);
      const object = kind === null ? null : await this.#read(kind, workload);
      const isOfGroup = kind !== null && object !== null && (await found(kind, object));
      // A later version of the object contains the admitted change, or the API server can no longer store that change.
      if (isOfGroup && object.metadata?.uid === uid && versionOf(object) > version) return;
      const decision = await engine.execute({ type: 'cancel', reservation: id, expiresBy: expiresAt });
      if (decision.code === 'Conflict') throw new Error(decision.message);
    } catch (error) {
      log.warn({ err: error, workload }, 'the object of a reservation cannot be read; the reservation stays');
    }
  }

  #read(kind: ServedKind, workload: string): Promise<KubeObject | null> {
    const { namespace = '', name } = refOfKey(workload);
    return readObject(this.#options.api, kind, namespace, name);
  }
}
