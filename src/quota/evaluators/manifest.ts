/** A part of a manifest: anything JSON can hold. */
export type Json = unknown;

/**
 * Reads manifests, which anybody may have written: what is not as it should be is noted, and read as if it was absent.
 */
export class ManifestReader {
  readonly problems: string[] = [];

  /** The value behind some names, undefined where one of them is missing. */
  at(value: Json, ...names: readonly string[]): Json {
    return names.reduce<Json>(
      (inner, name) => (isObject(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined),
      value,
    );
  }

  /** The fields of an object, none where it is absent. */
  fields(value: Json, path: string): readonly (readonly [string, Json])[] {
    if (value === undefined || value === null) return [];
    if (isObject(value)) return Object.entries(value);
    this.problems.push(`${path} is no object`);
    return [];
  }

  /** The items of a list, none where it is absent. */
  items(value: Json, path: string): readonly Json[] {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value as readonly Json[];
    this.problems.push(`${path} is no list`);
    return [];
  }

  text(value: Json, path: string): string {
    if (value === undefined || value === null) return '';
    if (typeof value === 'string') return value;
    this.problems.push(`${path} is no text`);
    return '';
  }

  /** Labels, annotations, selectors: texts by name. */
  texts(value: Json, path: string): ReadonlyMap<string, string> {
    return new Map(this.fields(value, path).map(([name, text]) => [name, this.text(text, `${path}.${name}`)]));
  }

  flag(value: Json): boolean {
    return value === true;
  }

  /** A number of pods or of the like; `absent` without one. */
  count(value: Json, path: string, absent: number): number {
    if (value === undefined || value === null) return absent;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31) return value;
    this.problems.push(`${path} is no count`);
    return absent;
  }

  /** Quantities by resource, as text or number. */
  quantities(value: Json, path: string): ReadonlyMap<string, string | number> {
    const quantities = new Map<string, string | number>();
    for (const [name, quantity] of this.fields(value, path)) {
      if (typeof quantity === 'string' || typeof quantity === 'number') quantities.set(name, quantity);
      else this.problems.push(`${path}.${name} is no quantity`);
    }
    return quantities;
  }
}

function isObject(value: Json): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
