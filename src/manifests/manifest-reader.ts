/** A JSON value in a manifest. */
export type Json = unknown;

/** Reads untrusted manifests: invalid values are added to `problems` and read as if absent. */
export class ManifestReader {
  readonly problems: string[] = [];

  /** The value at a path of names; undefined if one of them is missing. */
  at(value: Json, ...names: readonly string[]): Json {
    let inner = value;
    for (const name of names) {
      if (!isObject(inner) || !Object.hasOwn(inner, name)) return undefined;
      inner = inner[name];
    }
    return inner;
  }

  /** The fields of an object; empty if it is absent. */
  fields(value: Json, path: string): readonly (readonly [string, Json])[] {
    if (value === undefined || value === null) return [];
    if (isObject(value)) return Object.entries(value);
    this.problems.push(`${path} is not an object`);
    return [];
  }

  /** The number of fields of an object; 0 for another value. */
  size(value: Json): number {
    return isObject(value) ? Object.keys(value).length : 0;
  }

  /** The items of a list; empty if it is absent. */
  items(value: Json, path: string): readonly Json[] {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value as readonly Json[];
    this.problems.push(`${path} is not a list`);
    return [];
  }

  text(value: Json, path: string): string {
    if (value === undefined || value === null) return '';
    if (typeof value === 'string') return value;
    this.problems.push(`${path} is not a text`);
    return '';
  }

  /** Texts by name, as in labels, annotations and selectors. */
  texts(value: Json, path: string): ReadonlyMap<string, string> {
    return new Map(this.fields(value, path).map(([name, text]) => [name, this.text(text, `${path}.${name}`)]));
  }

  flag(value: Json): boolean {
    return value === true;
  }

  /** A number of pods or similar; `absent` if it is missing. */
  count(value: Json, path: string, absent: number): number {
    if (value === undefined || value === null) return absent;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31) return value;
    this.problems.push(`${path} is not a count; expected a whole number of at least 0`);
    return absent;
  }

  /** Quantities by resource, as text or number. */
  quantities(value: Json, path: string): ReadonlyMap<string, string | number> {
    const quantities = new Map<string, string | number>();
    for (const [name, quantity] of this.fields(value, path)) {
      if (typeof quantity === 'string' || typeof quantity === 'number') quantities.set(name, quantity);
      else this.problems.push(`${path}.${name} is not a quantity`);
    }
    return quantities;
  }
}

function isObject(value: Json): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
