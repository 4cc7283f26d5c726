import type { Change } from '../core/state/change.js';
import type { Command } from '../core/command.js';
import type { Decision } from '../core/admission/decision.js';
import type { QuotaEvent } from '../core/state/event.js';
import type { Revision } from './store.js';

/** Executes commands on a state and its store. */
export interface Writer {
  execute(command: Command, at: number): Promise<Decision>;
  wantsEvents: boolean;
  /** Receives events after their changes are durable and their commands are answered; must not throw. */
  onEvents: (events: readonly QuotaEvent[]) => void;
  /** Resolves when no command is running. */
  idle(): Promise<void>;
  /** Reads changes by other engines, of these groups or of all. */
  catchUp(groups?: readonly string[]): Promise<void>;
  /** The known revision of a group; null if it is unknown, or if the store is exclusive. */
  revisionOf(group: string): Revision | null;
  records(): Iterable<Change>;
}
