/** Text that is no JSON, as far as it was looked at. */
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
/** Sets apart an object's brackets from an array's; without it both look like the object's. */
const ARRAY_BIT = 0x20;

/**
 * Where parts of a large JSON text begin and end, without making values of them: megabytes of which little is needed
 * are read at some nanoseconds a byte. What is passed over is not checked beyond its strings and the depth of its
 * brackets.
 */

/**
 * Calls `visit` with the start of each member's value. It answers where the value ends, or less than nothing by that
 * much where the members after it are of no interest. Answers the object's end.
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

/** Calls `visit` with the start of each element; it answers where the element ends. Answers the array's end. */
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

/** Where the value that begins here ends. */
export function endOfValue(text: Buffer, start: number): number {
  const first = text[start];
  if (first === QUOTE) return endOfString(text, start);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return endOfScalar(text, start);
  return endOfOpen(text, start + 1, 1);
}

/** Where so many brackets that are open here are closed. */
function endOfOpen(text: Buffer, start: number, open: number): number {
  let depth = open;
  for (let at = start; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === QUOTE) at = endOfString(text, at) - 1;
    else if ((byte | ARRAY_BIT) === OPEN_OBJECT) depth++;
    else if ((byte | ARRAY_BIT) === CLOSE_OBJECT && --depth === 0) return at + 1;
  }
  throw new BrokenJson(text.length, 'the end of what began');
}

/** The value as JSON.parse makes it. */
export function valueAt(text: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(text.toString('utf8', start, end));
  } catch (error) {
    throw new BrokenJson(start, `a value (${(error as Error).message})`);
  }
}

/** Behind blanks and line ends. */
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
