import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { checkOptions } from '../../core/command-shape.js';
import type { Change } from '../../core/state/change.js';
import { toRecord } from '../../core/records/record-format.js';
import { ShapeDictionary } from '../../core/records/shape-dictionary.js';
import type { StateHead } from '../../core/records/restore.js';
import type { Batch, Committed, GroupImage, Loaded, RecordSink, Store } from '../store.js';
import { directoryFiles, type JournalFile, type JournalFiles } from './files.js';
import { firstPayload, frameOf, scanFrames } from './frame.js';
import { takeLock, type Lock } from './lock.js';
import { RecordReader, endOfLine } from './record-reader.js';

/** Version of the file format; other versions are rejected. */
const FORMAT = 1;
/** Records per slice of a snapshot; commits may run between two slices. */
const SLICE_RECORDS = 1000;
/** The file with the number of the newest journal; directories of earlier versions do not have it. */
const NEWEST = 'newest';
const NO_REVISIONS: ReadonlyMap<string, string> = new Map();

export interface JournalOptions {
  /** Size of the journal at which a snapshot is written. */
  readonly compactBytes?: number | undefined;
  /**
   * False lets the system decide when a commit reaches the disk: faster, but a power cut may lose acknowledged commits.
   */
  readonly durable?: boolean | undefined;
  /** Only reads an existing directory, even while another process owns it. */
  readonly readOnly?: boolean | undefined;
  /** Called when a snapshot cannot be written; the journal continues without it. */
  readonly onWarning?: ((reason: string) => void) | undefined;
  /** Replaces the real directory in tests. */
  readonly files?: JournalFiles | undefined;
}

/**
 * Stores an engine's state in a directory: append-only files `journal-N` with one frame per commit, and files
 * `snapshot-N` that replace all journals before N. Commits continue while a snapshot is written: records are absolute,
 * so that records changed meanwhile are also in journal N and take precedence. Every start begins a new journal, which
 * notes the accepted length of the previous one. The file `newest` names the newest journal before its first commit, so
 * that its loss is noticed too.
 */
export class JournalStore implements Store {
  readonly exclusive = true;
  readonly #files: JournalFiles;
  readonly #lock: Lock | null;
  readonly #compactBytes: number;
  readonly #warn: (reason: string) => void;
  readonly #isReadOnly: boolean;
  /** Number of commits in the last journal that was read. */
  #commitsOfLast = 0;
  /** Bytes of complete frames in the journal before the last one. */
  #bytesBeforeLast = 0;
  #number = 0;
  #file: JournalFile | null = null;
  #dictionary = new ShapeDictionary();
  #bytes = 0;
  #previousBytes = 0;
  #snapshotting: Promise<void> | null = null;
  /** Revision of the last commit. */
  #durable = 0;
  #closing = false;
  #failed: Error | null = null;

  private constructor(files: JournalFiles, lock: Lock | null, options: JournalOptions) {
    this.#files = files;
    this.#lock = lock;
    this.#isReadOnly = options.readOnly ?? false;
    this.#compactBytes = options.compactBytes ?? 64 << 20;
    this.#warn = options.onWarning ?? (() => undefined);
  }

  /** Opens the directory exclusively. */
  static async open(directory: string, options: JournalOptions = {}): Promise<JournalStore> {
    checkOptions('JournalStore', options, ['compactBytes', 'durable', 'readOnly', 'onWarning', 'files']);
    const isReadOnly = options.readOnly ?? false;
    const files = options.files ?? directoryFiles(directory, options.durable ?? true, isReadOnly);
    await files.list();
    const lock = options.files === undefined && !isReadOnly ? await takeLock(`${directory}/lock`) : null;
    return new JournalStore(files, lock, options);
  }

