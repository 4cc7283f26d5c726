import { applyRecord } from '../core/records/apply-record.js';
import type { Group } from '../core/state/group.js';
import type { GroupRecord, StoredRecord } from '../core/records/record.js';
import { toRecord } from '../core/records/record-format.js';
import { ShapeDictionary } from '../core/records/shape-dictionary.js';
import type { QuotaState } from '../core/state/state.js';
import type { GroupImage, Revision, Store } from './store.js';

/** Adds groups to the keys of a caller; false if another batch is changing one of them. */
export type AcquireKeys = (groups: readonly string[]) => boolean;

/**
 * Updates groups of a state from the store, together with changed relatives: a group's room depends on its children,
 * and in an elastic tree on its ancestors. Also updates `revisions`.
 *
 * The groups must be locked by the caller; `acquire` adds further ones. Returns null on success. If `acquire` fails,
 * nothing was changed and the result names the needed groups.
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
  // Leaves are deleted before their parents, and parents are added before their children.
  for (const image of [...order].reverse()) if (image.revision === null) remove(state, revisions, image.name);
  for (const image of order) if (image.revision !== null) put(state, revisions, image, image.revision);
  return null;
}

/** Groups whose revision in the store differs from the known one. */
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
  const gone = (known?.children ?? []).filter((name) => !image.children.has(name));
  const written = groupRecordOf(image);
  const parent = written?.parent ?? known?.parent ?? '';
  return [
    ...changed,
    ...gone,
    ...(parent === '' || (known !== undefined && written !== null && !affectsParent(known, written)) ? [] : [parent]),
  ];
}

/** Whether a group's record differs in more than the group and its own workloads. */
function affectsParent(known: Group, written: GroupRecord): boolean {
  if (
    known.mode === 'elastic' ||
    written.mode === 'elastic' ||
    known.life !== written.life ||
    known.parent !== written.parent
  )
    return true;
  const before = toRecord({ kind: 'group', key: known.name, group: known.name, value: known }, null)
    .value as GroupRecord;
  const quotaOf = ({ hard, budgets }: GroupRecord): string =>
    JSON.stringify([hard, budgets.map(({ key, listed, hard: budget }) => [key, listed, budget])]);
  return quotaOf(before) !== quotaOf(written);
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
  const changed = known === undefined ? null : (image.since?.(known) ?? null);
  if (changed !== null) {
    const records = [...new Map(changed.map((record) => [`${record.kind} ${record.key}`, record])).values()];
    for (const record of records)
      if (record.value === null && isMine(state, image.name, record))
        applyRecord(state, { ...record, group: image.name }, dictionary);
    for (const kind of ORDER)
      for (const record of records)
        if (record.kind === kind && record.value !== null) applyRecord(state, record, dictionary);
    return;
  }
  const written = [...image.records];
  const there = new Set(written.map(({ kind, key }) => `${kind} ${key}`));
  for (const record of mineOf(state, image.name))
    if (!there.has(`${record.kind} ${record.key}`)) applyRecord(state, record, dictionary);
  for (const kind of ORDER)
    for (const record of written) if (record.kind === kind) applyRecord(state, record, dictionary);
}

/** Whether a record still belongs to a group; it may have moved to another one. */
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

/** The state's records of a group, as deletions. */
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
