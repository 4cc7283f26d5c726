import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { StoredRecord } from '../../quota/index.js';
import { KeyIndex } from './key-index.js';
import { readPiece, writePiece } from './record-text.js';
import { byKey, recordKey, Tail, type Edits } from './tail.js';

/** An immutable part of a log, in an object of its own. */
export interface Segment {
  /** Later segments have larger numbers. */
  readonly id: number;
  readonly text: string;
}

/** The segments that a ledger lists. */
export interface SegmentList {
  /** Distinguishes the segments of ledgers that had the same name one after the other; empty without segments. */
  readonly series: string;
  /** Ascending. */
  readonly ids: readonly number[];
  /** The id of the next segment. */
  readonly next: number;
}

/** A log that was read. */
export interface ReadLog {
  readonly log: RecordLog;
  /** Changes since the known log; null if the comparison is not possible. */
  readonly changes: Edits | null;
}

/** The tail is moved into segments when its text is longer. */
const MAX_TAIL_CHARS = 4096;
/** A shorter tail stays: the record of a group with many grants may be long itself. */
const MIN_SEALED = 24;
/** A segment is not longer, so that a write stays below 8 KB. */
const MAX_SEGMENT_CHARS = 7000;
/** Records that are tried as one segment. */
const RECORDS_PER_SEGMENT = 128;
/** The oldest segments are cleaned when segments hold more than this many times the records that count. */
const MAX_WASTE = 2;
const MIN_WASTE = 512;
/** Oldest segments that are cleaned with one write. */
const CLEANED_AT_ONCE = 2;
const END = '.';
/** Earlier versions fail to read a text with this prefix, because `//` is not a deflate stream. */
const LISTED = '//';
const NO_SEGMENTS: SegmentList = { series: '', ids: [], next: 0 };

/**
 * An immutable set of records in two parts: a tail of recent changes, which the ledger object holds, and segments,
 * which are objects of their own and never change. The cost of a change depends on the tail only.
 *
 * A record counts where it is newest: in the tail, else in the last segment that has it. A deleted record that an older
 * segment has is written with a value of null. See docs/design/ledger.md.
 */
export class RecordLog {
  readonly #tail: Tail;
  readonly segments: ReadonlyMap<number, string>;
  /** For each record of a segment the newest segment that has it, plus one; negative if that deletes it. */
  readonly #index: KeyIndex;
  readonly #list: SegmentList;
  /** Number of records in segments, and how many of them count. */
  readonly #written: number;
  readonly #live: number;
  #text: string | null = null;

  private constructor(
    tail: Tail,
    segments: ReadonlyMap<number, string>,
    index: KeyIndex,
    list: SegmentList,
    counts: { readonly written: number; readonly live: number },
  ) {
    this.#tail = tail;
    this.segments = segments;
    this.#index = index;
    this.#list = list;
    this.#written = counts.written;
    this.#live = counts.live;
  }

  static empty(): RecordLog {
    return new RecordLog(Tail.EMPTY, new Map(), KeyIndex.empty(), NO_SEGMENTS, { written: 0, live: 0 });
  }

  /** The segments that a ledger's text lists. Throws on an unknown form. */
  static listed(text: string): SegmentList {
    if (!text.startsWith(LISTED)) return NO_SEGMENTS;
    const [, series, next, ranges] = /^\/\/([0-9a-f]+):(\d+):([\d,-]*)\./.exec(text) ?? [];
    if (series === undefined || next === undefined || ranges === undefined)
      throw new Error('a ledger with an unknown list of segments');
    return { series, next: Number(next), ids: [...idsOf(ranges)] };
  }

