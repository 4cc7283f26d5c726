import type { Clock } from '../../host/clock.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { KubeApi } from '../../kube/client.js';
import type { EvaluationOptions, QuotaEngine } from '../../quota/index.js';
import type { ServedKind } from '../workloads/kinds.js';
import { ledgerCharges, type LedgerCharge } from './ledger-charges.js';
import type { KnownWorkloads } from '../workloads/known-workloads.js';
import { listWorkloads } from '../workloads/list-workloads.js';

export interface LedgerComparisonOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly known: KnownWorkloads;
  readonly kinds: () => readonly ServedKind[];
  readonly evaluation: () => EvaluationOptions;
  /** Whether a charged object that no list has is there nevertheless; rejects if the API server fails. */
  readonly isLeft: (charged: LedgerCharge) => Promise<boolean>;
  /** Releases a workload that is gone; rejects if that is to be repeated. */
  readonly release: (charged: LedgerCharge) => Promise<void>;
  /** Reconciles a workload again, by its `refKey`. */
  readonly enqueue: (key: string) => void;
  readonly log: StructuredLog;
  readonly clock: Clock;
}

/** Compares the ledger with what the API server has. */
export class LedgerComparison {
  readonly #options: LedgerComparisonOptions;

  constructor(options: LedgerComparisonOptions) {
    this.#options = options;
  }

  /**
   * Compares the ledger with freshly listed objects: releases charges without an object, and reconciles all others.
   * False if `goesOn` ended it: a large cluster takes a minute, and its caller may have to stop.
   */
  async compare(goesOn: () => boolean): Promise<boolean> {
    const { engine, known, isLeft, release, log } = this.#options;
    await engine.catchUp();
    // The charges are read before the objects: a charged object that is missing in the list was therefore deleted.
    const charged = [...ledgerCharges(engine)];
    const there = await this.list(() => true, goesOn);
    if (there === null) return false;
    const gone: LedgerCharge[] = [];
    for (const entry of charged) {
      if (there.get(entry.key) === entry.uid) continue;
      if (!goesOn()) return false;
      if (await isLeft(entry)) continue;
      gone.push(entry);
      known.unlisted(entry.key, entry.uid);
      await release(entry);
    }
    if (gone.length > 0)
      log.warn({ workloads: gone.slice(0, 20).map(({ key }) => key) }, 'released workloads whose objects are gone');
    return true;
  }

  /** The same with the first lists, which all have been reconciled: most starts need no second list. */
  async compareInitially(goesOn: () => boolean): Promise<void> {
    const { engine, known } = this.#options;
    await engine.catchUp();
    for (const { key, uid } of ledgerCharges(engine))
      if (!known.has(key, uid)) return void (await this.compare(goesOn));
  }

  /**
   * Lists workloads, and queues each of them with its newest known state; their uids by key. Null if `goesOn` ended it.
   */
  async list(
    isConcerned: (kind: ServedKind) => boolean,
    goesOn: () => boolean,
  ): Promise<ReadonlyMap<string, string> | null> {
    const { known, kinds, enqueue } = this.#options;
    const there = new Map<string, string>();
    for (const kind of kinds().filter(isConcerned))
      for await (const object of listWorkloads(kind, this.#options)) {
        if (!goesOn()) return null;
        there.set(object.key, known.listed(object));
      }
    for (const key of there.keys()) enqueue(key);
    return there;
  }
}
