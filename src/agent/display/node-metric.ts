import type { Metric } from '../../http/metrics.js';
import type { NodeCounts, NodeSnapshot } from '../node/index.js';

/** The data of a scrape: one moment of the node. */
export interface Scrape {
  readonly snapshot: NodeSnapshot;
  readonly counts: NodeCounts;
}

/** One metric family of the node: its row in docs/reference/operators-view.md, and the source of its values. */
export type NodeMetric = Metric<Scrape>;
