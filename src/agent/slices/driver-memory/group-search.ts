import type { Clock } from '../../../host/clock.js';

/** When the runtime is asked for a container that is about to start, after its start was prepared. */
const ASK_AFTER_MS: readonly number[] = [100, 200, 400, 800, 1_600, 3_200];

/** Looks several times for the control group of each container that is about to start. */
export class GroupSearch {
  readonly #clock: Clock;
  readonly #look: (allocation: string) => Promise<boolean>;
  readonly #cancels = new Map<string, () => void>();

  /** `look` resolves to whether the search is over; it must not reject. */
  constructor(clock: Clock, look: (allocation: string) => Promise<boolean>) {
    this.#clock = clock;
    this.#look = look;
  }

  /** Begins anew if a search for this allocation is active. */
  begin(allocation: string): void {
    this.#cancels.get(allocation)?.();
    this.#next(allocation, 0);
  }

  isActive(allocation: string): boolean {
    return this.#cancels.has(allocation);
  }

  stop(): void {
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
  }

  #next(allocation: string, attempt: number): void {
    const delayMs = ASK_AFTER_MS[attempt];
    if (delayMs === undefined) {
      this.#cancels.delete(allocation);
      return;
    }
    const cancel = this.#clock.after(delayMs, () => {
      void this.#look(allocation).then((isOver) => {
        if (this.#cancels.get(allocation) !== cancel) return;
        if (isOver) this.#cancels.delete(allocation);
        else this.#next(allocation, attempt + 1);
      });
    });
    this.#cancels.set(allocation, cancel);
  }
}
