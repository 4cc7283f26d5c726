import type { Measurement } from '../report.js';
import type { BenchResult } from '../summary/bench-result.js';
import { combined } from '../summary/repeated-runs.js';

/** What a benchmark tells while it runs, in the order in which it happens. */
export type BenchEvent =
  | { readonly kind: 'run' }
  | { readonly kind: 'section'; readonly title: string }
  | { readonly kind: 'figure'; readonly figure: Measurement }
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'failure'; readonly text: string }
  | { readonly kind: 'end' };

export type Listener = (event: BenchEvent) => void;

interface Section {
  readonly bench: string;
  readonly figures: Measurement[];
  readonly notes: string[];
}

/** What one benchmark has told until now. What a run told before it failed counts too. */
export class Recording {
  readonly #name: string;
  readonly #runs: Section[][] = [];
  #failure: string | null = null;
  #ended = false;

  constructor(name: string) {
    this.#name = name;
  }

  readonly add = (event: BenchEvent): void => {
    const section = this.#runs.at(-1)?.at(-1);
    if (event.kind === 'run') this.#runs.push([]);
    if (event.kind === 'section') this.#runs.at(-1)?.push({ bench: event.title, figures: [], notes: [] });
    if (event.kind === 'figure') section?.figures.push(event.figure);
    if (event.kind === 'note') section?.notes.push(event.text);
    if (event.kind === 'failure') this.#failure ??= event.text;
    if (event.kind === 'end') this.#ended = true;
  };

  /** It came to its end, with a failure or without. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Why it failed; null: it did not. */
  get failure(): string | null {
    return this.#failure;
  }

  /** The medians of its runs; the first result tells a failure. */
  get results(): BenchResult[] {
    const results = combined(this.#runs);
    if (this.#failure === null) return results;
    const [first = { bench: this.#name, figures: [], notes: [] }, ...others] = results;
    return [{ ...first, notes: [...first.notes, `failed: ${this.#failure}`] }, ...others];
  }
}
