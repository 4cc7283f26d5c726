/** Text that is not valid JSON, as far as it was read. */
export class BrokenJson extends Error {
  constructor(at: number, expected: string) {
    super(`expected ${expected} at byte ${at}`);
    this.name = 'BrokenJson';
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
/** Objects of the API have some dozens. A parser takes 60 bytes and 300 ns for each bracket that is open. */
const MOST_DEPTH = 1_000;
/** Distinguishes the brackets of objects and arrays; without this bit they are equal. */
const ARRAY_BIT = 0x20;

/**
 * Finds where parts of a large JSON text begin and end, without creating values: most of megabytes of text is skipped
 * at some nanoseconds a byte. In skipped parts only strings and the depth of brackets are checked.
 */

/**
 * Calls `visit` with the start of each member's value. `visit` returns the value's end, or the negated end to skip all
 * later members. Returns the object's end.
 */
export function eachMember(text: Buffer, start: number, visit: (key: string, value: number) => number): number {
  if (text[start] !== OPEN_OBJECT) throw new BrokenJson(start, 'an object');
  let at = skipSpace(text, start + 1);
  if (text[at] === CLOSE_OBJECT) return at + 1;
  for (;;) {
    if (text[at] !== QUOTE) throw new BrokenJson(at, 'a key');
    const end = endOfString(text, at);
    const key = keyAt(text, at, end);
    at = skipSpace(text, end);
    if (text[at] !== COLON) throw new BrokenJson(at, '":"');
    const valueEnd = visit(key, skipSpace(text, at + 1));
    if (valueEnd < 0) return endOfOpen(text, -valueEnd, 1);
    at = skipSpace(text, valueEnd);
    if (text[at] === CLOSE_OBJECT) return at + 1;
    if (text[at] !== COMMA) throw new BrokenJson(at, '"," or "}"');
    at = skipSpace(text, at + 1);
  }
}

/** Calls `visit` with the start of each element; `visit` returns the element's end. Returns the array's end. */
export function eachElement(text: Buffer, start: number, visit: (element: number) => number): number {
  if (text[start] !== OPEN_ARRAY) throw new BrokenJson(start, 'a list');
  let at = skipSpace(text, start + 1);
  if (text[at] === CLOSE_ARRAY) return at + 1;
  for (;;) {
    at = skipSpace(text, visit(at));
    if (text[at] === CLOSE_ARRAY) return at + 1;
    if (text[at] !== COMMA) throw new BrokenJson(at, '"," or "]"');
    at = skipSpace(text, at + 1);
  }
}

/** The end of the value that begins here. */
export function endOfValue(text: Buffer, start: number): number {
  const first = text[start];
  if (first === QUOTE) return endOfString(text, start);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return endOfScalar(text, start);
  return endOfOpen(text, start + 1, 1);
}

/** The end of the `open` brackets that are open here. */
function endOfOpen(text: Buffer, start: number, open: number): number {
  let depth = open;
  for (let at = start; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === QUOTE) at = endOfString(text, at) - 1;
    else if ((byte | ARRAY_BIT) === OPEN_OBJECT) {
      if (++depth > MOST_DEPTH) throw new BrokenJson(at, `at most ${MOST_DEPTH} open brackets`);
    } else if ((byte | ARRAY_BIT) === CLOSE_OBJECT && --depth === 0) return at + 1;
  }
  throw new BrokenJson(text.length, 'the end of the value');
}

/** Parses the value with JSON.parse. */
export function valueAt(text: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(text.toString('utf8', start, end));
  } catch (error) {
    throw new BrokenJson(start, `a value (${(error as Error).message})`);
  }
}

/** The position after blanks and line ends. */
export function skipSpace(text: Buffer, start: number): number {
  let at = start;
  while (at < text.length && (text[at] as number) <= 0x20) at++;
  return at;
}

/** True where an object begins. */
export function isObjectAt(text: Buffer, at: number): boolean {
  return text[at] === OPEN_OBJECT;
}

/** True where an array begins. */
export function isArrayAt(text: Buffer, at: number): boolean {
  return text[at] === OPEN_ARRAY;
}

function endOfString(text: Buffer, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) at++;
  }
  throw new BrokenJson(text.length, 'the end of a text');
}

function endOfScalar(text: Buffer, start: number): number {
  let at = start;
  for (; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === COMMA || (byte | ARRAY_BIT) === CLOSE_OBJECT || byte <= 0x20) break;
  }
  if (at === start) throw new BrokenJson(start, 'a value');
  return at;
}

function keyAt(text: Buffer, start: number, end: number): string {
  const key = text.toString('latin1', start + 1, end - 1);
  return key.includes('\\') ? String(valueAt(text, start, end)) : key;
}
