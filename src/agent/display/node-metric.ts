import type { Metric } from '../../http/metrics.js';
import type { NodeCounts, NodeSnapshot } from './view.js';

/** What a scrape reads: one moment of the node. */
export interface Scrape {
  readonly snapshot: NodeSnapshot;
  readonly counts: NodeCounts;
}

/** One metric family of the node: its row of the table in docs/operators-view.md, and where its values come from. */
export type NodeMetric = Metric<Scrape>;
