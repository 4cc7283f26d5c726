import { channel } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';

/** Adds up the time from each request to the API server about a claim until the end of its answer. */
export class ApiTime {
  readonly #started = new WeakMap<ClientRequest, number>();
  #total = 0;

  readonly #start = (message: unknown): void => {
    const { request } = message as { readonly request: ClientRequest };
    if (request.method === 'GET' && request.path.includes('/resourceclaims/'))
      this.#started.set(request, performance.now());
  };

  readonly #finish = (message: unknown): void => {
    const { request } = message as { readonly request: ClientRequest };
    const started = this.#started.get(request);
    if (started !== undefined) this.#total += performance.now() - started;
  };

  /** Milliseconds so far. */
  get total(): number {
    return this.#total;
  }

  start(): void {
    channel('http.client.request.start').subscribe(this.#start);
    channel('http.client.response.finish').subscribe(this.#finish);
  }

  stop(): void {
    channel('http.client.request.start').unsubscribe(this.#start);
    channel('http.client.response.finish').unsubscribe(this.#finish);
  }
}
