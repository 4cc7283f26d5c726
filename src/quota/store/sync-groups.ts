import { applyRecord } from '../core/apply-record.js';
import type { Group } from '../core/group.js';
import { ShapeDictionary, toRecord, type GroupRecord, type StoredRecord } from '../core/record.js';
import type { QuotaState } from '../core/state.js';
import type { GroupImage, Revision, Store } from './store.js';

/** Takes more groups for whoever follows; false where somebody else is changing one of them. */
export type AcquireKeys = (groups: readonly string[]) => boolean;

/**
 * Brings some groups of a state to what the store has now, and with them the groups above and below that changed too:
 * what a group may admit depends on what its children hold, and in an elastic tree on the groups above. `revisions` is
 * brought up to date.
 *
 * Nobody else may change the groups meanwhile: those that turn out to be needed as well are claimed first. Null when
 * all is done; where a claim failed, nothing was, and the answer is the groups that were needed.
 */
export async function syncGroups(
  state: QuotaState,
  revisions: Map<string, Revision>,
  store: Store,
  names: readonly string[],
  acquire: AcquireKeys,
): Promise<readonly string[] | null> {
  const images = new Map<string, GroupImage>();
  for (let wanted = [...new Set(names)]; wanted.length > 0;) {
    if (!acquire(wanted)) return wanted;
    for (const image of await store.read(wanted)) images.set(image.name, image);
    wanted = [...new Set(wanted.flatMap((name) => relatives(state, revisions, images.get(name))))].filter(
      (name) => !images.has(name),
    );
  }
  const order = [...images.values()].sort((a, b) => depthOf(a, images) - depthOf(b, images));
  // Leaves go before their parents; new parents come before their children.
  for (const image of [...order].reverse()) if (image.revision === null) remove(state, revisions, image.name);
  for (const image of order) if (image.revision !== null) put(state, revisions, image, image.revision);
  return null;
}

/** Groups of which a store has something else than what is known of them. */
export async function changedIn(revisions: ReadonlyMap<string, Revision>, store: Store): Promise<readonly string[]> {
  const listed = await store.list();
  const changed = [...listed].filter(([name, revision]) => revisions.get(name) !== revision).map(([name]) => name);
  return [...changed, ...[...revisions.keys()].filter((name) => !listed.has(name))];
}

function relatives(
  state: QuotaState,
  revisions: ReadonlyMap<string, Revision>,
  image: GroupImage | undefined,
): readonly string[] {
  if (image === undefined) return [];
  const known = state.group(image.name);
  const changed = [...image.children]
    .filter(([name, revision]) => revisions.get(name) !== revision)
    .map(([name]) => name);
  const gone: string[] = [];
  known?.children.forEach((_, name) => {
    if (!image.children.has(name)) gone.push(name);
  });
  const written = groupRecordOf(image);
  const parent = written?.parent ?? known?.parent ?? '';
  return [
    ...changed,
    ...gone,
    ...(parent === '' || (known !== undefined && written !== null && !isParentsMatter(known, written)) ? [] : [parent]),
  ];
}

/** Whether what a group's record says is not all between the group and its workloads. */
function isParentsMatter(known: Group, written: GroupRecord): boolean {
  if (
    known.mode === 'elastic' ||
    written.mode === 'elastic' ||
    known.life !== written.life ||
    known.parent !== written.parent
  )
    return true;
  const before = toRecord({ kind: 'group', key: known.name, group: known.name, value: known }, null)
    .value as GroupRecord;
  const taken = ({ hard, budgets }: GroupRecord): string =>
    JSON.stringify([hard, budgets.map(({ key, listed, hard: budget }) => [key, listed, budget])]);
  return taken(before) !== taken(written);
}

function groupRecordOf(image: GroupImage): GroupRecord | null {
  for (const record of image.records) if (record.kind === 'group' && record.key === image.name) return record.value;
  return null;
}

function parentOf(image: GroupImage): string | null {
  return groupRecordOf(image)?.parent ?? null;
}

function depthOf(image: GroupImage, images: ReadonlyMap<string, GroupImage>): number {
  let depth = 0;
  for (
    let at: GroupImage | undefined = image;
    at !== undefined && depth < images.size;
    at = images.get(parentOf(at) ?? '')
  )
    depth++;
  return depth;
}

function remove(state: QuotaState, revisions: Map<string, Revision>, name: string): void {
  revisions.delete(name);
  applyRecord(state, { kind: 'group', key: name, group: name, value: null }, new ShapeDictionary());
}

const ORDER: readonly StoredRecord['kind'][] = ['group', 'workload', 'reservation', 'pod', 'loan'];

function put(state: QuotaState, revisions: Map<string, Revision>, image: GroupImage, revision: Revision): void {
  const known = revisions.get(image.name);
  if (known === revision) return;
  revisions.set(image.name, revision);
  const dictionary = new ShapeDictionary();
  if (known !== undefined && image.since?.revision === known) {
    const { records } = image.since;
    for (const record of records)
      if (record.value === null && isMine(state, image.name, record))
        applyRecord(state, { ...record, group: image.name }, dictionary);
    for (const kind of ORDER)
      for (const record of records)
        if (record.kind === kind && record.value !== null) applyRecord(state, record, dictionary);
    return;
  }
  const there = new Set(image.records.map(({ kind, key }) => `${kind} ${key}`));
  for (const record of mineOf(state, image.name))
    if (!there.has(`${record.kind} ${record.key}`)) applyRecord(state, record, dictionary);
  for (const kind of ORDER)
    for (const record of image.records) if (record.kind === kind) applyRecord(state, record, dictionary);
}

/** Whether something stands in a group still: what left one may be in another already. */
function isMine(state: QuotaState, name: string, { kind, key }: StoredRecord): boolean {
  switch (kind) {
    case 'group':
      return false;
    case 'workload':
      return state.workloads.get(key)?.group === name;
    case 'reservation':
      return state.group(name)?.reserved.has(key) === true;
    case 'pod':
      return state.group(name)?.pods.has(key) === true;
    case 'loan':
      return state.loans.get(key)?.borrower === name;
  }
}

/** What the state has of a group, as records of its removal. */
function mineOf(state: QuotaState, name: string): readonly StoredRecord[] {
  const group = state.group(name);
  if (group === undefined) return [];
  const records: StoredRecord[] = [];
  group.workloads.forEach(state.workloads, ({ key }) =>
    records.push({ kind: 'workload', key, group: name, value: null }),
  );
  group.reserved.forEach((_, key) => records.push({ kind: 'reservation', key, group: name, value: null }));
  group.pods.forEach((_, key) => records.push({ kind: 'pod', key, group: name, value: null }));
  state.loans.forEach((loan, key) => {
    if (loan.borrower === name) records.push({ kind: 'loan', key, group: name, value: null });
  });
  return records;
}
