import type { Clock } from '../../host/clock.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import type { QuotaEngine } from '../../quota/engine.js';
import type { Revision } from '../../quota/store/store.js';
import type { QuotaLog } from '../log.js';
import { LEDGERS_PATH } from '../names.js';
import { groupOfLedger, NO_GROUP } from '../store/ledger.js';

export interface LedgerWatchOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly clock: Clock;
  readonly log: QuotaLog;
  /** Told of each change of a ledger; answers whether the engine is to read it. */
  readonly changed: (group: string) => boolean;
  /** The engine knows the ledger; `isNews` if another process wrote it. */
  readonly read: (group: string, isNews: boolean) => void;
}

/** News of ledgers that come together are read together. */
const CATCH_UP_MS = 150;

/** Watches the ledger objects, and lets the engine read those that other processes wrote. */
export class LedgerWatch {
  readonly informer: Informer<{ readonly group: string; readonly resourceVersion: string }>;
  readonly #options: LedgerWatchOptions;
  /** Ledgers that were seen to change, and what they are now. */
  readonly #changes = new Map<string, Revision | null>();
  #cancel: (() => void) | null = null;
  #stopped = false;

  constructor(options: LedgerWatchOptions) {
    this.#options = options;
    this.informer = options.api.informer({ path: LEDGERS_PATH, keep: groupOfLedger });
    this.informer.onChange(({ before, after }) =>
      this.#changed((after ?? before)?.group ?? NO_GROUP, after?.resourceVersion ?? null),
    );
  }

  /** Reads nothing any more. */
  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** `version` is null where the ledger is gone. */
  #changed(group: string, version: Revision | null): void {
    if (!this.#options.changed(group)) return;
    if (group !== NO_GROUP) this.#changes.set(group, version);
    this.#cancel ??= this.#options.clock.after(CATCH_UP_MS, () => void this.#read());
  }

  /** Of most changes this process is the author: the engine knows them by now. */
  async #read(): Promise<void> {
    const { engine, log, read } = this.#options;
    this.#cancel = null;
    const changes = [...this.#changes];
    const news = changes.filter(([group, version]) => isNewer(version, engine.revisionOf(group)));
    this.#changes.clear();
    try {
      if (news.length > 0) await engine.catchUp(news.map(([group]) => group));
      const written = new Set(news.map(([group]) => group));
      for (const [group] of changes) read(group, written.has(group));
    } catch (error) {
      log.warn({ err: error }, 'reading ledgers failed; retrying');
      for (const [group, version] of news) if (!this.#stopped) this.#changed(group, version);
    }
  }
}

/** Whether a ledger was seen in another state than the one that is known, or a later one. */
function isNewer(seen: Revision | null, known: Revision | null): boolean {
  if (seen === null || known === null) return seen !== known;
  return /^\d+$/.test(seen) && /^\d+$/.test(known) ? BigInt(seen) > BigInt(known) : seen !== known;
}
