import type { Log } from '../../../host/log.js';
import type { SliceNotices } from '../ports.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import type { Suspended } from './suspender.js';

/** Tells the owners of containers why these were not suspended, each reason once, or not resumed. */
export class SuspendNotes {
  readonly #usersOf: ProcessOwners['usersOf'];
  readonly #notices: SliceNotices;
  readonly #log: Log;
  readonly #told = new WeakMap<Slice, string>();

  constructor(usersOf: ProcessOwners['usersOf'], notices: SliceNotices, log: Log) {
    this.#usersOf = usersOf;
    this.#notices = notices;
    this.#log = log;
  }

  /** The agent was not asked anew: the same reason is not told again. */
  refused(slice: Slice, refusal: Suspended & { readonly ok: false }): void {
    if (this.#told.get(slice) === refusal.reason) return;
    this.answer(slice, refusal);
  }

  /** Answers a request. What failed has been told already. */
  answer(slice: Slice, { code, reason }: Suspended & { readonly ok: false }): void {
    this.#told.set(slice, reason);
    this.#log.info({ allocation: slice.id, owner: slice.spec.owner, reason }, 'a container is not suspended');
    if (code === 'failed') return;
    for (const user of this.#usersOf(slice.spec))
      this.#notices.note(user, {
        type: 'Warning',
        reason: 'GPUSuspendRefused',
        message: `${user.container}: ${reason}`,
      });
  }

  /** A call of the container waits, because its GPU has no room. */
  waits(slice: Slice): void {
    for (const user of this.#usersOf(slice.spec))
      this.#notices.note(user, {
        type: 'Warning',
        reason: 'GPUResumeWaits',
        message: `${user.container}: a program wants its GPU, which has no room now; it is resumed when there is room`,
      });
  }
}
