import type { Clock } from '../../host/clock.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { ClusterFacts, FactsChange } from './cluster-facts.js';

export interface FactsChangesOptions {
  readonly facts: ClusterFacts;
  /** Applies collected changes. */
  readonly apply: (changes: ReadonlySet<FactsChange>) => Promise<void>;
  readonly clock: Clock;
  readonly log: StructuredLog;
}

/** Delay in which changes of policy and nodes are collected. */
const COLLECT_MS = 200;

/** Collects changes of the policy and the nodes, and applies them one after the other. */
export class FactsChanges {
  readonly #options: FactsChangesOptions;
  #changes = new Set<FactsChange>();
  #cancel: (() => void) | null = null;
  #applying: Promise<void> = Promise.resolve();

  constructor(options: FactsChangesOptions) {
    this.#options = options;
  }

  start(): void {
    const { facts, clock } = this.#options;
    facts.onChange((change) => {
      this.#changes.add(change);
      this.#cancel ??= clock.after(COLLECT_MS, () => this.#collected());
    });
  }

  /** Discards collected changes. */
  stop(): void {
    this.#cancel?.();
  }

  /** Resolves when no change is being applied. */
  idle(): Promise<void> {
    return this.#applying;
  }

  #collected(): void {
    const changes = this.#changes;
    this.#cancel = null;
    this.#changes = new Set();
    this.#applying = this.#applying.then(() => this.#apply(changes));
  }

  async #apply(changes: ReadonlySet<FactsChange>): Promise<void> {
    const { apply, log } = this.#options;
    try {
      await apply(changes);
    } catch (error) {
      log.warn({ err: error }, 'applying changed facts of the cluster failed; the next refresh charges by it');
    }
  }
}
