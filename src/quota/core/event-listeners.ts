import type { QuotaEvent } from './state/event.js';

/** Receives an event. It may be an async function; the engine does not wait for it. */
export type EventListener = (event: QuotaEvent) => unknown;

/** Receives what a listener threw, or the reason of its rejected promise, with the event. */
export type ListenerFailed = (error: unknown, event: QuotaEvent) => void;

/**
 * The listeners of an engine. The engine calls them when a command is decided, committed and answered, so that a
 * listener cannot change a decision: what one throws goes to `failed`, and the other listeners still get the event.
 */
export class EventListeners {
  readonly #all = new Set<EventListener>();
  readonly #failed: ListenerFailed;

  constructor(failed: ListenerFailed = logFailure) {
    this.#failed = failed;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Adds a listener; the returned function removes it. */
  add(listener: EventListener): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  deliver(events: readonly QuotaEvent[]): void {
    for (const event of events)
      for (const listener of [...this.#all]) {
        try {
          const result = listener(event);
          if (result instanceof Promise) result.catch((error: unknown) => this.#failed(error, event));
        } catch (error) {
          this.#failed(error, event);
        }
      }
  }
}

function logFailure(error: unknown, { type }: QuotaEvent): void {
  // eslint-disable-next-line no-console -- the only output of the library: an error that nobody else receives
  console.error(`a listener of the quota engine failed at an event "${type}"; its decision stands`, error);
}
