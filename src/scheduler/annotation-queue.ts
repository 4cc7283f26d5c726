import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { PodName, PodWriter } from './pod-writer.js';

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
const MAX_TRIES = 10;

interface Item {
  readonly pod: PodName;
  readonly annotations: Readonly<Record<string, string>>;
  tries: number;
  cancel: (() => void) | null;
}

/**
 * Writes annotations to pods in the background: one write per pod at a time, the latest wins, retried while the API
 * server does not answer, dropped when the pod is gone.
 */
export class AnnotationQueue {
  readonly #writer: PodWriter;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #items = new Map<string, Item>();

  constructor(writer: PodWriter, clock: Clock, log: Log) {
    this.#writer = writer;
    this.#clock = clock;
    this.#log = log;
  }

  /** Writes not done yet. */
  get length(): number {
    return this.#items.size;
  }

  add(pod: PodName, annotations: Readonly<Record<string, string>>): void {
    this.drop(pod.uid);
    const item: Item = { pod, annotations, tries: 0, cancel: null };
    this.#items.set(pod.uid, item);
    void this.#write(item);
  }

  /** The pod is gone, or another writer has changed it. */
  drop(uid: string): void {
    this.#items.get(uid)?.cancel?.();
    this.#items.delete(uid);
  }

  stop(): void {
    for (const uid of [...this.#items.keys()]) this.drop(uid);
  }

  async #write(item: Item): Promise<void> {
    const { pod } = item;
    item.tries++;
    const result = await this.#writer.annotate(pod, item.annotations);
    if (this.#items.get(pod.uid) !== item) return;
    if (result.ok || result.code === 'gone') {
      this.#items.delete(pod.uid);
      return;
    }
    if (result.code === 'refused' || item.tries >= MAX_TRIES) {
      this.#items.delete(pod.uid);
      this.#log.error(
        { pod: `${pod.namespace}/${pod.name}`, reason: result.reason, tries: item.tries },
        'the predicted GPUs could not be written to the annotations of the pod',
      );
      return;
    }
    const delayMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (item.tries - 1));
    item.cancel = this.#clock.after(delayMs, () => void this.#write(item));
  }
}
