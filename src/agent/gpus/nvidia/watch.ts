import { DriverError, type DriverEvent } from '../driver.js';
import { SYSTEM_LANE } from './call-gate.js';
import { optional, type Card } from './card.js';
import { EVENT_DOUBLE_BIT_ECC, EVENT_XID, nextEvent } from './event-set.js';
import { memory } from './identity.js';
import { uncorrectedErrors } from './load.js';
import type { Session } from './session.js';

/** Most events that one look takes: a card in trouble repeats itself, and others want their turn. */
const MAX_EVENTS = 64;

/**
 * Notices what happens to the cards of one session; each look says what is new since the last. A card that reports its errors by itself is seldom
 * asked for them: every question costs a thread of Node's pool, on every card, for as long as the agent lives.
 */
export class Watch {
  readonly #session: Session;
  readonly #lost = new Set<string>();
  readonly #errors = new Map<string, number>();
  /** The reports say that some card is in trouble, and not which. */
  #alarmed = false;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Errors that cards have reported. */
  async reported(): Promise<readonly DriverEvent[]> {
    const { nvml, events } = this.#session;
    if (events === null) return [];
    const news: DriverEvent[] = [];
    for (let count = 0; count < MAX_EVENTS; count++) {
      const event = await nvml.ask(SYSTEM_LANE, nextEvent(events)).catch(troubleOfOneCard);
      // A lost card makes the whole set fail: the visits tell which one it is.
      if (event === 'trouble') this.#alarmed = true;
      if (event === null || event === 'none' || event === 'trouble') break;
      const card = [...this.#session.cards.values()].find((known) => known.handle === event.card);
      if (card === undefined) continue;
      const { uuid } = card.details;
      if ((event.type & EVENT_XID) !== 0n) news.push({ kind: 'xid', uuid, xid: event.data });
      if ((event.type & EVENT_DOUBLE_BIT_ECC) !== 0n) news.push({ kind: 'ecc', uuid });
    }
    return news;
  }

  /**
   * Asks cards whether they are there and whether their memory has failed: every one of them, or only those that would not report it. Rejects
   * when the driver as a whole does not answer.
   */
  async visited(everyone: boolean): Promise<readonly DriverEvent[]> {
    const { cards, reporting } = this.#session;
    const all = everyone || this.#alarmed;
    this.#alarmed = false;
    const visits = [...cards.values()]
      .filter(({ details: { uuid } }) => all || this.#lost.has(uuid) || !reporting.has(uuid))
      .map((card) => this.#visit(card));
    return (await Promise.all(visits)).flat();
  }

  /** The events that follow from a call to a card that failed: none for what is known already or is no loss. */
  missed(uuid: string, error: unknown): readonly DriverEvent[] {
    if (!(error instanceof DriverError) || (error.code !== 'gpu-lost' && error.code !== 'timeout')) return [];
    return this.#lose(uuid, error.message);
  }

  async #visit(card: Card): Promise<readonly DriverEvent[]> {
    const { uuid } = card.details;
    try {
      await this.#session.nvml.ask(card.lane, memory(card.handle));
      const errors = await optional(this.#session.nvml.ask(card.lane, uncorrectedErrors(card.handle)));
      return [...this.#find(uuid), ...this.#count(uuid, errors)];
    } catch (error) {
      if (error instanceof DriverError && error.code === 'unreachable') throw error;
      return this.#lose(uuid, (error as Error).message);
    }
  }

  #lose(uuid: string, reason: string): readonly DriverEvent[] {
    if (this.#lost.has(uuid)) return [];
    this.#lost.add(uuid);
    return [{ kind: 'lost', uuid, reason }];
  }

  #find(uuid: string): readonly DriverEvent[] {
    return this.#lost.delete(uuid) ? [{ kind: 'found', uuid }] : [];
  }

  /** Errors from before the first look are the past: the driver keeps on with such a card. */
  #count(uuid: string, errors: number | null): readonly DriverEvent[] {
    if (errors === null) return [];
    const before = this.#errors.get(uuid) ?? errors;
    this.#errors.set(uuid, errors);
    return errors > before ? [{ kind: 'ecc', uuid }] : [];
  }
}

function troubleOfOneCard(error: unknown): 'trouble' {
  if (error instanceof DriverError && (error.code === 'gpu-lost' || error.code === 'failed')) return 'trouble';
  throw error;
}
