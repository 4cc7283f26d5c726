/** Tolerant reading of JSON that others wrote: a field of the wrong type counts as absent. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** The value where it is an object; else one without fields. */
export function record(value: unknown): JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** The value where it is a text; else empty. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Labels, annotations: texts by name. */
export function texts(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(record(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** A time as Kubernetes writes it: whole seconds. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Milliseconds since 1970 of a time as Kubernetes writes it; null for what is none. */
export function time(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : ms;
}
