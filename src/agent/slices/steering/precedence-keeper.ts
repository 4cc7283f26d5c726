import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { Rounds } from '../../../host/rounds.js';
import type { ActivityFiles } from '../usage/activity-files.js';
import { mayGiveWay, precedenceOf, type Precedence } from './precedence.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';

export interface PrecedenceKeeperOptions {
  readonly slices: Slices;
  readonly activity: ActivityFiles;
  /** Cores that low slices get beside high ones. Default: `DEFAULT_LOW_FLOOR`. */
  readonly lowFloor?: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Period after which a change of priorities reaches the other slices of the GPU; a change of slices does at once. */
const ROUND_MS = 1_000;

/**
 * Publishes to slices to which others they give way: links to the activity files of those, and data about them.
 */
export class PrecedenceKeeper {
  readonly #options: PrecedenceKeeperOptions;
  readonly #rounds: Rounds;
  /** Last published text, by allocation; a slice that restarts gets it again. */
  readonly #told = new Map<string, { readonly slice: Slice; readonly text: string }>();

  #leave: () => void = () => undefined;

  constructor(options: PrecedenceKeeperOptions) {
    this.#options = options;
    this.#rounds = new Rounds(options.clock, ROUND_MS, () => this.round());
  }

  start(): void {
    this.#rounds.start();
    const { slices } = this.#options;
    let { version } = slices;
    this.#leave = slices.onChange(() => {
      if (slices.version === version) return;
      version = slices.version;
      this.#rounds.now();
    });
  }

  async stop(): Promise<void> {
    this.#leave();
    await this.#rounds.stop();
  }

  async round(): Promise<void> {
    const { slices, lowFloor, log } = this.#options;
    if (!this.#anyGivesWay()) {
      this.#told.clear();
      return;
    }
    const { version } = slices;
    const started = [...slices.started.values()];
    const wanted = precedenceOf(
      started.map((slice) => ({
        allocation: slice.id,
        devices: slice.limits.live.map((live, at) => ({ ...live, uuid: slice.spec.devices[at]?.uuid ?? '' })),
      })),
      lowFloor,
    );
    for (const id of this.#told.keys()) if (!slices.started.has(id)) this.#told.delete(id);
    for (const slice of started) {
      // Slices came or went, so another round follows: nothing is linked to a slice that has ended, or into it.
      if (slices.version !== version) return;
      try {
        await this.#tell(slice, wanted.get(slice.id) ?? []);
      } catch (error) {
        this.#told.delete(slice.id);
        if (slices.version !== version) return;
        log.error({ err: error, allocation: slice.id }, 'cannot write the list of slices that take precedence');
      }
    }
  }

  #anyGivesWay(): boolean {
    for (const { limits } of this.#options.slices.started.values())
      if (limits.live.some((live) => live.givesWay !== undefined || mayGiveWay(live))) return true;
    return false;
  }

  async #tell(slice: Slice, precedence: readonly (Precedence | null)[]): Promise<void> {
    const { live } = slice.limits;
    const text = JSON.stringify(precedence);
    const told = this.#told.get(slice.id);
    const holds = live.every(
      ({ givesWay }, at) => JSON.stringify(givesWay) === JSON.stringify(precedence[at]?.givesWay),
    );
    if (holds && (precedence.length === 0 || (told?.slice === slice && told.text === text))) return;
    // A slice that hides its turns only gives them up, so no descriptor is kept for it.
    for (const one of precedence)
      if (one?.inTurns === false) one.before.forEach((id) => this.#options.activity.hold(id));
    // The links are created first, so that a slice can read them when it is notified.
    await this.#options.activity.linkClaimants(
      slice.id,
      precedence.map((one) => one?.before ?? []),
    );
    slice.tellPrecedence(precedence.map((one) => one?.givesWay));
    this.#told.set(slice.id, { slice, text });
  }
}
