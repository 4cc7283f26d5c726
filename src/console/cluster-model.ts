import { betterAgent, type AgentPod } from '../kube/agent-pods.js';
import { nodeRow, type NodeFacts } from './node-row.js';
import type { NodeRow, PodRow, Tables } from './rows.js';

export type TableName = keyof Tables;

export const TABLE_NAMES: readonly TableName[] = ['nodes', 'pods'];

/** A row with the key by which browsers replace it. */
export interface Keyed<T> {
  readonly key: string;
  /** Namespace whose readers may see it; null for a row of the cluster. */
  readonly namespace: string | null;
  /** Null: the row is gone. */
  readonly row: T | null;
}

export type Changes = { readonly [name in TableName]: readonly Keyed<Tables[name]>[] };

type Rows = { readonly [name in TableName]: Map<string, Keyed<Tables[name]>> };

/**
 * What the console knows of the cluster, as rows. Pure: watches put objects in, and the feed takes rows and changes
 * out.
 */
export class ClusterModel {
  readonly #rows = tables(() => new Map()) as Rows;
  #changed = tables(() => new Map()) as Rows;
  readonly #nodes = new Map<string, NodeFacts>();
  /** UIDs of pods by node. */
  readonly #podsOf = new Map<string, Set<string>>();
  /** Agents by node, and there by namespace and name of their pods. */
  readonly #agents = new Map<string, Map<string, AgentPod>>();
  /** Nodes whose rows are computed again when they are asked for. */
  #stale = new Set<string>();

  /** A node, or null for one that is gone or has no GPUs. */
  setNode(name: string, node: NodeFacts | null): void {
    if (node === null) this.#nodes.delete(name);
    else this.#nodes.set(name, node);
    this.#stale.add(name);
  }

  setPod(uid: string, pod: PodRow | null): void {
    const before = this.#rows.pods.get(uid)?.row ?? null;
    this.set('pods', uid, pod?.namespace ?? null, pod);
    for (const node of new Set([before?.node, pod?.node])) {
      if (node === undefined) continue;
      const uids = this.#podsOf.get(node) ?? new Set();
      if (node === pod?.node) uids.add(uid);
      else uids.delete(uid);
      if (uids.size > 0) this.#podsOf.set(node, uids);
      else this.#podsOf.delete(node);
      this.#stale.add(node);
    }
  }

  setAgent(agent: AgentPod, isGone = false): void {
    const { node, namespace, name } = agent;
    const had = this.#agents.size > 0;
    const pods = this.#agents.get(node) ?? new Map<string, AgentPod>();
    if (isGone) pods.delete(`${namespace}/${name}`);
    else pods.set(`${namespace}/${name}`, agent);
    if (pods.size > 0) this.#agents.set(node, pods);
    else this.#agents.delete(node);
    for (const stale of had === this.#agents.size > 0 ? [node] : this.#nodes.keys()) this.#stale.add(stale);
  }

  /** The agent of a node; null without a pod of one. */
  agentOf(node: string): AgentPod | null {
    return [...(this.#agents.get(node)?.values() ?? [])].reduce<AgentPod | null>(
      (first, second) => (first === null ? second : betterAgent(first, second)),
      null,
    );
  }

  /** Adds or replaces a row; null removes it. */
  set<N extends TableName>(table: N, key: string, namespace: string | null, row: Tables[N] | null): void {
    const rows = this.#rows[table] as Map<string, Keyed<Tables[N]>>;
    const before = rows.get(key);
    if (before === undefined && row === null) return;
    // Readers of a row that is gone are those that saw it.
    const keyed = { key, namespace: row === null ? (before?.namespace ?? null) : namespace, row };
    if (row === null) rows.delete(key);
    else rows.set(key, keyed);
    (this.#changed[table] as Map<string, Keyed<Tables[N]>>).set(key, keyed);
  }

  node(name: string): NodeFacts | null {
    return this.#nodes.get(name) ?? null;
  }

  pod(uid: string): PodRow | null {
    return this.#rows.pods.get(uid)?.row ?? null;
  }

  podsOn(node: string): readonly PodRow[] {
    return [...(this.#podsOf.get(node) ?? [])].flatMap((uid) => this.#rows.pods.get(uid)?.row ?? []);
  }

  /** Namespaces with rows. */
  namespaces(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const name of TABLE_NAMES)
      for (const { namespace } of this.#rows[name].values()) if (namespace !== null) found.add(namespace);
    return found;
  }

  /** All rows. */
  all(): Changes {
    this.#refreshNodes();
    return tables((name) => [...this.#rows[name].values()]) as Changes;
  }

  /** Rows that changed since the last call; null if none did. */
  takeChanges(): Changes | null {
    this.#refreshNodes();
    if (TABLE_NAMES.every((name) => this.#changed[name].size === 0)) return null;
    const taken = this.#changed;
    this.#changed = tables(() => new Map()) as Rows;
    return tables((name) => [...taken[name].values()]) as Changes;
  }

  #refreshNodes(): void {
    for (const name of this.#stale) this.set('nodes', name, null, this.#nodeRow(name));
    this.#stale = new Set();
  }

  #nodeRow(name: string): NodeRow | null {
    const node = this.#nodes.get(name);
    if (node === undefined) return null;
    return nodeRow(
      node,
      this.podsOn(name).flatMap((pod) => (pod.state === 'refused' ? [] : pod.slices)),
      this.#agents.size === 0 ? 'unknown' : this.agentOf(name),
    );
  }
}

function tables<T>(of: (name: TableName) => T): Record<TableName, T> {
  return Object.fromEntries(TABLE_NAMES.map((name) => [name, of(name)])) as Record<TableName, T>;
}
