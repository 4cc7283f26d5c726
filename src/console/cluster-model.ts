import { isDeepStrictEqual } from 'node:util';
import { deviceName, poolName } from '../gpu/claims/names.js';
import type { AllocationResult } from '../gpu/claims/resource-claim.js';
import { betterAgent, type AgentPod } from '../kube/agent-pods.js';
import type { AllocationObject } from '../kube/quota/allocation-object.js';
import type { ConsumerObject } from '../kube/quota/consumer-object.js';
import type { NodeUse } from './node-use.js';
import { claimRow, devicesOf, slicesOfClaim, type ClaimFacts } from './claim-row.js';
import { nodeRow, type NodeFacts } from './node-row.js';
import type { ClaimDevice, EventRow, NodeRow, PodRow, Tables } from './rows.js';
import { shareRow, type ShareFacts } from './share-row.js';

export type TableName = keyof Tables;

export const TABLE_NAMES: readonly TableName[] = ['nodes', 'pods', 'groups', 'shares', 'events', 'claims'];

/** The newest events of the cluster that are kept: a browser gets all that its reader may see. */
export const MAX_EVENTS = 2_000;

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
 * The console's view of the cluster, as rows. Pure: watches put objects in, and the feed takes rows and changes out.
 * Rows that depend on several objects are computed when they are asked for.
 */
export class ClusterModel {
  readonly #rows = tables(() => new Map()) as Rows;
  #changed = tables(() => new Map()) as Rows;
  readonly #nodes = new Map<string, NodeFacts>();
  /** Nodes by the names of their pools of devices. */
  readonly #nodeOfPool = new Map<string, string>();
  /** Pods by UID, without the slices of their claims. */
  readonly #pods = new Map<string, PodRow>();
  /** UIDs of pods by node. */
  readonly #podsOf = new Index();
  /** Agents by node, and there by namespace and name of their pods. */
  readonly #agents = new Map<string, Map<string, AgentPod>>();
  /** UIDs of pods by the claims that they name. */
  readonly #podsOfClaim = new Index();
  /** Claims by namespace and name. */
  readonly #claims = new Map<string, ClaimFacts>();
  /** Claims by the pools of their devices. */
  readonly #claimsOfPool = new Index();
  readonly #shares = new Map<string, ShareFacts>();
  /** By node. */
  readonly #uses = new Map<string, NodeUse>();
  /** Nodes, pods by UID, and claims whose rows are computed again when they are asked for. */
  #stale = { nodes: new Set<string>(), pods: new Set<string>(), claims: new Set<string>() };

