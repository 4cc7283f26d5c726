import type { Clock } from '../../host/clock.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import type { QuotaEngine, Revision } from '../../quota/index.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { LEDGERS_PATH } from '../../kube/quota/names.js';
import { groupOfLedger, NO_GROUP } from '../store/ledger.js';

export interface LedgerWatchOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly clock: Clock;
  readonly log: StructuredLog;
  /** Called on each change of a ledger; returns whether the engine should read it. */
  readonly changed: (group: string) => boolean;
  /** Called when the engine has the ledger; `isForeign` if another process wrote it. */
  readonly read: (group: string, isForeign: boolean) => void;
}

/** Delay in which changes of several ledgers are collected for one read. */
const CATCH_UP_MS = 150;

/** Watches the ledger objects, and lets the engine read those that other processes wrote. */
export class LedgerWatch {
  readonly informer: Informer<{ readonly group: string; readonly resourceVersion: string }>;
  readonly #options: LedgerWatchOptions;
  /** Changed ledgers with their new revisions; null for a deleted ledger. */
  readonly #changes = new Map<string, Revision | null>();
  #cancel: (() => void) | null = null;
  #stopped = false;

  constructor(options: LedgerWatchOptions) {
    this.#options = options;
    this.informer = options.api.informer({ path: LEDGERS_PATH, isMetadataOnly: true, keep: groupOfLedger });
    this.informer.onChange(({ before, after }) =>
      this.#changed((after ?? before)?.group ?? NO_GROUP, after?.resourceVersion ?? null),
    );
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** `version` is null for a deleted ledger. */
  #changed(group: string, version: Revision | null): void {
    if (!this.#options.changed(group)) return;
    if (group !== NO_GROUP) this.#changes.set(group, version);
    this.#cancel ??= this.#options.clock.after(CATCH_UP_MS, () => void this.#read());
  }

  /** Most changes were written by this process, and the engine knows them at the time of the read. */
  async #read(): Promise<void> {
    const { engine, log, read } = this.#options;
    this.#cancel = null;
    const changes = [...this.#changes];
    const foreign = changes.filter(([group, version]) => isNewer(version, engine.revisionOf(group)));
    this.#changes.clear();
    try {
      if (foreign.length > 0) await engine.catchUp(foreign.map(([group]) => group));
      const written = new Set(foreign.map(([group]) => group));
      for (const [group] of changes) read(group, written.has(group));
    } catch (error) {
      log.warn({ err: error }, 'reading ledgers failed; retrying');
      for (const [group, version] of foreign) if (!this.#stopped) this.#changed(group, version);
    }
  }
}

/** Whether the observed revision is newer than the known one, or incomparable. */
function isNewer(observed: Revision | null, known: Revision | null): boolean {
  if (observed === null || known === null) return observed !== known;
  return /^\d+$/.test(observed) && /^\d+$/.test(known) ? BigInt(observed) > BigInt(known) : observed !== known;
}
