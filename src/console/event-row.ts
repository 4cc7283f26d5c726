import { readEvent } from '../kube/cluster-event.js';
import { record, text } from '../kube/json.js';
import type { EventRow } from './rows.js';

/** The row of an event; null for one without name. Its message names the object, as the events of a node's page do. */
export function eventRow(object: unknown): EventRow | null {
  const { atMs, type, reason, message, count, namespace, kind, name } = readEvent(object);
  const metadata = record(record(object).metadata);
  const [uid, own] = [text(metadata.uid), text(metadata.namespace)];
  if (uid === '' || own === '') return null;
  return {
    uid,
    namespace: own,
    level: type === 'Warning' ? 'warning' : 'info',
    kind: reason,
    message: `${kind === 'Pod' ? `${namespace}/${name}` : `${kind} ${name}`}: ${message}`,
    count: Number.isSafeInteger(count) ? count : 1,
    atMs,
    object: { kind, namespace, name },
  };
}
