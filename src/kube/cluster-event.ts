import { record, text, time } from './json.js';

/** An event of the API server. */
export interface ClusterEvent {
  readonly atMs: number;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  /** UID of its object. */
  readonly uid: string;
  readonly component: string;
  readonly resourceVersion: string;
}

export function readEvent(object: unknown): ClusterEvent {
  const event = record(object);
  const metadata = record(event.metadata);
  const involved = record(event.involvedObject);
  const series = record(event.series);
  const at = [series.lastObservedTime, event.lastTimestamp, event.eventTime, metadata.creationTimestamp];
  return {
    atMs: at.map(time).find((ms) => ms !== null) ?? 0,
    type: text(event.type),
    reason: text(event.reason),
    message: text(event.message),
    count: Number(series.count ?? event.count ?? 1),
    namespace: text(involved.namespace),
    kind: text(involved.kind),
    name: text(involved.name),
    uid: text(involved.uid),
    component: text(event.reportingComponent) || text(record(event.source).component),
    resourceVersion: text(metadata.resourceVersion),
  };
}