  /** A journal that cannot be read is closed, so that it can be opened again once it is repaired. */
  async load(sink: RecordSink): Promise<Loaded> {
    try {
      return await this.#load(sink);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async #load(sink: RecordSink): Promise<Loaded> {
    // Read before the list: the owner of the directory may begin further journals meanwhile.
    const newest = await this.#newest();
    const names = await this.#files.list();
    const mayWrite = !this.#isReadOnly;
    for (const name of names.filter((candidate) => candidate.endsWith('.new') && mayWrite))
      await this.#files.remove(name);
    const snapshots = numbersOf(names, 'snapshot');
    const journals = numbersOf(names, 'journal');
    const start = snapshots.at(-1) ?? 0;
    let head: StateHead = { revision: 0, now: 0, lives: 0 };
    if (snapshots.length > 0) head = this.#readSnapshot(await this.#bytesOf(`snapshot-${start}`), start, sink);
    const kept = journals.filter((number) => number >= start);
    kept.forEach((number, index) => {
      if (number !== (kept[0] as number) + index) throw new Error(`journal-${(kept[0] as number) + index} is missing`);
    });
    if (start > 0 && kept[0] !== start) throw new Error(`journal-${start} is missing`);
    if (newest !== null && (journals.at(-1) ?? -1) < newest)
      throw new Error(`journal-${newest} is missing: it is the newest journal, and has the last commits`);
    if (start === 0 && (kept[0] ?? 0) > 0)
      throw new Error(`snapshot-${kept[0] ?? 0} is missing: journals before it were removed`);
    const files = new Map<number, Buffer>();
    for (const number of kept) files.set(number, await this.#bytesOf(`journal-${number}`));
    for (const [number, bytes] of files) {
      head = this.#readJournal(bytes, number, acceptedBytes(files.get(number + 1)), head, sink);
      this.#bytes += bytes.length;
    }
    this.#number = (journals.at(-1) ?? start - 1) + 1;
    if (mayWrite) {
      // A last journal without commits is replaced, so that starts do not add files; the first journal after a snapshot
      // must stay.
      const last = journals.at(-1);
      if (last !== undefined && this.#commitsOfLast === 0 && (last > start || start === 0)) {
        this.#number = last;
        this.#previousBytes = this.#bytesBeforeLast;
      }
      await this.#begin();
    }
    for (const number of [...journals, ...snapshots].filter((old) => old < start && mayWrite)) {
      if (journals.includes(number)) await this.#files.remove(`journal-${number}`).catch(() => undefined);
      if (snapshots.includes(number)) await this.#files.remove(`snapshot-${number}`).catch(() => undefined);
    }
    return { head, revisions: NO_REVISIONS };
  }

  async list(): Promise<ReadonlyMap<string, string>> {
    throw new Error('an exclusive store has nothing that its engine does not know');
  }

  async read(): Promise<readonly GroupImage[]> {
    throw new Error('an exclusive store has nothing that its engine does not know');
  }

  async commit(batch: Batch): Promise<Committed> {
    if (this.#failed !== null) throw this.#failed;
    if (this.#isReadOnly) throw new Error('the journal is open read-only');
    if (this.#file === null || this.#closing) throw new Error('the journal is not open');
    const payload = encode(batch, this.#dictionary);
    try {
      await this.#write(payload);
      this.#durable = batch.head.revision;
      if (this.#bytes > this.#compactBytes && this.#snapshotting === null) await this.#compact(batch);
    } catch (error) {
      // After a failed write the content of the disk is unknown; only a restart, which reads it, can recover.
      this.#failed = new Error(`the journal failed: ${error instanceof Error ? error.message : String(error)}`);
      throw this.#failed;
    }
    return { ok: true, revisions: NO_REVISIONS };
  }

  /** Resolves when a running snapshot is complete or abandoned. */
  async settled(): Promise<void> {
    await this.#snapshotting;
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#snapshotting;
    await this.#file?.close();
    this.#file = null;
    await this.#lock?.release();
  }

  async #bytesOf(name: string): Promise<Buffer> {
    const { buffer, byteOffset, byteLength } = await this.#files.read(name);
    return Buffer.from(buffer, byteOffset, byteLength);
  }

  /** The number of the newest journal that was begun; null if no file shows it. */
  async #newest(): Promise<number | null> {
    if (!(await this.#files.list()).includes(NEWEST)) return null;
    const payload = firstPayload(await this.#bytesOf(NEWEST));
    if (payload === null)
      throw new Error(`${NEWEST} is damaged: restore it, or remove it if no file of the directory is missing`);
    checkFormat(payload, NEWEST);
    return (JSON.parse(payload.toString()) as { readonly number: number }).number;
  }

  /** Begins a journal; one with the same number, which has no commits, is replaced in one step. */
  async #begin(): Promise<void> {
    const number = this.#number;
    const header = frameOf(Buffer.from(JSON.stringify({ format: FORMAT, number, previousBytes: this.#previousBytes })));
    this.#file = await this.#writeWhole(`journal-${number}`, header);
    this.#dictionary = new ShapeDictionary();
    this.#previousBytes = header.length;
    const newest = await this.#writeWhole(NEWEST, frameOf(Buffer.from(JSON.stringify({ format: FORMAT, number }))));
    await newest.close();
  }

  /** Writes a file that exists with all of its bytes or not at all. */
  async #writeWhole(name: string, bytes: Buffer): Promise<JournalFile> {
    const file = await this.#files.create(`${name}.new`);
    await file.append(bytes);
    await file.sync();
    await this.#files.rename(`${name}.new`, name);
    return file;
  }

  async #write(payload: Buffer): Promise<void> {
    const frame = frameOf(payload);
    await this.#file?.append(frame);
    await this.#file?.sync();
    this.#bytes += frame.length;
    this.#previousBytes += frame.length;
  }

  /** Begins a new journal, and writes a snapshot of everything before it. */
  async #compact(batch: Batch): Promise<void> {
    const old = this.#file;
    this.#number++;
    await this.#begin();
    await old?.close();
    this.#bytes = 0;
    const number = this.#number;
    this.#snapshotting = this.#snapshot(number, batch)
      .catch((error: unknown) =>
        this.#warn(`snapshot-${number}: ${error instanceof Error ? error.message : String(error)}`),
      )
      .finally(() => {
        this.#snapshotting = null;
      });
  }

  async #snapshot(number: number, { head, everything, reached }: Batch): Promise<void> {
    const temporary = `snapshot-${number}.new`;
    const file = await this.#files.create(temporary);
    let count = 0;
    try {
      const dictionary = new ShapeDictionary();
      await file.append(frameOf(Buffer.from(JSON.stringify({ format: FORMAT, number }))));
      for (const slice of slices(everything())) {
        if (this.#closing) throw new Error('the store was closed before the snapshot was complete');
        await file.append(
          frameOf(Buffer.from(slice.map((change) => JSON.stringify(toRecord(change, dictionary))).join('\n'))),
        );
        count += slice.length;
        await nextTurn();
      }
      await file.append(frameOf(Buffer.from(JSON.stringify({ end: true, count, head }))));
      await file.sync();
      // The snapshot also holds decided but uncommitted changes, which must be in the journal before the snapshot may
      // replace older files.
      for (const goal = reached(); this.#durable < goal;) {
        if (this.#closing || this.#failed !== null)
          throw new Error('the store was closed before the snapshot was complete');
        await delay(1);
      }
    } catch (error) {
      await file.close();
      await this.#files.remove(temporary).catch(() => undefined);
      throw error;
    }
    await file.close();
    await this.#files.rename(temporary, `snapshot-${number}`);
    const names = await this.#files.list();
    for (const kind of ['journal', 'snapshot'] as const) {
      for (const old of numbersOf(names, kind).filter((candidate) => candidate < number))
        await this.#files.remove(`${kind}-${old}`);
    }
  }

  #readSnapshot(bytes: Buffer, number: number, sink: RecordSink): StateHead {
    const { payloads, goodBytes } = scanFrames(bytes);
    const [first, ...rest] = payloads;
    const last = rest.pop();
    // A snapshot is renamed to this name only when it is complete: therefore every byte must be valid.
    if (first === undefined || last === undefined || goodBytes < bytes.length)
      throw new Error(`snapshot-${number} is damaged at byte ${goodBytes}`);
    const end = JSON.parse(last.toString().split('\n', 1)[0] ?? '') as {
      readonly end?: true;
      readonly count: number;
      readonly head: StateHead;
    };
    if (end.end !== true) throw new Error(`snapshot-${number} is damaged: its last frame is missing`);
    checkFormat(first, `snapshot-${number}`);
    sink.newDictionary();
    const reader = new RecordReader();
    let count = 0;
    for (const payload of rest) count += reader.readAll(payload, 0, (record) => sink.add(record));
    if (count !== end.count) throw new Error(`snapshot-${number} has ${count} of ${end.count} records`);
    return end.head;
  }

  #readJournal(bytes: Buffer, number: number, accepted: number | null, head: StateHead, sink: RecordSink): StateHead {
    const { payloads, goodBytes, damagedAt } = scanFrames(bytes);
    if (damagedAt !== null)
      throw new Error(`journal-${number} is damaged at byte ${damagedAt}: complete commits follow`);
    if (accepted !== null && goodBytes < accepted)
      throw new Error(
        `journal-${number} is damaged at byte ${goodBytes}: ${accepted} bytes were complete at an earlier start`,
      );
    this.#bytesBeforeLast = this.#previousBytes;
    this.#previousBytes = goodBytes;
    const [first, ...commits] = payloads;
    this.#commitsOfLast = commits.length;
    // A start that crashed before writing its header has acknowledged nothing.
    if (first === undefined) return head;
    checkFormat(first, `journal-${number}`);
    sink.newDictionary();
    let latest = head;
    const reader = new RecordReader();
    for (const payload of commits) {
      const end = endOfLine(payload, 0);
      latest = JSON.parse(payload.toString('utf8', 0, end)) as StateHead;
      reader.readAll(payload, end + 1, (record) => sink.add(record));
    }
    return latest;
  }
}

function encode({ head, changes }: Batch, dictionary: ShapeDictionary): Buffer {
  const { revision, now, lives } = head;
  return Buffer.from(
    [
      JSON.stringify({ revision, now, lives }),
      ...changes.map((change) => JSON.stringify(toRecord(change, dictionary))),
    ].join('\n'),
  );
}

function* slices(changes: Iterable<Change>): Generator<readonly Change[]> {
  let slice: Change[] = [];
  for (const change of changes) {
    slice.push(change);
    if (slice.length < SLICE_RECORDS) continue;
    yield slice;
    slice = [];
  }
  if (slice.length > 0) yield slice;
}

function numbersOf(names: readonly string[], kind: 'journal' | 'snapshot'): readonly number[] {
  return names
    .flatMap((name) => new RegExp(`^${kind}-(\\d+)$`).exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/** The length of the previous journal that was accepted when this one began. */
function acceptedBytes(next: Buffer | undefined): number | null {
  const first = next === undefined ? null : firstPayload(next);
  return first === null ? null : (JSON.parse(first.toString()) as { readonly previousBytes: number }).previousBytes;
}

function checkFormat(payload: Buffer, name: string): void {
  const { format } = JSON.parse(payload.toString()) as { readonly format: number };
  if (format !== FORMAT) throw new Error(`${name}: expected format ${FORMAT}, found ${format}`);
}