  /** A node, or null for one that is gone or has no GPUs. */
  setNode(name: string, node: NodeFacts | null): void {
    const pool = poolName(name);
    if (node === null) {
      this.#nodes.delete(name);
      this.#uses.delete(name);
      this.#nodeOfPool.delete(pool);
    } else {
      this.#nodes.set(name, node);
      this.#nodeOfPool.set(pool, name);
    }
    this.#stale.nodes.add(name);
    for (const claim of this.#claimsOfPool.of(pool)) this.#spoilClaim(claim);
  }

  /** A pod with GPUs or claims, or null for one that is gone. */
  setPod(uid: string, pod: PodRow | null): void {
    const before = this.#pods.get(uid) ?? null;
    if (pod === null) this.#pods.delete(uid);
    else this.#pods.set(uid, pod);
    for (const { node } of [before, pod].flatMap((one) => one ?? []))
      if (node !== undefined) this.#stale.nodes.add(node);
    this.#podsOf.move(uid, nodesOf(before), nodesOf(pod));
    const [old, now] = [claimKeysOf(before), claimKeysOf(pod)];
    this.#podsOfClaim.move(uid, old, now);
    for (const claim of [...old, ...now]) this.#stale.claims.add(claim);
    this.#stale.pods.add(uid);
  }

  /** A claim of this driver, or null for one that is gone. */
  setClaim(namespace: string, name: string, claim: ClaimFacts | null): void {
    const key = claimKey(namespace, name);
    const before = this.#claims.get(key) ?? null;
    if (claim === null) this.#claims.delete(key);
    else this.#claims.set(key, claim);
    if (before !== null && before.uid !== claim?.uid) this.set('claims', before.uid, namespace, null);
    const [old, now] = [poolsOf(before), poolsOf(claim)];
    this.#claimsOfPool.move(key, old, now);
    for (const pool of [...old, ...now]) {
      const node = this.#nodeOfPool.get(pool);
      if (node !== undefined) this.#stale.nodes.add(node);
    }
    this.#spoilClaim(key);
  }

  /** The use of a node's GPUs; null if it is not known. */
  setUse(name: string, use: NodeUse | null): void {
    const before = this.#uses.get(name) ?? null;
    if (isDeepStrictEqual(before, use)) return;
    if (use === null) this.#uses.delete(name);
    else this.#uses.set(name, use);
    if (this.#nodes.has(name)) this.#stale.nodes.add(name);
    for (const uid of this.#podsOf.of(name))
      if (!isDeepStrictEqual(before?.pods.get(uid), use?.pods.get(uid))) this.#stale.pods.add(uid);
  }

  /** Names of the nodes with GPUs. */
  nodeNames(): readonly string[] {
    return [...this.#nodes.keys()];
  }

  setConsumer(name: string, consumer: ConsumerObject | null): void {
    this.#setShare(name, { consumer, allocation: this.#shares.get(name)?.allocation ?? null });
  }

  setAllocation(name: string, allocation: AllocationObject | null): void {
    this.#setShare(name, { consumer: this.#shares.get(name)?.consumer ?? null, allocation });
  }

  /** An event, or null for one that has expired. Only the newest are kept. */
  setEvent(uid: string, event: EventRow | null): void {
    const rows = this.#rows.events;
    if (event !== null && !rows.has(uid) && rows.size >= MAX_EVENTS) {
      const oldest = [...rows.values()].flatMap(({ row }) => row ?? []).reduce((a, b) => (b.atMs < a.atMs ? b : a));
      if (oldest.atMs >= event.atMs) return;
      this.set('events', oldest.uid, null, null);
    }
    this.set('events', uid, event?.namespace ?? null, event);
  }

  setAgent(agent: AgentPod, isGone = false): void {
    const { node, namespace, name } = agent;
    const had = this.#agents.size > 0;
    const pods = this.#agents.get(node) ?? new Map<string, AgentPod>();
    if (isGone) pods.delete(`${namespace}/${name}`);
    else pods.set(`${namespace}/${name}`, agent);
    if (pods.size > 0) this.#agents.set(node, pods);
    else this.#agents.delete(node);
    for (const stale of had === this.#agents.size > 0 ? [node] : this.#nodes.keys()) this.#stale.nodes.add(stale);
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
    this.#refresh();
    return this.#rows.pods.get(uid)?.row ?? null;
  }

  /** Namespaces with rows, by table. */
  namespaces(): ReadonlyMap<TableName, ReadonlySet<string>> {
    this.#refresh();
    return new Map(
      TABLE_NAMES.map((name) => [
        name,
        new Set([...this.#rows[name].values()].flatMap(({ namespace }) => namespace ?? [])),
      ]),
    );
  }

  /** All rows. */
  all(): Changes {
    this.#refresh();
    return tables((name) => [...this.#rows[name].values()]) as Changes;
  }

  /** Whether rows changed since they were taken. */
  get hasChanges(): boolean {
    return (
      TABLE_NAMES.some((name) => this.#changed[name].size > 0) ||
      Object.values(this.#stale).some(({ size }) => size > 0)
    );
  }

  /** Rows that changed since they were taken, of each table the first `most`; null if none did. */
  takeChanges(most = Infinity): Changes | null {
    this.#refresh(most);
    if (TABLE_NAMES.every((name) => this.#changed[name].size === 0)) return null;
    return tables((name) => {
      const changed = this.#changed[name] as Map<string, Keyed<Tables[TableName]>>;
      const taken = firstOf(changed.entries(), most);
      for (const [key] of taken) changed.delete(key);
      return taken.map(([, row]) => row);
    }) as Changes;
  }

  #setShare(name: string, facts: ShareFacts): void {
    const row = shareRow(name, facts);
    if (row === null) this.#shares.delete(name);
    else this.#shares.set(name, facts);
    this.set('shares', name, null, row);
  }

  #spoilClaim(key: string): void {
    this.#stale.claims.add(key);
    for (const uid of this.#podsOfClaim.of(key)) this.#stale.pods.add(uid);
  }

  /** Computes rows again, of each kind the first `most`; true when none is left. */
  refresh(most: number): boolean {
    this.#refresh(most);
    return Object.values(this.#stale).every(({ size }) => size === 0);
  }

  /** Claims first: pods have their slices. */
  #refresh(most = Infinity): void {
    const { nodes, pods, claims } = {
      nodes: firstOf(this.#stale.nodes, most),
      pods: firstOf(this.#stale.pods, most),
      claims: firstOf(this.#stale.claims, most),
    };
    for (const key of nodes) this.#stale.nodes.delete(key);
    for (const key of pods) this.#stale.pods.delete(key);
    for (const key of claims) this.#stale.claims.delete(key);
    for (const key of claims) {
      const claim = this.#claims.get(key);
      if (claim !== undefined)
        this.#update(
          'claims',
          claim.uid,
          claim.namespace,
          claimRow(claim, this.#devices(claim), this.#whyWaiting(key)),
        );
    }
    for (const uid of pods) {
      const row = this.#podRow(uid);
      this.#update('pods', uid, row?.namespace ?? null, row);
    }
    for (const name of nodes) this.set('nodes', name, null, this.#nodeRow(name));
  }

  /** Sets a row unless it is as before: it may depend on objects whose change does not show in it. */
  #update<N extends TableName>(table: N, key: string, namespace: string | null, row: Tables[N] | null): void {
    if (!isDeepStrictEqual(this.#rows[table].get(key)?.row ?? null, row)) this.set(table, key, namespace, row);
  }

  /** A pod with the slices of its claims; null for a pod without GPUs of ours. */
  #podRow(uid: string): PodRow | null {
    const known = this.#pods.get(uid);
    const use = this.#uses.get(known?.node ?? '')?.pods.get(uid);
    const pod =
      known === undefined || use === undefined
        ? known
        : { ...known, usedPercent: use.percent, lastUsedMs: use.lastUsedMs };
    if (pod?.claims === undefined) return pod ?? null;
    const claimed = pod.claims.flatMap((name) => {
      const claim = this.#claims.get(claimKey(pod.namespace, name));
      return claim === undefined ? [] : slicesOfClaim(claim, this.#devices(claim), pod.node);
    });
    const slices = [...pod.slices, ...claimed];
    return slices.length === 0 && pod.foreign === undefined ? null : { ...pod, slices };
  }

  /** The reason of a pod that uses the claim and waits for a node. */
  #whyWaiting(key: string): string | null {
    for (const uid of this.#podsOfClaim.of(key)) {
      const pod = this.#pods.get(uid);
      if (pod?.state === 'waiting' && pod.why !== undefined) return `pod ${pod.name}: ${pod.why}`;
    }
    return null;
  }

  #devices(claim: ClaimFacts): readonly ClaimDevice[] {
    return devicesOf(claim, ({ pool, device }: AllocationResult) => {
      const node = this.#nodeOfPool.get(pool) ?? null;
      const gpus = node === null ? [] : (this.#nodes.get(node)?.gpus ?? []);
      return { node, gpu: gpus.find(({ gpu }) => deviceName(gpu.uuid) === device)?.gpu.index ?? null };
    });
  }

  /** A claim that several pods use counts once. */
  #nodeRow(name: string): NodeRow | null {
    const node = this.#nodes.get(name);
    if (node === undefined) return null;
    const own = [...this.#podsOf.of(name)].flatMap((uid) => {
      const pod = this.#pods.get(uid);
      return pod === undefined || pod.state === 'refused' ? [] : pod.slices;
    });
    const claimed = [...this.#claimsOfPool.of(poolName(name))].flatMap((key) => {
      const claim = this.#claims.get(key);
      return claim === undefined ? [] : slicesOfClaim(claim, this.#devices(claim), name);
    });
    return nodeRow(
      node,
      [...own, ...claimed],
      this.#agents.size === 0 ? 'unknown' : this.agentOf(name),
      this.#uses.get(name)?.gpus,
    );
  }
}

/** The first values. */
function firstOf<T>(values: Iterable<T>, most: number): T[] {
  const first: T[] = [];
  for (const value of values) {
    if (first.length >= most) break;
    first.push(value);
  }
  return first;
}

/** Sets of values by key. */
class Index {
  readonly #sets = new Map<string, Set<string>>();

  of(key: string): ReadonlySet<string> {
    return this.#sets.get(key) ?? new Set();
  }

  /** Moves a value from its keys to others. */
  move(value: string, from: readonly string[], to: readonly string[]): void {
    for (const key of from) {
      const set = this.#sets.get(key);
      set?.delete(value);
      if (set?.size === 0) this.#sets.delete(key);
    }
    for (const key of to) this.#sets.set(key, (this.#sets.get(key) ?? new Set()).add(value));
  }
}

function nodesOf(pod: PodRow | null): readonly string[] {
  return pod?.node === undefined ? [] : [pod.node];
}

function claimKeysOf(pod: PodRow | null): readonly string[] {
  return pod === null ? [] : (pod.claims ?? []).map((name) => claimKey(pod.namespace, name));
}

function poolsOf(claim: ClaimFacts | null): readonly string[] {
  return [...new Set((claim?.results ?? []).map(({ pool }) => pool))];
}

function claimKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function tables<T>(of: (name: TableName) => T): Record<TableName, T> {
  return Object.fromEntries(TABLE_NAMES.map((name) => [name, of(name)])) as Record<TableName, T>;
}
