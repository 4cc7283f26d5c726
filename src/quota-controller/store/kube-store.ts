import { randomUUID } from 'node:crypto';
import type { Clock } from '../../host/clock.js';
import {
  type StoredRecord,
  toRecord,
  latestHead,
  type StateHead,
  type Batch,
  type Committed,
  type GroupImage,
  type Loaded,
  type RecordSink,
  type Revision,
  type Store,
} from '../../quota/index.js';
import type { KubeApi } from '../../kube/client.js';
import { NO_GROUP, type Ledger } from './ledger.js';
import { LedgerObjects } from './ledger-objects.js';
import { RecordLog } from './record-log.js';
import { dropCleaned, sealDrafts, sweepSegments } from './segments.js';
import { recordKey, type Edits } from './tail.js';
import { resolvePending, write, type Draft } from './transaction.js';

export interface KubeStoreOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** Longest text of a ledger's tail; default 4,096 characters. */
  readonly tailChars?: number | undefined;
}

/** Size of a ledger: of its object, and together with its segments. */
export interface LedgerSize {
  readonly objectBytes: number;
  readonly totalBytes: number;
  readonly segments: number;
}

/** Revision of a ledger that another process has changed; no resourceVersion equals it. */
const OUTDATED: Revision = 'outdated';

/** How long outcomes of transactions are kept; no process still needs an older one. */
const KEEP_OUTCOMES_MS = 600_000;

/** Remembered reads of a group. */
const MAX_STEPS = 32;

/** The changes that a read of a ledger found since the previous revision. */
interface Step {
  readonly from: Revision;
  readonly records: readonly StoredRecord[];
}

/** A page under construction. */
class PageDraft {
  readonly current: Ledger | null;
  parent: string;
  token: string;
  isDeleted = false;
  readonly children: Map<string, string>;
  readonly #records: RecordLog;
  readonly #edits = new Map<string, StoredRecord>();

  constructor(current: Ledger | null) {
    this.current = current;
    this.parent = current?.page?.parent ?? '';
    this.token = current?.page?.token ?? '';
    this.children = new Map(current?.page?.children);
    this.#records = current?.page?.records ?? RecordLog.empty();
  }

  put(record: StoredRecord): void {
    this.#edits.set(recordKey(record), record);
  }

  /** Does nothing where the page has no such record. */
  remove(record: StoredRecord): void {
    const key = recordKey(record);
    const edit = this.#edits.get(key);
    if (edit === undefined ? this.#records.has(key) : edit.value !== null)
      this.#edits.set(key, { ...record, value: null });
  }

  records(): RecordLog {
    return this.#records.with(this.#edits);
  }
}

/**
 * Stores the state of engines at a Kubernetes API server: one ledger object per group, written with the resourceVersion
 * that was read as precondition. Any number of engines may use it at once. A commit within one group is one write.
 */
export class KubeStore implements Store {
  readonly exclusive = false;
  readonly #objects: LedgerObjects;
  readonly #clock: Clock;
  readonly #tailChars: number | undefined;
  /** Ledgers in the state of the last read or write. */
  readonly #ledgers = new Map<string, Ledger>();
  /** The latest reads of each group that another process wrote, oldest first. */
  readonly #steps = new Map<string, Step[]>();
  #head: StateHead = { revision: 0, now: 0, lives: 0 };

  constructor({ api, clock, tailChars }: KubeStoreOptions) {
    this.#tailChars = tailChars;
    this.#objects = new LedgerObjects(api, clock);
    this.#clock = clock;
  }

