import type { Measurement } from '../report.js';

/** The results of one benchmark. */
export interface BenchResult {
  readonly bench: string;
  readonly figures: readonly Measurement[];
  /** Notes, in their order; of a benchmark that could not run, the reason. */
  readonly notes: readonly string[];
}
