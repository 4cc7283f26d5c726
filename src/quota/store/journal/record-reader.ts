import type { StoredRecord, WorkloadRecord } from '../../core/records/record.js';

const [NEW_LINE, SPACE, QUOTE, ZERO, NINE, OPEN, BACKSLASH, CLOSE, LAST_ASCII] = [10, 32, 34, 48, 57, 91, 92, 93, 126];

/** The texts between the values of a workload record, as `JSON.stringify(toRecord(...))` writes them. */
const KEY = Buffer.from('{"kind":"workload","key":"');
const GROUP = Buffer.from('","group":"');
const UID = Buffer.from('","value":{"uid":"');
const POD_SETS = Buffer.from('","podSets":');
const COUNT_KEY = Buffer.from(',"countKey":"');
const HELD_REPLICAS = Buffer.from('","heldReplicas":');
const VERSION = Buffer.from(',"version":');
const END = Buffer.from('}}');

/** Digits of a number that cannot lose precision. */
const MAX_DIGITS = 15;
/** Positions in a table of recent texts. */
const RECENT = 1 << 14;
/** Lists of pod sets that are kept; a text with a shape occurs once a file. */
const MAX_POD_SETS = 4096;

/**
 * Reads the records of a payload, one JSON text a line. Nearly all are workloads without escapes, which are read
 * without a JSON parser; every other line goes to `JSON.parse`. Equal texts give the same pod sets and group names.
 */
export class RecordReader {
  readonly #names = new RecentTexts();
  readonly #texts = new RecentTexts();
  readonly #podSets = new Map<string, WorkloadRecord['podSets']>();
  #bytes: Buffer = Buffer.alloc(0);
  /** The next byte of the line that is read; -1 after the first byte that a plain workload does not have. */
  #at = 0;

  /** Calls `take` with each record from byte `from` on; returns their number. */
  readAll(payload: Buffer, from: number, take: (record: StoredRecord) => void): number {
    this.#bytes = payload;
    let count = 0;
    for (let at = from; at < payload.length; count++) {
      this.#at = at;
      const record = this.#workload();
      if (record !== null && (this.#at === payload.length || payload[this.#at] === NEW_LINE)) {
        take(record);
        at = this.#at + 1;
        continue;
      }
      const end = endOfLine(payload, at);
      take(JSON.parse(payload.toString('utf8', at, end)) as StoredRecord);
      at = end + 1;
    }
    return count;
  }

  #workload(): StoredRecord | null {
    this.#skip(KEY);
    const key = this.#text(null);
    this.#skip(GROUP);
    const group = this.#text(this.#names);
    this.#skip(UID);
    const uid = this.#text(null);
    this.#skip(POD_SETS);
    const podSets = this.#list();
    this.#skip(COUNT_KEY);
    const countKey = this.#text(this.#names);
    this.#skip(HELD_REPLICAS);
    const heldReplicas = this.#number();
    if (this.#at < 0 || podSets === null) return null;
    if (this.#bytes[this.#at] !== VERSION[0]) {
      this.#skip(END);
      return this.#at < 0 ? null : { kind: 'workload', key, group, value: { uid, podSets, countKey, heldReplicas } };
    }
    this.#skip(VERSION);
    const version = this.#number();
    this.#skip(END);
    return this.#at < 0
      ? null
      : { kind: 'workload', key, group, value: { uid, podSets, countKey, heldReplicas, version } };
  }

  #skip(expected: Buffer): void {
    const bytes = this.#bytes;
    const at = this.#at;
    if (at < 0) return;
    for (let index = 0; index < expected.length; index++) {
      if (bytes[at + index] === expected[index]) continue;
      this.#at = -1;
      return;
    }
    this.#at = at + expected.length;
  }

  /** The text up to the next quote; a text from the table if given. */
  #text(recent: RecentTexts | null): string {
    const bytes = this.#bytes;
    const from = this.#at;
    if (from < 0) return '';
    let at = from;
    let hash = 0;
    for (let byte = bytes[at] as number; byte !== QUOTE; byte = bytes[++at] as number) {
      if (!(byte >= SPACE && byte <= LAST_ASCII && byte !== BACKSLASH)) {
        this.#at = -1;
        return '';
      }
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    this.#at = at;
    if (at === from) return '';
    return recent === null ? bytes.toString('latin1', from, at) : recent.find(bytes, from, at, hash);
  }

  #list(): WorkloadRecord['podSets'] | null {
    const bytes = this.#bytes;
    const from = this.#at;
    if (from < 0) return null;
    if (bytes[from] !== OPEN) {
      this.#at = -1;
      return null;
    }
    let at = from;
    let hash = 0;
    let depth = 0;
    let isText = false;
    do {
      const byte = bytes[at++] as number;
      if (!(byte >= SPACE && byte <= LAST_ASCII && byte !== BACKSLASH)) {
        this.#at = -1;
        return null;
      }
      if (byte === QUOTE) isText = !isText;
      else if (!isText && byte === OPEN) depth++;
      else if (!isText && byte === CLOSE) depth--;
      hash = (Math.imul(hash, 31) + byte) | 0;
    } while (depth > 0);
    this.#at = at;
    const text = this.#texts.find(bytes, from, at, hash);
    const known = this.#podSets.get(text);
    if (known !== undefined) return known;
    const podSets = JSON.parse(text) as WorkloadRecord['podSets'];
    if (this.#podSets.size >= MAX_POD_SETS) this.#podSets.clear();
    this.#podSets.set(text, podSets);
    return podSets;
  }

  #number(): number {
    const bytes = this.#bytes;
    const from = this.#at;
    if (from < 0) return 0;
    let at = from;
    let value = 0;
    for (let byte = bytes[at] as number; byte >= ZERO && byte <= NINE; byte = bytes[++at] as number)
      value = value * 10 + byte - ZERO;
    const isPlain = at > from && at - from <= MAX_DIGITS && (bytes[from] !== ZERO || at === from + 1);
    this.#at = isPlain ? at : -1;
    return value;
  }
}

/** Texts that were read before, found without making a string. */
class RecentTexts {
  readonly #texts = new Array<string>(RECENT).fill('');

  /** The text of ASCII bytes with this hash. */
  find(bytes: Buffer, from: number, to: number, hash: number): string {
    const place = (hash ^ (hash >>> 14)) & (RECENT - 1);
    const known = this.#texts[place] as string;
    if (isText(known, bytes, from, to)) return known;
    const text = bytes.toString('latin1', from, to);
    this.#texts[place] = text;
    return text;
  }
}

function isText(text: string, bytes: Buffer, from: number, to: number): boolean {
  if (text.length !== to - from) return false;
  for (let at = from; at < to; at++) if (text.charCodeAt(at - from) !== bytes[at]) return false;
  return true;
}

/** The position of the new line after `from`, or of the end. */
export function endOfLine(payload: Buffer, from: number): number {
  const end = payload.indexOf(NEW_LINE, from);
  return end < 0 ? payload.length : end;
}
