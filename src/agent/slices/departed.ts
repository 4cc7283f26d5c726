import type { ProcessSlot } from '../../abi/usage-file.js';
import { processStat } from '../../host/process-stat.js';
import type { Session } from './session.js';

const NONE: ReadonlySet<number> = new Set();

/**
 * Processes of one container that sent a greeting and closed their connection. A process that died leaves its slot in
 * the usage file, with the memory that it held, until another process of the container clears it; the agent ignores it
 * until then. A process that only closed its connection lives on and counts.
 */
export class DepartedProcesses {
  /** By slot of the usage file, so at most one per slot. */
  readonly #sessions = new Map<number, Session>();

  /** A connection ended. */
  add(session: Session): void {
    if (session.pid !== null) this.#sessions.set(session.greeting.slot, session);
  }

  clear(): void {
    this.#sessions.clear();
  }

  /**
   * Slots of processes that have certainly ended. `slots` reads the slots that look alive; it is called only after a
   * process left.
   */
  deadSlots(slots: () => readonly ProcessSlot[]): ReadonlySet<number> {
    if (this.#sessions.size === 0) return NONE;
    const dead = new Set<number>();
    const owners = new Map(slots().map((slot) => [slot.slot, slot]));
    for (const [slot, session] of this.#sessions) {
      const owner = owners.get(slot);
      const stands = owner?.pid === session.greeting.pid && owner.startTicks === session.greeting.startTicks;
      if (!stands) this.#sessions.delete(slot);
      else if (isGone(session)) dead.add(slot);
    }
    return dead;
  }
}

/** True when the process that greeted has ended, even if another process has its pid now. */
function isGone({ pid, startTicks }: Session): boolean {
  if (pid === null || startTicks === null) return false;
  const stat = processStat(pid);
  return stat === null || stat.ended || stat.startTicks !== startTicks;
}
