/** Tolerant readers of JSON from other writers: a field of the wrong type counts as absent. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** The value if it is an object; else an empty object. */
export function record(value: unknown): JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** The value if it is a text; else an empty text. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Labels or annotations: texts by name. */
export function texts(value: unknown): Readonly<Record<string, string>> {
  const given = record(value);
  // An object of an API server has texts only; a copy of a large one takes long.
  for (const name in given) if (typeof given[name] !== 'string') return onlyTexts(given);
  return given as Readonly<Record<string, string>>;
}

function onlyTexts(given: JsonRecord): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** A time in Kubernetes' format: whole seconds. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Milliseconds since 1970 of a time in Kubernetes' format; null for other values. */
export function time(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : ms;
}
