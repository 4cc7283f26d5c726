import type { GroupLimiter, GroupLimits } from '../../gpus/index.js';
import { firstStep, limitsIn, stepAfterRead } from './limit-plan.js';

/** A control group on one GPU. */
export interface GroupPlace {
  readonly group: string;
  readonly gpuUuid: string;
  /** The limits that it should have, asked when its turn comes; null: the agent has nothing to say about them. */
  readonly wanted: () => GroupLimits | null;
}

export interface SetLimits {
  /** `right`: it has the limits, or the agent has nothing to say; `gone`: the group does not exist. */
  readonly result: 'right' | 'gone' | { readonly refused: string };
  /** What somebody else had changed the limits to; null: nobody had. */
  readonly changedTo: GroupLimits | null;
}

const UNCHANGED = { changedTo: null } as const;

/** Brings control groups to their limits, one call after the other for each, and remembers what they have. */
export class GroupLimitSetter {
  readonly #limiter: GroupLimiter;
  readonly #known = new Map<string, GroupLimits>();
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(limiter: GroupLimiter) {
    this.#limiter = limiter;
  }

  /** The limits that a group had at the last call; undefined: unknown. */
  known(group: string, gpuUuid: string): GroupLimits | undefined {
    return this.#known.get(keyOf(group, gpuUuid));
  }

  /** With `read` it trusts no earlier call. Rejects with a DriverError if the driver does not answer. */
  set(place: GroupPlace, read: boolean): Promise<SetLimits> {
    const key = keyOf(place.group, place.gpuUuid);
    const mine = (this.#queues.get(key) ?? Promise.resolve()).then(() => this.#setNow(key, place, read));
    const settled = mine
      .catch(() => undefined)
      .finally(() => {
        if (this.#queues.get(key) === settled) this.#queues.delete(key);
      });
    this.#queues.set(key, settled);
    return mine;
  }

  /** Forgets the groups that are not among these. */
  keepOnly(places: readonly Pick<GroupPlace, 'group' | 'gpuUuid'>[]): void {
    const keys = new Set(places.map(({ group, gpuUuid }) => keyOf(group, gpuUuid)));
    for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key);
  }

  async #setNow(key: string, { group, gpuUuid, wanted: ask }: GroupPlace, read: boolean): Promise<SetLimits> {
    const wanted = ask();
    const known = this.#known.get(key);
    const first = firstStep(wanted, known, !read);
    if (wanted === null || first === 'nothing') return { result: 'right', ...UNCHANGED };
    let changedTo: GroupLimits | null = null;
    if (first === 'read') {
      const present = await this.#limiter.get(gpuUuid, group);
      const step = stepAfterRead(wanted, known, present);
      if (step === 'right') this.#known.set(key, wanted);
      if (step === 'right' || step === 'gone') return { result: step, ...UNCHANGED };
      if (step === 'set-again' && present !== 'gone') changedTo = limitsIn(present);
    }
    const answer = await this.#limiter.set(gpuUuid, group, wanted);
    if (answer === 'set') this.#known.set(key, wanted);
    return { result: answer === 'set' ? 'right' : answer, changedTo };
  }
}

function keyOf(group: string, gpuUuid: string): string {
  return `${gpuUuid} ${group}`;
}
