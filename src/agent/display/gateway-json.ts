/**
 * Prints proto3 messages as the original's HTTP gateway does (grpc-gateway 1 over Go's jsonpb with the original field
 * names): default values are left out, maps are sorted by key, numbers are the shortest text of a 32-bit float, and
 * HTML's special characters are escaped in texts. Fields are printed in the order of the object.
 */

/** Names of map fields: their entries are printed even if they are empty. */
const MAPS: ReadonlySet<string> = new Set(['usage', 'stat', 'spec']);

/** The JSON text of a message. */
export function gatewayJson(message: object): string {
  const fields = Object.entries(message).filter(([, value]) => !isDefault(value));
  return `{${fields.map(([name, value]) => `${text(name)}:${MAPS.has(name) ? map(value as object) : json(value)}`).join(',')}}`;
}

function map(entries: object): string {
  const sorted = Object.entries(entries).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `{${sorted.map(([key, value]) => `${text(key)}:${json(value)}`).join(',')}}`;
}

function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json).join(',')}]`;
  if (typeof value === 'string') return text(value);
  if (typeof value === 'number') return float(value);
  if (typeof value === 'object' && value !== null) return gatewayJson(value);
  return JSON.stringify(value);
}

function isDefault(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0 || value === false) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

const ESCAPED = /[<>&\u2028\u2029]|\\[\\bf]/gu;

function text(value: string): string {
  return JSON.stringify(value.replaceAll(/\p{Surrogate}/gu, '\ufffd')).replaceAll(ESCAPED, (found) => {
    if (found === '\\\\') return found;
    const character = found === '\\b' ? '\b' : found === '\\f' ? '\f' : found;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The shortest decimal text of the same 32-bit float. Whole numbers up to 2^24, such as pids, stay exact. */
export function float(value: number): string {
  const single = Math.fround(value);
  for (let digits = 1; digits < 9; digits++) {
    const shorter = Number(single.toPrecision(digits));
    if (Math.fround(shorter) === single) return String(shorter);
  }
  return String(Number(single.toPrecision(9)));
}
