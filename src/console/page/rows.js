import { marks } from './colours.js';

/** The field by which rows of a table replace each other. */
const KEY = { nodes: 'name', pods: 'uid', groups: 'name', shares: 'name', events: 'uid', claims: 'uid' };

/** The resources that a reader must be allowed to list to see a table. */
const LISTED = {
  nodes: 'nodes',
  pods: 'pods of a namespace with GPUs',
  groups: 'bizgroupresourcequotas of quota.gpu-manager.io',
  shares: 'consumers and allocations of quota.gpu-manager.io',
  events: 'events of a namespace with events of gpu-manager',
  claims: 'resource claims of a namespace with such claims',
};

/** The data of the cluster that this page has received: rows by key, and the pods of each node. */
export class Rows {
  nodes = new Map();
  pods = new Map();
  groups = new Map();
  shares = new Map();
  events = new Map();
  claims = new Map();
  /** Folded events that the reader has opened. */
  openedEvents = new Set();
  /** Tables that this reader may list. */
  tables = new Set();
  console = null;
  #podsOf = new Map();
  /** By node: the classes of colour and texture of its pods, made when they are asked for. */
  #marksOf = new Map();

  /** Why a view has no rows, as a sentence; null if it has, or may have. */
  absenceOf(table) {
    if (this.console?.absent[table] !== undefined) return this.console.absent[table];
    return this.tables.has(table) ? null : `You may not list ${LISTED[table]}.`;
  }

  /** Replaces everything. */
  replace({ tables, rows }) {
    this.tables = new Set(tables);
    for (const [table, list] of Object.entries(rows))
      if (table in KEY) this[table] = new Map(list.map((row) => [row[KEY[table]], row]));
    this.#podsOf = new Map();
    this.#marksOf = new Map();
    for (const pod of this.pods.values()) this.#place(pod);
  }

  /** Takes in what changed; returns the names of the nodes whose picture changed. */
  change(changes) {
    const touched = new Set();
    for (const [table, { set, gone }] of Object.entries(changes)) {
      if (!(table in KEY)) continue;
      const rows = this[table];
      const keys = [...gone, ...set.map((row) => row[KEY[table]])];
      if (table === 'nodes') for (const key of keys) touched.add(key);
      if (table === 'pods')
        for (const key of keys) {
          const before = rows.get(key);
          if (before?.node === undefined) continue;
          this.#podsOf.get(before.node)?.delete(key);
          touched.add(before.node);
        }
      for (const key of gone) rows.delete(key);
      for (const row of set) {
        rows.set(row[KEY[table]], row);
        if (table === 'pods') {
          this.#place(row);
          if (row.node !== undefined) touched.add(row.node);
        }
      }
    }
    for (const node of touched) this.#marksOf.delete(node);
    return touched;
  }

  podsOn(node) {
    return [...(this.#podsOf.get(node)?.values() ?? [])];
  }

  /** Classes of colour and texture of a pod: on each GPU, pods differ. */
  markOf(pod) {
    if (pod.node === undefined) return marksOf([pod]).get(pod.uid);
    if (!this.#marksOf.has(pod.node)) this.#marksOf.set(pod.node, marksOf(this.podsOn(pod.node)));
    return this.#marksOf.get(pod.node).get(pod.uid);
  }

  waiting() {
    return [...this.pods.values()].filter(({ state }) => state === 'waiting' || state === 'refused');
  }

  /** The pods that name a claim, in its namespace. */
  podsOfClaim({ namespace, name }) {
    return [...this.pods.values()].filter((pod) => pod.namespace === namespace && pod.claims?.includes(name) === true);
  }

  /** The claims that a pod names; without UID where this reader sees none of that name. */
  claimsOfPod({ namespace, claims = [] }) {
    return claims.map(
      (name) =>
        [...this.claims.values()].find((claim) => claim.namespace === namespace && claim.name === name) ?? { name },
    );
  }

  #place(pod) {
    if (pod.node === undefined) return;
    const pods = this.#podsOf.get(pod.node) ?? new Map();
    pods.set(pod.uid, pod);
    this.#podsOf.set(pod.node, pods);
  }
}

/** The marks of the pods of one node, in the order in which they came to it. */
function marksOf(pods) {
  const age = ({ state, sinceMs = 0 }) => (state === 'ending' ? 0 : sinceMs);
  return marks(
    [...pods]
      .sort((a, b) => age(a) - age(b) || (a.uid < b.uid ? -1 : 1))
      .map(({ uid, namespace, name, slices }) => ({
        id: uid,
        name: `${namespace}/${name}`,
        gpus: [...new Set(slices.flatMap(({ gpu }) => gpu ?? []))],
      })),
  );
}

/** The words of a filter, in lower case. */
export function wordsOf(text) {
  return text
    .toLowerCase()
    .split(/\s+/u)
    .filter((word) => word !== '');
}

export function matches(words, text) {
  return words.every((word) => text.includes(word));
}

/** Node names and the like in the order that people expect: node-2 before node-10. */
export const byName = new Intl.Collator('en', { numeric: true }).compare;
