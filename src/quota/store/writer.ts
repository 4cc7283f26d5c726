import type { Change } from '../core/change.js';
import type { Command } from '../core/command.js';
import type { Decision } from '../core/decision.js';
import type { QuotaEvent } from '../core/event.js';
import type { Revision } from './store.js';

/** Carries commands out on a state and its store. */
export interface Writer {
  execute(command: Command, at: number): Promise<Decision>;
  /** Whether events are to be collected. */
  wantsEvents: boolean;
  /** Takes events once what they tell of is durable. */
  onEvents: (events: readonly QuotaEvent[]) => void;
  /** Returns when nothing is under way any more. */
  idle(): Promise<void>;
  /** Learns what others wrote: of these groups, or of all. */
  catchUp(groups?: readonly string[]): Promise<void>;
  /** What is known of a group; null where nothing is, or where nobody else writes. */
  revisionOf(group: string): Revision | null;
  records(): Iterable<Change>;
}
