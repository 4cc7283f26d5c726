import * as z from 'zod';

export type DocumentResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

/**
 * Reads a JSON document. The schema's messages say what is expected; a refusal is one line that names the field, the
 * expected and the found value.
 */
export function parseDocument<T>(text: string, schema: z.ZodType<T>): DocumentResult<T> {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `not JSON: ${(error as Error).message.replaceAll(/\s+/gu, ' ')}` };
  }
  const parsed = schema.safeParse(document, { reportInput: true, jitless: true });
  if (parsed.success) return { ok: true, value: parsed.data };
  const [{ path, message, input } = { path: [], message: 'another shape', input: document }] = parsed.error.issues;
  return { ok: false, reason: `${placeOf(path)}: expected ${message}, got ${short(input)}` };
}

/** An integer within bounds. */
export function integer(min: number, max: number): z.ZodNumber {
  const expected = `an integer from ${min} to ${max}`;
  return z.int(expected).min(min, expected).max(max, expected);
}

/** A non-empty text; with an example, one that matches its pattern. */
export function text(example?: { readonly like: string; readonly pattern: RegExp }): z.ZodString {
  const any = z.string('a text').min(1, 'a text');
  return example === undefined ? any : any.regex(example.pattern, `a text like ${example.like}`);
}

function placeOf(path: readonly PropertyKey[]): string {
  const place = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return place === '' ? 'the document' : place.replace(/^\./u, '');
}

function short(value: unknown): string {
  if (value === undefined) return 'nothing';
  const written = JSON.stringify(value);
  return written.length <= 40 ? written : `${written.slice(0, 37)}...`;
}
