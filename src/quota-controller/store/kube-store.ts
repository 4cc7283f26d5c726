import { randomUUID } from 'node:crypto';
import type { Clock } from '../../host/clock.js';
import { toRecord, type StoredRecord } from '../../quota/core/record.js';
import { latestHead, type StateHead } from '../../quota/core/restore.js';
import type { Batch, Committed, GroupImage, Loaded, RecordSink, Revision, Store } from '../../quota/store/store.js';
import type { KubeApi } from '../../kube/client.js';
import { NO_GROUP, type Ledger } from './ledger.js';
import { LedgerObjects } from './ledger-objects.js';
import { RecordLog, recordKey, type Edits } from './record-log.js';
import { settled, writeOne, writeTogether, type Draft } from './transaction.js';

export interface KubeStoreOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
}

/** Of a ledger that somebody else has written since: no such resourceVersion exists. */
const OUTDATED: Revision = 'outdated';

/** Outcomes of transactions are kept at least so long: nobody is in the middle of one then. */
const KEEP_OUTCOMES_MS = 600_000;

/** A page that is being written. */
class Writing {
  readonly current: Ledger | null;
  parent: string;
  token: string;
  gone = false;
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

  /** Nothing happens where it has none of that kind and key. */
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
 * Keeps the state of engines at a Kubernetes API server: one ledger object a group, changed on the condition that its
 * resourceVersion is the one that was read. Any number of engines may use it at once. A commit that concerns one group
 * is one write.
 */
export class KubeStore implements Store {
  readonly exclusive = false;
  readonly #objects: LedgerObjects;
  readonly #clock: Clock;
  /** As they were last read or written. */
  readonly #ledgers = new Map<string, Ledger>();
  #head: StateHead = { revision: 0, now: 0, lives: 0 };

  constructor({ api, clock }: KubeStoreOptions) {
    this.#objects = new LedgerObjects(api, clock);
    this.#clock = clock;
  }