  async load(sink: RecordSink): Promise<Loaded> {
    sink.newDictionary();
    for await (const { ledger: found, changes } of this.#objects.list()) {
      const ledger = await resolvePending(this.#objects, found, this.#clock);
      this.#keep(found.group, ledger);
      const records = ledger === found && changes !== null ? changes.values() : (ledger?.page?.records.values() ?? []);
      for (const record of records) if (record.value !== null) sink.add(record);
    }
    const revisions = [...this.#ledgers].filter(([group]) => group !== NO_GROUP);
    return {
      head: this.#head,
      revisions: new Map(revisions.map(([group, { resourceVersion }]) => [group, resourceVersion])),
    };
  }

  async list(): Promise<ReadonlyMap<string, Revision>> {
    const versions = new Map(await this.#objects.versions());
    versions.delete(NO_GROUP);
    return versions;
  }

  async read(groups: readonly string[]): Promise<readonly GroupImage[]> {
    await Promise.all(groups.map((group) => this.#reread(group)));
    return groups.map((name) => this.#image(name));
  }

  async commit(batch: Batch): Promise<Committed> {
    const outdated = [...batch.expected]
      .filter(([group, revision]) => (this.#ledgers.get(group)?.resourceVersion ?? null) !== revision)
      .map(([group]) => group);
    if (outdated.length > 0) return { ok: false, code: 'Conflict', groups: outdated };
    const planned = this.#drafts(batch);
    if (planned.length === 0) return { ok: true, revisions: new Map() };
    const sealing = await sealDrafts(this.#objects, planned, this.#tailChars);
    const drafts = sealing.ok ? sealing.drafts : [];
    const finished = sealing.ok ? await write(this.#objects, drafts) : sealing;
    if (finished.ok) void dropCleaned(this.#objects, drafts, finished.ledgers);
    if (!finished.ok) {
      if (finished.groups.includes(NO_GROUP)) await this.#reread(NO_GROUP);
      return { ok: false, code: 'Conflict', groups: finished.groups.filter((group) => group !== NO_GROUP) };
    }
    const revisions = new Map<string, Revision>();
    for (const { group } of drafts) {
      const ledger = finished.ledgers.get(group);
      this.#steps.delete(group);
      if (ledger === undefined) this.#ledgers.delete(group);
      else this.#keep(group, ledger);
      if (group === NO_GROUP || ledger === null) continue;
      revisions.set(group, ledger?.resourceVersion ?? OUTDATED);
    }
    return { ok: true, revisions };
  }

  /** Size of a group's ledger; null if this store does not know it. */
  sizeOf(group: string): LedgerSize | null {
    const records = this.#ledgers.get(group)?.page?.records;
    if (records === undefined) return null;
    const { segments } = records;
    return { objectBytes: records.text.length, totalBytes: records.length, segments: segments.size };
  }

  /** The latest time in any ledger that this store has read or written; 0 without. */
  get latestTime(): number {
    return this.#head.now;
  }

  /** Completes or aborts unfinished transactions of processes that died. One process should call this periodically. */
  async sweep(now: number): Promise<void> {
    const outcomes = await this.#objects.transactions();
    // The outcomes are read before the ledgers: every ledger that waits for one of them is in the list.
    for (const group of await this.#objects.pending())
      await resolvePending(this.#objects, (await this.#objects.get(group))?.ledger ?? null, this.#clock);
    await sweepSegments(this.#objects, now);
    for (const { name, createdAt } of outcomes)
      if (now - createdAt > KEEP_OUTCOMES_MS) await this.#objects.forget(name);
  }

  async close(): Promise<void> {}

  /** Reads a ledger again, and notes its changes where only changes were read. */
  async #reread(group: string): Promise<void> {
    const known = this.#ledgers.get(group) ?? null;
    const found = await this.#objects.get(group, known);
    const ledger = await resolvePending(this.#objects, found?.ledger ?? null, this.#clock);
    this.#keep(group, ledger);
    const changes: Edits | null = ledger === found?.ledger ? (found?.changes ?? null) : null;
    if (known === null || ledger === null || changes === null) return void this.#steps.delete(group);
    const steps = this.#steps.get(group) ?? [];
    steps.push({ from: known.resourceVersion, records: [...changes.values()] });
    if (steps.length > MAX_STEPS) steps.shift();
    this.#steps.set(group, steps);
  }

  /** The changes of a ledger since a revision, oldest first; null if they are not known any more. */
  #since(group: string, revision: Revision): readonly StoredRecord[] | null {
    if (this.#ledgers.get(group)?.resourceVersion === revision) return [];
    const steps = this.#steps.get(group) ?? [];
    const first = steps.findIndex(({ from }) => from === revision);
    return first < 0 ? null : steps.slice(first).flatMap(({ records }) => records);
  }

  #keep(group: string, ledger: Ledger | null): void {
    if (ledger === null || ledger.page === null) {
      this.#ledgers.delete(group);
      return;
    }
    this.#ledgers.set(group, ledger);
    this.#head = latestHead(this.#head, ledger.page.head);
  }

  #image(name: string): GroupImage {
    const ledger = this.#ledgers.get(name);
    const page = ledger?.page;
    const children = [...(page?.children ?? [])].map(([child, token]): [string, Revision] => {
      const known = this.#ledgers.get(child);
      return [child, known?.page?.token === token ? known.resourceVersion : OUTDATED];
    });
    return {
      name,
      revision: ledger?.resourceVersion ?? null,
      records: { [Symbol.iterator]: () => (page?.records ?? RecordLog.empty()).values() },
      children: new Map(children),
      since: (revision) => this.#since(name, revision),
    };
  }

  /** The pages that a batch changes. */
  #drafts(batch: Batch): readonly Draft[] {
    const pages = new Map<string, PageDraft>();
    const open = (group: string): PageDraft => {
      const known = pages.get(group);
      if (known !== undefined) return known;
      const page = new PageDraft(this.#ledgers.get(group) ?? null);
      pages.set(group, page);
      return page;
    };
    for (const group of batch.expected.keys()) open(group);
    for (const change of batch.changes) {
      const record = toRecord(change, null);
      const key = recordKey(record);
      const home = pages.has(record.group) || this.#ledgers.has(record.group) ? record.group : NO_GROUP;
      if (record.value !== null) {
        // Pods and loans move together with their records; only the new page holds them.
        for (const [group, page] of pages) if (group !== home) page.remove(record);
        open(home).put(record);
      } else if (pages.has(home) || this.#ledgers.get(home)?.page?.records.has(key) === true) open(home).remove(record);
      if (home !== NO_GROUP && this.#ledgers.get(NO_GROUP)?.page?.records.has(key) === true)
        open(NO_GROUP).remove(record);
      if (record.kind === 'group')
        Object.assign(
          open(record.key),
          record.value === null ? { isDeleted: true } : { isDeleted: false, parent: record.value.parent },
        );
    }
    for (const [group, page] of [...pages]) if (page.isDeleted) this.#rescueRecords(group, page, open);
    shareToken(pages);
    const { head } = batch;
    return [...pages].map(([group, page]): Draft => {
      const { current, parent, token, isDeleted, children } = page;
      const next = isDeleted
        ? null
        : {
            group,
            parent,
            token,
            head: latestHead(head, current?.page?.head ?? head),
            children,
            records: page.records(),
          };
      return { group, current, next };
    });
  }

  /** Moves the records that outlive a deleted group to another page. */
  #rescueRecords(group: string, page: PageDraft, open: (group: string) => PageDraft): void {
    const remaining = [...page.records().values()].filter(({ kind, key }) => kind !== 'group' || key !== group);
    if (remaining.length === 0) return;
    const noGroup = open(NO_GROUP);
    for (const record of remaining) noGroup.put(record);
  }
}

/** Gives a common new token to parents and children that are written together. */
function shareToken(pages: ReadonlyMap<string, PageDraft>): void {
  const token = randomUUID().slice(0, 8);
  for (const [group, page] of pages) {
    const parent = group === NO_GROUP || page.parent === '' ? undefined : pages.get(page.parent);
    if (parent === undefined) continue;
    if (page.isDeleted) parent.children.delete(group);
    else parent.children.set(group, token);
    page.token = token;
  }
}