  /** The segments that a text lists and `known` lacks, or all of them if the text is no later state of `known`. */
  static lacking(text: string, known = RecordLog.empty()): SegmentList {
    const list = RecordLog.listed(text);
    const isLater = continues(known.#list, list);
    return { ...list, ids: list.ids.filter((id) => !isLater || !known.segments.has(id)) };
  }

  /**
   * Reads a text. `segments` has the text of each segment that `known`, a state of the same log, lacks: only new
   * segments are parsed. Throws if the text is not valid.
   */
  static read(text: string, segments: ReadonlyMap<number, string> = new Map(), known = RecordLog.empty()): ReadLog {
    return atOnce(RecordLog.reading(text, segments, known));
  }

  /** The same, segment by segment, for callers that leave the event loop to others between two segments. */
  static *reading(
    text: string,
    segments: ReadonlyMap<number, string>,
    known = RecordLog.empty(),
  ): Generator<void, ReadLog> {
    const list = RecordLog.listed(text);
    const base = continues(known.#list, list) ? known : RecordLog.empty().#startsAt(list);
    const added = new Map<string, StoredRecord>();
    const parsed = function* (): Generator<readonly [Segment, readonly StoredRecord[]]> {
      for (const id of list.ids) {
        if (base.segments.has(id)) continue;
        const piece = segments.get(id);
        if (piece === undefined) throw new Error(`segment ${id} of a ledger is missing`);
        const records = readPiece(piece);
        for (const record of records) added.set(recordKey(record), record);
        yield [{ id, text: piece }, records];
      }
    };
    let log = yield* base.#withSegments(parsed());
    const kept = new Set(list.ids);
    const before = [...base.#tail.records.values()];
    for (const [id, piece] of base.segments) {
      if (kept.has(id)) continue;
      before.push(...base.#liveOf(id, piece));
      log = log.#without(id);
    }
    const complete = log;
    const tailText = list.series === '' ? text : text.slice(text.indexOf(END) + 1);
    const tail = Tail.read(tailText, base.#tail, (key) => complete.#isInSegment(key));
    log = log.#copy({ tail, list });
    if (base !== known) return { log, changes: null };
    for (const [key, record] of tail.records)
      if (added.has(key) || !isDeepStrictEqual(base.#tail.records.get(key), record)) added.set(key, record);
    // A segment that was cleaned meanwhile takes the deletions of its records with it.
    for (const record of before)
      if (record.value !== null && !log.has(recordKey(record)))
        added.set(recordKey(record), { ...record, value: null });
    return { log, changes: added };
  }

  /** The text for the ledger object: the list of segments, if there are any, and the tail. */
  get text(): string {
    if (this.#text !== null) return this.#text;
    const { series, next, ids } = this.#list;
    const { text } = this.#tail;
    this.#text = series === '' ? text : `${LISTED}${series}:${next}:${rangesOf(ids)}${END}${text}`;
    return this.#text;
  }

  get list(): SegmentList {
    return this.#list;
  }

  /** Characters of the whole log. */
  get length(): number {
    let length = this.text.length;
    for (const text of this.segments.values()) length += text.length;
    return length;
  }

  /** Whether the next write should move the tail into segments, because its text is longer than `chars`. */
  isLong(chars = MAX_TAIL_CHARS): boolean {
    const least = chars < MAX_TAIL_CHARS ? 1 : MIN_SEALED;
    return this.#tail.records.size >= least && this.text.length > chars;
  }

  has(key: string): boolean {
    const recent = this.#tail.records.get(key);
    return recent === undefined ? this.#isInSegment(key) : recent.value !== null;
  }

  #isInSegment(key: string): boolean {
    return (this.#index.get(key) ?? 0) > 0;
  }

  /** All records; those of the tail first. Parses all segments. */
  *values(): IterableIterator<StoredRecord> {
    for (const record of this.#tail.records.values()) if (record.value !== null) yield record;
    for (const [id, text] of this.segments) for (const record of this.#liveOf(id, text)) yield record;
  }

  /** Returns a log with changed records. */
  with(edits: Edits): RecordLog {
    if (edits.size === 0) return this;
    return this.#copy({ tail: this.#tail.with(edits, (key) => this.#isInSegment(key)) });
  }

  /**
   * Moves records of the tail into new segments, and the records that count out of the oldest segments if segments hold
   * too many others. The record of the group stays in the tail, and so do few reservations, which soon end.
   */
  sealed(): { readonly log: RecordLog; readonly created: readonly Segment[] } {
    const cleaned = this.#cleaned();
    const tail = cleaned.#tail.records;
    const isSealed = ({ kind }: StoredRecord): boolean => kind !== 'group' && kind !== 'reservation';
    const kept = [...tail.values()].filter((record) => !isSealed(record));
    // Nothing else in the tail: its text is known already.
    const keptChars = kept.length === tail.size ? cleaned.#tail.text.length : writePiece(kept).length;
    const moved = [...tail.values()].filter(
      (record) => isSealed(record) || (keptChars > MAX_TAIL_CHARS && record.kind === 'reservation'),
    );
    const begun = cleaned.#startsAt({ ...cleaned.#list, series: cleaned.#list.series || newSeries() });
    const parts = [...pieces(moved)].map(
      ([text, records], at) => [{ id: begun.#list.next + at, text }, records] as const,
    );
    const log = atOnce(begun.#withSegments(parts));
    const left = new Map(tail);
    for (const record of moved) left.delete(recordKey(record));
    return { log: log.#copy({ tail: new Tail(left) }), created: parts.map(([segment]) => segment) };
  }

  /** All records in the text itself, as earlier versions write and read them. */
  merged(): RecordLog {
    return RecordLog.empty().#copy({ tail: new Tail(byKey(this.values())) });
  }

  /** The log without its oldest segments, whose records that count are in the tail. */
  #cleaned(segments = CLEANED_AT_ONCE): RecordLog {
    const [oldest] = this.segments;
    const isWasteful = this.#written > MAX_WASTE * this.#live + MIN_WASTE;
    return segments === 0 || !isWasteful || oldest === undefined ? this : this.#unlisted(oldest).#cleaned(segments - 1);
  }

  /** The log without its oldest segment, whose records that count are in the tail. */
  #unlisted([id, text]: readonly [number, string]): RecordLog {
    const tail = byKey(this.#liveOf(id, text));
    for (const [key, record] of this.#tail.records) {
      tail.delete(key);
      tail.set(key, record);
    }
    const shorter = this.#without(id);
    // A deletion must be kept only while an older segment has the record, and no segment is older than the oldest.
    for (const [key, { value }] of tail) if (value === null && shorter.#index.get(key) === undefined) tail.delete(key);
    return shorter.#copy({ tail: new Tail(tail) });
  }

  /** Records of a segment that neither a later segment nor the tail replaces. */
  #liveOf(id: number, text: string): readonly StoredRecord[] {
    return readPiece(text).filter((record) => {
      const key = recordKey(record);
      return this.#index.get(key) === id + 1 && !this.#tail.records.has(key);
    });
  }

  /** The log with further segments and their records, one after the other. */
  *#withSegments(added: Iterable<readonly [Segment, readonly StoredRecord[]]>): Generator<void, RecordLog> {
    const [segments, ids, edits] = [new Map(this.segments), [...this.#list.ids], new Map<string, number>()];
    let [written, live, { next }] = [this.#written, this.#live, this.#list];
    for (const [{ id, text }, records] of added) {
      for (const record of records) {
        const key = recordKey(record);
        if ((edits.get(key) ?? this.#index.get(key) ?? 0) > 0) live--;
        if (record.value !== null) live++;
        edits.set(key, record.value === null ? -(id + 1) : id + 1);
      }
      segments.set(id, text);
      ids.push(id);
      next = Math.max(next, id + 1);
      written += records.length;
      yield;
    }
    const list = { series: this.#list.series, ids, next };
    return this.#copy({ segments, index: yield* this.#index.with(edits), list, counts: { written, live } });
  }

  #without(id: number): RecordLog {
    const segments = new Map(this.segments);
    const records = readPiece(segments.get(id) as string);
    segments.delete(id);
    let live = this.#live;
    const edits = new Map<string, null>();
    for (const record of records) {
      const key = recordKey(record);
      const newest = this.#index.get(key) ?? 0;
      if (Math.abs(newest) !== id + 1) continue;
      if (newest > 0) live--;
      edits.set(key, null);
    }
    return this.#copy({
      segments,
      index: atOnce(this.#index.with(edits)),
      list: { ...this.#list, ids: this.#list.ids.filter((other) => other !== id) },
      counts: { written: this.#written - records.length, live },
    });
  }

  #startsAt({ series, next }: SegmentList): RecordLog {
    return this.#copy({ list: { ...this.#list, series, next } });
  }

  #copy(changed: {
    readonly tail?: Tail;
    readonly segments?: ReadonlyMap<number, string>;
    readonly index?: KeyIndex;
    readonly list?: SegmentList;
    readonly counts?: { readonly written: number; readonly live: number };
  }): RecordLog {
    const { tail = this.#tail, segments = this.segments, index = this.#index, list = this.#list } = changed;
    return new RecordLog(tail, segments, index, list, changed.counts ?? { written: this.#written, live: this.#live });
  }
}

function atOnce<T>(steps: Iterator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Whether a list is a later state of another one. */
function continues(known: SegmentList, list: SegmentList): boolean {
  if (known.series !== list.series && known.series !== '') return false;
  return known.next <= list.next;
}

/** Splits records into texts that fit into a segment. */
function* pieces(records: readonly StoredRecord[]): Generator<readonly [string, readonly StoredRecord[]]> {
  for (let at = 0; at < records.length;) {
    let count = Math.min(RECORDS_PER_SEGMENT, records.length - at);
    let text = writePiece(records.slice(at, at + count));
    while (text.length > MAX_SEGMENT_CHARS && count > 1) {
      count = Math.max(1, Math.floor((count * MAX_SEGMENT_CHARS * 0.9) / text.length));
      text = writePiece(records.slice(at, at + count));
    }
    yield [text, records.slice(at, at + count)];
    at += count;
  }
}

/** Ascending ids as ranges, such as `3-17,19`. */
function rangesOf(ids: readonly number[]): string {
  const ranges: string[] = [];
  for (let at = 0; at < ids.length;) {
    const first = ids[at] as number;
    let last = first;
    while (ids[++at] === last + 1) last++;
    ranges.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return ranges.join(',');
}

function* idsOf(ranges: string): Generator<number> {
  for (const range of ranges === '' ? [] : ranges.split(',')) {
    const [first, last = first] = range.split('-').map(Number);
    for (let id = first as number; id <= (last as number); id++) yield id;
  }
}

function newSeries(): string {
  return randomUUID().replaceAll('-', '').slice(0, 12);
}