  async load(sink: RecordSink): Promise<Loaded> {
    for (const found of await this.#objects.list())
      this.#learn(found.group, await settled(this.#objects, found, this.#clock));
    sink.newDictionary();
    for (const { page } of this.#ledgers.values()) for (const record of page?.records.values() ?? []) sink.add(record);
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
    const news = await Promise.all(groups.map((group) => this.#reread(group)));
    return groups.map((name, index) => this.#image(name, news[index]));
  }

  async commit(batch: Batch): Promise<Committed> {
    const outdated = [...batch.expected]
      .filter(([group, revision]) => (this.#ledgers.get(group)?.resourceVersion ?? null) !== revision)
      .map(([group]) => group);
    if (outdated.length > 0) return { ok: false, code: 'Conflict', groups: outdated };
    const drafts = this.#drafts(batch);
    const [first, ...others] = drafts;
    if (first === undefined) return { ok: true, revisions: new Map() };
    const finished =
      others.length === 0 ? await writeOne(this.#objects, first) : await writeTogether(this.#objects, drafts);
    if (!finished.ok) {
      if (finished.groups.includes(NO_GROUP)) await this.#reread(NO_GROUP);
      return { ok: false, code: 'Conflict', groups: finished.groups.filter((group) => group !== NO_GROUP) };
    }
    const revisions = new Map<string, Revision>();
    for (const { group } of drafts) {
      const ledger = finished.ledgers.get(group);
      if (ledger === undefined) this.#ledgers.delete(group);
      else this.#learn(group, ledger);
      if (group === NO_GROUP || ledger === null) continue;
      revisions.set(group, ledger?.resourceVersion ?? OUTDATED);
    }
    return { ok: true, revisions };
  }

  /** The latest time that a ledger which this store has read or written has, 0 without. */
  get latestTime(): number {
    return this.#head.now;
  }

  /** Ends what engines that died left half done. To be called now and then by one of them. */
  async sweep(now: number): Promise<void> {
    const outcomes = await this.#objects.transactions();
    // In this order: an outcome that is known by now is one that each ledger waiting for it finds below.
    for (const found of await this.#objects.list())
      if (found.pending !== null) await settled(this.#objects, found, this.#clock);
    for (const { name, createdAt } of outcomes)
      if (now - createdAt > KEEP_OUTCOMES_MS) await this.#objects.forget(name);
  }

  async close(): Promise<void> {}

  /** Reads a ledger anew; returns what is new in it, where that is all that was read. */
  async #reread(group: string): Promise<GroupImage['since']> {
    const known = this.#ledgers.get(group) ?? null;
    const found = await this.#objects.get(group, known);
    const ledger = await settled(this.#objects, found?.ledger ?? null, this.#clock);
    this.#learn(group, ledger);
    const news: Edits | null = ledger === found?.ledger ? (found?.news ?? null) : null;
    return known === null || news === null
      ? undefined
      : { revision: known.resourceVersion, records: [...news.values()] };
  }

  #learn(group: string, ledger: Ledger | null): void {
    if (ledger === null || ledger.page === null) {
      this.#ledgers.delete(group);
      return;
    }
    this.#ledgers.set(group, ledger);
    this.#head = latestHead(this.#head, ledger.page.head);
  }

  #image(name: string, since: GroupImage['since']): GroupImage {
    const ledger = this.#ledgers.get(name);
    const page = ledger?.page;
    const children = [...(page?.children ?? [])].map(([child, token]): [string, Revision] => {
      const known = this.#ledgers.get(child);
      return [child, known?.page?.token === token ? known.resourceVersion : OUTDATED];
    });
    return {
      name,
      revision: ledger?.resourceVersion ?? null,
      records: [...(page?.records.values() ?? [])],
      children: new Map(children),
      since,
    };
  }

  /** The pages that a batch leads to. */
  #drafts(batch: Batch): readonly Draft[] {
    const writings = new Map<string, Writing>();
    const open = (group: string): Writing => {
      const known = writings.get(group);
      if (known !== undefined) return known;
      const writing = new Writing(this.#ledgers.get(group) ?? null);
      writings.set(group, writing);
      return writing;
    };
    for (const group of batch.expected.keys()) open(group);
    for (const change of batch.changes) {
      const record = toRecord(change, null);
      const key = recordKey(record);
      const home = writings.has(record.group) || this.#ledgers.has(record.group) ? record.group : NO_GROUP;
      if (record.value !== null) {
        // Pods and loans move with their records, and say only where they are now.
        for (const [group, writing] of writings) if (group !== home) writing.remove(record);
        open(home).put(record);
      } else if (writings.has(home) || this.#ledgers.get(home)?.page?.records.has(key) === true)
        open(home).remove(record);
      if (home !== NO_GROUP && this.#ledgers.get(NO_GROUP)?.page?.records.has(key) === true)
        open(NO_GROUP).remove(record);
      if (record.kind === 'group')
        Object.assign(
          open(record.key),
          record.value === null ? { gone: true } : { gone: false, parent: record.value.parent },
        );
    }
    for (const [group, writing] of [...writings]) if (writing.gone) this.#empty(group, writing, open);
    tie(writings);
    const { head } = batch;
    return [...writings].map(([group, writing]): Draft => {
      const { current, parent, token, gone, children } = writing;
      const next = gone
        ? null
        : {
            group,
            parent,
            token,
            head: latestHead(head, current?.page?.head ?? head),
            children,
            records: writing.records(),
          };
      return { group, current, next };
    });
  }

  /** What outlives a group goes on elsewhere. */
  #empty(group: string, writing: Writing, open: (group: string) => Writing): void {
    const left = [...writing.records().values()].filter(({ kind, key }) => kind !== 'group' || key !== group);
    if (left.length === 0) return;
    const elsewhere = open(NO_GROUP);
    for (const record of left) elsewhere.put(record);
  }
}

/** Gives parents and children that are written together a token of this moment. */
function tie(writings: ReadonlyMap<string, Writing>): void {
  const token = randomUUID().slice(0, 8);
  for (const [group, writing] of writings) {
    const above = group === NO_GROUP || writing.parent === '' ? undefined : writings.get(writing.parent);
    if (above === undefined) continue;
    if (writing.gone) above.children.delete(group);
    else above.children.set(group, token);
    writing.token = token;
  }
}
