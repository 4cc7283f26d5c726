import type { ServerResponse } from 'node:http';
import { statusObject } from './api-failure.js';
import type { Json, KubeObject } from './kube-object.js';
import { inView, type MetadataView } from './metadata-only.js';
import type { Change } from './object-store.js';
import { apiVersionOf, type ResourceType } from './resource-type.js';
import type { Predicate } from './selector.js';

export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** One open watch. It behaves as that of a real server, until a test injects a fault. */
export class WatchStream {
  readonly type: ResourceType;
  readonly #response: ServerResponse;
  readonly #namespace: string | null;
  readonly #matches: Predicate;
  readonly #after: number;
  readonly #bookmarks: boolean;
  readonly #view: MetadataView | null;
  readonly #distort: ((event: Json) => unknown) | null;
  #silent = false;
  #held: string[] | null = null;

  constructor(options: {
    readonly response: ServerResponse;
    readonly type: ResourceType;
    readonly namespace: string | null;
    readonly matches: Predicate;
    /** Changes up to this revision are not sent, even if it lies in the future. */
    readonly after: number;
    readonly bookmarks: boolean;
    /** What the events have instead of whole objects. */
    readonly view: MetadataView | null;
    readonly distort: ((event: Json) => unknown) | null;
  }) {
    this.type = options.type;
    this.#response = options.response;
    this.#namespace = options.namespace;
    this.#matches = options.matches;
    this.#after = options.after;
    this.#bookmarks = options.bookmarks;
    this.#view = options.view;
    this.#distort = options.distort;
  }

  /** An object that leaves the selection is a deletion to this watch, one that enters it an addition. */
  deliver(change: Change): void {
    if (change.type !== this.type || change.revision <= this.#after) return;
    if (this.#namespace !== null && change.object.metadata.namespace !== this.#namespace) return;
    const before = change.previous !== null && change.event !== 'ADDED' && this.#matches(change.previous);
    const after = change.event !== 'DELETED' && this.#matches(change.object);
    if (!before && !after) return;
    this.#event({ type: after ? (before ? 'MODIFIED' : 'ADDED') : 'DELETED', object: change.object });
  }

  /** The state at the start of a watch without a resourceVersion. */
  begin(objects: readonly KubeObject[]): void {
    for (const object of objects) {
      if (this.#matches(object)) this.#event({ type: 'ADDED', object });
    }
  }

  bookmark(revision: number): void {
    if (!this.#bookmarks) return;
    const object = {
      kind: this.type.kind,
      apiVersion: apiVersionOf(this.type),
      metadata: { resourceVersion: String(revision), creationTimestamp: null },
    };
    this.#event({ type: 'BOOKMARK', object });
  }

  /** Sends an event without a change of the object. */
  send(event: WatchEvent): void {
    this.#write(`${JSON.stringify(event)}\n`);
  }

  sendText(text: string): void {
    this.#write(text);
  }

  /** Ends the response as the server does when the timeout of the watch expires. */
  end(): void {
    this.#response.end();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.socket?.destroy();
  }

  /** Sends neither events nor bookmarks any more while the connection stays open; the events of that time are lost. */
  silence(): void {
    this.#silent = true;
  }

  /** Sends error event 410 and ends, as when the history that the client needs is dropped. */
  expire(): void {
    this.send({ type: 'ERROR', object: statusObject(410, 'Expired', 'too old resource version') });
    this.end();
  }

  /** Holds all events back until `release`. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const text of held) this.#write(text);
  }

  #event({ type, object }: WatchEvent): void {
    const event = { type, object: inView(this.#view, object) };
    const sent = this.#distort === null ? event : this.#distort(event);
    this.#write(`${JSON.stringify(sent)}\n`);
  }

  #write(text: string): void {
    if (this.#silent) return;
    if (this.#held !== null) this.#held.push(text);
    else this.#response.write(text);
  }
}
