import type { NodeCounts, NodeSnapshot } from './view.js';

/** What a scrape reads: one moment of the node. */
export interface Scrape {
  readonly snapshot: NodeSnapshot;
  readonly counts: NodeCounts;
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One metric family: its rows of the table in docs/operators-view.md, and where its values come from. */
export interface Metric {
  readonly name: string;
  /** Untyped: a gauge by nature whose name must not be that of one. */
  readonly type: 'gauge' | 'counter' | 'untyped';
  /** One line, without backslashes. */
  readonly help: string;
  readonly labels: readonly string[];
  readonly read: (scrape: Scrape) => Iterable<Sample>;
}

/** A sample without labels. */
export function only(value: number): Sample[] {
  return [{ labels: {}, value }];
}

/** One sample for each entry, under one label. */
export function byLabel(label: string, values: ReadonlyMap<string, number>): Sample[] {
  return [...values].map(([name, value]) => ({ labels: { [label]: name }, value }));
}
