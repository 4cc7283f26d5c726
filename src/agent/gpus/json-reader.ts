/** A value of a document is not what it should be; the message names the place and is for operators. */
export class DecodeError extends Error {}

/** One value of a JSON document and the way to it. Methods throw `DecodeError` for a value of another kind. */
export interface Reader {
  readonly absent: boolean;
  /** A field of an object; reading it gives its default where it is absent. */
  field(name: string): Reader;
  list(): readonly Reader[];
  /** The fields of an object, by name; none where it is absent. */
  entries(): readonly (readonly [name: string, value: Reader])[];
  text(otherwise: string, pattern?: RegExp): string;
  integer(otherwise: number, min: number, max: number): number;
  integerOrNull(otherwise: number | null, min: number, max: number): number | null;
  /** The complaint that this value is not `expected`. */
  wrong(expected: string): DecodeError;
}

/** Reads `value`, which stands at `path` of its document. */
export function reader(value: unknown, path: string): Reader {
  const wrong = (expected: string): DecodeError =>
    new DecodeError(`${path === '' ? 'the document' : path}: expected ${expected}, got ${short(value)}`);
  const absent = value === undefined;
  const object = (): Record<string, unknown> => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong('an object');
    return value as Record<string, unknown>;
  };
  const below = (name: string): string => (path === '' ? name : `${path}.${name}`);
  return {
    absent,
    wrong,
    field: (name) => reader(Object.hasOwn(object(), name) ? object()[name] : undefined, below(name)),
    entries: () =>
      absent ? [] : Object.entries(object()).map(([name, item]) => [name, reader(item, below(name))] as const),
    list() {
      if (!Array.isArray(value)) throw wrong('a list');
      return value.map((item: unknown, at) => reader(item, `${path}[${at}]`));
    },
    text(otherwise, pattern) {
      if (absent) return otherwise;
      if (typeof value !== 'string' || value === '') throw wrong('a text');
      if (pattern !== undefined && !pattern.test(value)) throw wrong(`a text like ${otherwise}`);
      return value;
    },
    integer(otherwise, min, max) {
      if (absent) return otherwise;
      if (!Number.isInteger(value) || (value as number) < min || (value as number) > max)
        throw wrong(`an integer from ${min} to ${max}`);
      return value as number;
    },
    integerOrNull(otherwise, min, max) {
      if (absent) return otherwise;
      return value === null ? null : this.integer(0, min, max);
    },
  };
}

function short(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length <= 40 ? text : `${text.slice(0, 37)}...`;
}
