import { absorb } from '../core/absorb.js';
import { ShapeBook, type StoredRecord } from '../core/record.js';
import type { QuotaState } from '../core/state.js';
import type { GroupImage, Revision, Store } from './store.js';

/**
 * Brings some groups of a state to what the store has now, and with them the groups above and below that changed too: what a group may
 * admit depends on what its children hold, and in an elastic tree on the groups above. `revisions` is brought up to date.
 */
export async function catchUp(state: QuotaState, revisions: Map<string, Revision>, store: Store, names: readonly string[]): Promise<void> {
  const images = new Map<string, GroupImage>();
  for (let wanted = [...new Set(names)]; wanted.length > 0; ) {
    for (const image of await store.read(wanted)) images.set(image.name, image);
    wanted = [...new Set(wanted.flatMap((name) => relatives(state, revisions, images.get(name))))].filter((name) => !images.has(name));
  }
  const order = [...images.values()].sort((a, b) => depthOf(a, images) - depthOf(b, images));
  // Leaves go before their parents; new parents come before their children.
  for (const image of [...order].reverse()) if (image.revision === null) remove(state, revisions, image.name);
  for (const image of order) if (image.revision !== null) put(state, revisions, image, image.revision);
}

/** Brings a whole state to what the store has now. */
export async function catchUpAll(state: QuotaState, revisions: Map<string, Revision>, store: Store): Promise<void> {
  const listed = await store.list();
  const changed = [...listed].filter(([name, revision]) => revisions.get(name) !== revision).map(([name]) => name);
  const gone = [...revisions.keys()].filter((name) => !listed.has(name));
  if (changed.length + gone.length > 0) await catchUp(state, revisions, store, [...changed, ...gone]);
}

function relatives(state: QuotaState, revisions: ReadonlyMap<string, Revision>, image: GroupImage | undefined): readonly string[] {
  if (image === undefined) return [];
  const changed = [...image.children].filter(([name, revision]) => revisions.get(name) !== revision).map(([name]) => name);
  const gone: string[] = [];
  state.group(image.name)?.children.forEach((_, name) => {
    if (!image.children.has(name)) gone.push(name);
  });
  const parent = parentOf(image) ?? state.group(image.name)?.parent ?? '';
  return [...changed, ...gone, ...(parent === '' ? [] : [parent])];
}

function parentOf(image: GroupImage): string | null {
  for (const record of image.records) if (record.kind === 'group' && record.value !== null) return record.value.parent;
  return null;
}

function depthOf(image: GroupImage, images: ReadonlyMap<string, GroupImage>): number {
  let depth = 0;
  for (let at: GroupImage | undefined = image; at !== undefined && depth < images.size; at = images.get(parentOf(at) ?? '')) depth++;
  return depth;
}

function remove(state: QuotaState, revisions: Map<string, Revision>, name: string): void {
  revisions.delete(name);
  absorb(state, { kind: 'group', key: name, group: name, value: null }, new ShapeBook());
}

const ORDER: readonly StoredRecord['kind'][] = ['group', 'workload', 'reservation', 'pod', 'loan'];

function put(state: QuotaState, revisions: Map<string, Revision>, image: GroupImage, revision: Revision): void {
  if (revisions.get(image.name) === revision) return;
  const book = new ShapeBook();
  const there = new Set(image.records.map(({ kind, key }) => `${kind} ${key}`));
  for (const record of mineOf(state, image.name)) if (!there.has(`${record.kind} ${record.key}`)) absorb(state, record, book);
  for (const kind of ORDER) for (const record of image.records) if (record.kind === kind) absorb(state, record, book);
  revisions.set(image.name, revision);
}

/** What the state has of a group, as records of its removal. */
function mineOf(state: QuotaState, name: string): readonly StoredRecord[] {
  const group = state.group(name);
  if (group === undefined) return [];
  const records: StoredRecord[] = [];
  group.workloads.forEach(state.workloads, ({ key }) => records.push({ kind: 'workload', key, group: name, value: null }));
  group.reserved.forEach((_, key) => records.push({ kind: 'reservation', key, group: name, value: null }));
  group.pods.forEach((_, key) => records.push({ kind: 'pod', key, group: name, value: null }));
  state.loans.forEach((loan, key) => {
    if (loan.borrower === name) records.push({ kind: 'loan', key, group: name, value: null });
  });
  return records;
}
