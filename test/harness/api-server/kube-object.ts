/** An object as the API server stores it: any JSON object with the standard metadata. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** The metadata that the server uses; all other fields are stored and returned unchanged. */
export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  /** RFC 3339, whole seconds. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly [field: string]: unknown;
}

export type Json = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a dotted path such as `spec.nodeName`; undefined where the path leads nowhere. */
export function valueAt(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const step of path.split('.')) {
    if (!isJsonObject(value)) return undefined;
    value = value[step];
  }
  return value;
}

export function isDeepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((entry, index) => isDeepEqual(entry, b[index]));
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isDeepEqual(a[key], b[key]));
}
