import { record, text, texts } from '../kube/json.js';

/** What the extender reads of a node, in the API's own JSON form, small enough to keep. */
export interface NodeObject {
  readonly metadata?: {
    readonly name?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly capacity?: Readonly<Record<string, string | number>>;
    readonly allocatable?: Readonly<Record<string, string | number>>;
  };
}

/** Annotations of others are none of our business, and may be long. */
const OWN_KEYS = 'tencent.com/';

/** Reads a node from JSON of whatever origin: a field of the wrong type counts as absent. */
export function readNode(value: unknown): NodeObject {
  const { metadata, spec, status } = record(value);
  const { allocatable, capacity } = record(status);
  const annotations = Object.entries(texts(record(metadata).annotations)).filter(([key]) => key.startsWith(OWN_KEYS));
  return {
    metadata: {
      name: nameOf(value),
      annotations: Object.fromEntries(annotations),
      labels: texts(record(metadata).labels),
    },
    spec: { unschedulable: record(spec).unschedulable === true },
    status: { allocatable: quantities(allocatable ?? capacity) },
  };
}

/** The object's name; empty where it has none. */
export function nameOf(value: unknown): string {
  return text(record(record(value).metadata).name);
}

function quantities(value: unknown): Record<string, string | number> {
  const isQuantity = (entry: [string, unknown]): entry is [string, string | number] =>
    typeof entry[1] === 'string' || typeof entry[1] === 'number';
  return Object.fromEntries(Object.entries(record(value)).filter(isQuantity));
}
