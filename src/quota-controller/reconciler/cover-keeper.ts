import type { Clock } from '../../host/clock.js';
import { Rounds } from '../../host/rounds.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { Turn } from '../../host/turn.js';
import type { KubeApi } from '../../kube/client.js';
import type { Types } from '../../quota/internal.js';
import { CoverObjects, type Cover } from '../store/cover-objects.js';
import { coverText, hashOf } from '../workloads/cover-text.js';
import type { OwnedPods } from '../workloads/owned-pods.js';

export interface CoverKeeperOptions {
  readonly api: KubeApi;
  readonly owned: OwnedPods;
  /** Whether all objects are known: what is missing now is not covered. */
  readonly isComplete: () => boolean;
  readonly clock: Clock;
  readonly log: StructuredLog;
}

const ROUND_MS = 5_000;
/** A round takes at most a hundredth of the time. */
const IDLE_PER_WORK = 100;
/** The text of a large group is written less often. */
const CHARACTERS_PER_MS = 4;

/**
 * Writes which objects the charges of workloads cover, so that they stay charged if they come loose while no replica
 * runs: once they have no owner any more, nothing else tells their group.
 */
export class CoverKeeper {
  readonly #options: CoverKeeperOptions;
  readonly #objects: CoverObjects;
  readonly #rounds: Rounds;
  /** What the API server has, by group; null if it is not known. */
  #stored: Map<string, Cover> | null = null;
  readonly #writtenAt = new Map<string, number>();
  #nextMs = ROUND_MS;

  constructor(options: CoverKeeperOptions) {
    this.#options = options;
    this.#objects = new CoverObjects(options.api);
    const nextMs = (): number => this.#nextMs;
    this.#rounds = new Rounds(options.clock, nextMs, () => this.#round((group, text) => this.#isDue(group, text)));
  }

  start(): void {
    this.#rounds.start();
  }

  /** Writes for the last time. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
    await this.#round(() => true);
  }

  async #round(isDue: (group: string, text: string) => boolean): Promise<void> {
    if (!this.#options.isComplete()) return;
    const startedMs = performance.now();
    try {
      await this.#write(isDue);
    } catch (error) {
      this.#stored = null;
      this.#options.log.warn({ err: error }, 'what the charges of workloads cover cannot be written; retrying');
    }
    this.#nextMs = Math.max(ROUND_MS, IDLE_PER_WORK * (performance.now() - startedMs));
  }

  async #write(isDue: (group: string, text: string) => boolean): Promise<void> {
    const texts = await this.#texts();
    const stored = (this.#stored ??= new Map(await this.#objects.list()));
    for (const group of stored.keys()) {
      if (texts.has(group)) continue;
      await this.#objects.remove(group);
      stored.delete(group);
    }
    for (const [group, text] of texts) {
      const known = stored.get(group) ?? null;
      if (known?.text === text || !isDue(group, text)) continue;
      const written = await this.#objects.put(group, text, known);
      if (written === null) return void (this.#stored = null);
      stored.set(group, written);
      this.#writtenAt.set(group, this.#options.clock.now());
    }
  }

  #isDue(group: string, text: string): boolean {
    const writtenAt = this.#writtenAt.get(group) ?? -Infinity;
    return this.#options.clock.now() - writtenAt >= text.length / CHARACTERS_PER_MS;
  }

  async #texts(): Promise<ReadonlyMap<string, string>> {
    const groups = new Map<string, Map<string, { readonly types: Types; readonly hashes: number[] }>>();
    const turn = new Turn();
    for (const [uid, { group, types }] of this.#options.owned.covered()) {
      const ofGroup = groups.get(group) ?? new Map<string, { readonly types: Types; readonly hashes: number[] }>();
      groups.set(group, ofGroup);
      const key = JSON.stringify(types);
      const same = ofGroup.get(key);
      if (same === undefined) ofGroup.set(key, { types, hashes: [hashOf(uid)] });
      else same.hashes.push(hashOf(uid));
      if (turn.isOver()) await turn.pass();
    }
    return new Map([...groups].map(([group, covered]) => [group, coverText(covered.values())]));
  }
}
