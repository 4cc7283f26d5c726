import type { AllocationSnapshot, NodeSnapshot, SliceSnapshot } from '../../agent/node/view.js';
import { claimFacts, devicesOf, type ClaimFacts, type LocateDevice } from '../../console/claim-row.js';
import type { ClaimDevice } from '../../console/rows.js';
import { NODE_INVENTORY_KEY, predicateGpuIndexKey } from '../../gpu/annotations.js';
import { deviceName, poolName } from '../../gpu/claims/names.js';
import { inventoryOf, type InventoryGpu } from '../../gpu/node-inventory.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../gpu/resources.js';
import { systemClock } from '../../host/clock.js';
import { agentPods, type AgentPod } from '../../kube/agent-pods.js';
import { AgentReader } from '../../kube/agent-reader.js';
import { ALL_NODES, ALL_PODS, ALL_RESOURCE_CLAIMS, podsPath, resourceClaimsPath } from '../../kube/api-path.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { list, record } from '../../kube/json.js';
import { listAll } from '../../kube/list-all.js';
import { readNode, type Node } from '../../kube/node.js';
import { readPod, type Pod } from '../../kube/pod.js';

/** A node with GPUs, or with an agent. */
export interface GpuNode {
  readonly node: Node;
  readonly agent: AgentPod | null;
  /** The answer of its agent; null if the agent was not asked or did not answer. */
  readonly snapshot: NodeSnapshot | null;
  /** Why there is no answer; empty otherwise. */
  readonly problem: string;
  /** GPUs that its agent published for the scheduler extender; empty without. */
  readonly inventory: readonly InventoryGpu[];
}

/** One container on its GPUs. */
export interface GpuContainer {
  readonly name: string;
  /** As written in its resources: cores, and blocks of 256 MiB. */
  readonly requested: { readonly cores: number; readonly memoryBlocks: number };
  /** GPU indexes, from its agent or from the annotations of the pod. */
  readonly gpus: readonly number[];
  /** Null while its agent does not answer, or has no allocation for it. */
  readonly allocation: AllocationSnapshot | null;
}

/** A resource claim with devices of this project's driver, or one that asks for them. */
export interface GpuClaim {
  readonly claim: ClaimFacts;
  readonly devices: readonly ClaimDevice[];
}

/** A pod that asks for GPUs or has some. */
export interface GpuPod {
  readonly pod: Pod;
  readonly containers: readonly GpuContainer[];
  readonly claims: readonly GpuClaim[];
}

/** Pods, and why figures are missing, by the name of what could not be read: nodes, and `claims`. */
export interface GpuPods {
  readonly pods: readonly GpuPod[];
  readonly problems: ReadonlyMap<string, string>;
}

/** Label of the nodes that the DaemonSet manages. */
export const ENABLE_LABEL = 'nvidia-device-enable';

/** Agents that are asked at once. */
const CONCURRENCY = 32;

/** A cluster for read-only commands: its nodes, pods and agents. */
export class GpuCluster {
  readonly api: KubeApi;
  readonly reader: AgentReader;
  readonly #agentNamespace: string;
  #agents: Promise<ReadonlyMap<string, AgentPod>> | null = null;

  constructor(api: KubeApi, agentNamespace: string) {
    this.api = api;
    this.#agentNamespace = agentNamespace;
    this.reader = new AgentReader({ api, clock: systemClock });
  }

  /** The nodes with GPUs or agents, by name; with `ask`, their agents' documents. Rejects with a `KubeError`. */
  async nodes(labelSelector: string | null = null): Promise<readonly GpuNode[]> {
    const query: Readonly<Record<string, string>> = labelSelector === null ? {} : { labelSelector };
    const [objects, agents] = await Promise.all([
      listAll(this.api, 'the nodes', ALL_NODES, query),
      this.agents().catch(() => new Map<string, AgentPod>()),
    ]);
    const nodes = objects
      .flatMap((object) => readNode(object) ?? [])
      .filter((node) => hasGpus(node) || agents.has(node.name) || ENABLE_LABEL in node.labels);
    const found = await mapLimited(nodes, (node) => this.#node(node, agents.get(node.name) ?? null));
    return found.sort((a, b) => compareNames(a.node.name, b.node.name));
  }

  async node(name: string): Promise<GpuNode | null> {
    const answer = await this.api.request({ method: 'GET', path: `${ALL_NODES}/${encodeURIComponent(name)}` });
    if (!answer.ok) {
      if (answer.code === 'not-found') return null;
      throw new KubeError(`node ${name}`, answer);
    }
    const node = readNode(answer.body);
    return node === null ? null : this.#node(node, (await this.agents()).get(name) ?? null);
  }

  /** Agents by node; read again after `refresh`. */
  agents(): Promise<ReadonlyMap<string, AgentPod>> {
    this.#agents ??= agentPods(this.api, this.#agentNamespace);
    return this.#agents;
  }

  /** Drops the cached list of agents, so that the next call reads it again. */
  refresh(): void {
    this.#agents = null;
  }

  /** The agents' answers for the nodes with these names. */
  async snapshots(names: ReadonlySet<string>): Promise<ReadonlyMap<string, NodeSnapshot | string>> {
    let agents: ReadonlyMap<string, AgentPod>;
    try {
      agents = await this.agents();
    } catch (error) {
      return new Map([...names].map((name) => [name, (error as Error).message]));
    }
    const answers = await mapLimited([...names], async (name) => {
      const { snapshot, problem } = await this.#ask(agents.get(name) ?? null);
      return [name, snapshot ?? problem] as const;
    });
    return new Map(answers);
  }

  /** The answers of all agents to a path, by node; a text says why there is none. Rejects with a `KubeError`. */
  async askAll(path: string, query: Readonly<Record<string, string>>): Promise<ReadonlyMap<string, unknown>> {
    const agents = [...(await this.agents())].sort(([a], [b]) => compareNames(a, b));
    return new Map(
      await mapLimited(agents, async ([node, agent]): Promise<[string, unknown]> => {
        const answer = await this.reader.read(agent, path, { query });
        return [node, answer.ok ? answer.body : answer.message];
      }),
    );
  }

  /** The answer of the agent of a node; a text says why there is none. Rejects with a `KubeError`. */
  async askNode(node: string, path: string, query: Readonly<Record<string, string>>): Promise<unknown> {
    const agent = (await this.agents()).get(node);
    if (agent === undefined) return `no agent in the namespace ${this.#agentNamespace} runs on this node`;
    const answer = await this.reader.read(agent, path, { query });
    return answer.ok ? answer.body : answer.message;
  }

  /** Pods with GPUs in a namespace; null for all. */
  async pods(namespace: string | null, labelSelector: string | null = null): Promise<GpuPods> {
    const query: Readonly<Record<string, string>> = labelSelector === null ? {} : { labelSelector };
    const path = namespace === null ? ALL_PODS : podsPath(namespace);
    const objects = (await listAll(this.api, 'the pods', path, query)).filter(asksForGpus);
    return this.#withFigures(objects.map(readPod), namespace);
  }

  /** Adds claims and its agent's figures to a pod; without GPUs it has no containers and no claims. */
  async podWithFigures(pod: Pod): Promise<GpuPods & { readonly gpuPod: GpuPod }> {
    const found = await this.#withFigures([pod], pod.namespace);
    return { ...found, gpuPod: found.pods[0] ?? { pod, containers: [], claims: [] } };
  }

  /** Adds claims and the agents' figures to pods; leaves out those that have nothing but claims of other drivers. */
  async #withFigures(pods: readonly Pod[], namespace: string | null): Promise<GpuPods> {
    const problems = new Map<string, string>();
    const claims = pods.some((pod) => pod.claims.length > 0) ? await this.#claimsOr(problems, namespace) : [];
    const claimOf = new Map(claims.map((claim) => [`${claim.namespace}/${claim.name}`, claim]));
    const ofPod = (pod: Pod): readonly ClaimFacts[] =>
      pod.claims.flatMap(({ claimName, madeName }) => claimOf.get(`${pod.namespace}/${claimName || madeName}`) ?? []);
    const isOurs = (pod: Pod): boolean =>
      pod.claims.length === 0 || ofPod(pod).length > 0 || containersOf(pod, new Map()).length > 0;
    const running = pods.filter((pod) => !pod.isDone && isOurs(pod));
    const answers = await this.snapshots(new Set(running.flatMap(({ node }) => node ?? [])));
    const gpus = new Map<string, readonly KnownGpu[]>();
    const byContainer = new Map<string, AllocationSnapshot>();
    for (const [node, answer] of answers) {
      if (typeof answer === 'string') problems.set(node, answer);
      else {
        gpus.set(node, answer.gpus);
        for (const allocation of answer.allocations)
          for (const { podUid, container } of allocation.owners) byContainer.set(`${podUid}/${container}`, allocation);
      }
    }
    const found = pods.filter(isOurs).map((pod): GpuPod => {
      const locate = locatorOf(pod.node === null ? new Map() : new Map([[pod.node, gpus.get(pod.node) ?? []]]));
      return {
        pod,
        containers: containersOf(pod, byContainer),
        claims: ofPod(pod).map((claim) => ({ claim, devices: devicesOf(claim, locate) })),
      };
    });
    found.sort((a, b) => compareNames(a.pod.namespace, b.pod.namespace) || compareNames(a.pod.name, b.pod.name));
    return { pods: found, problems };
  }

  /** Claims of a namespace, null for all, by name. Rejects with a `KubeError`. */
  async claims(namespace: string | null, labelSelector: string | null = null): Promise<readonly ClaimFacts[]> {
    const query: Readonly<Record<string, string>> = labelSelector === null ? {} : { labelSelector };
    const path = namespace === null ? ALL_RESOURCE_CLAIMS : resourceClaimsPath(namespace);
    const found = (await listAll(this.api, 'the resource claims', path, query)).flatMap((one) => claimFacts(one) ?? []);
    return found.sort((a, b) => compareNames(a.namespace, b.namespace) || compareNames(a.name, b.name));
  }

  /** Finds devices by what the agents published on their nodes. Rejects with a `KubeError`. */
  async locator(): Promise<LocateDevice> {
    const nodes = (await listAll(this.api, 'the nodes', ALL_NODES)).flatMap((object) => readNode(object) ?? []);
    return locatorOf(new Map(nodes.map((node) => [node.name, gpusOf(node).map(({ gpu }) => gpu)])));
  }

  async #claimsOr(problems: Map<string, string>, namespace: string | null): Promise<readonly ClaimFacts[]> {
    try {
      return await this.claims(namespace);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      problems.set('claims', `${error.message}; GPUs of claims are not shown`);
      return [];
    }
  }

  async #node(node: Node, agent: AgentPod | null): Promise<GpuNode> {
    return { node, agent, inventory: gpusOf(node), ...(await this.#ask(agent)) };
  }

  async #ask(agent: AgentPod | null): Promise<Pick<GpuNode, 'snapshot' | 'problem'>> {
    if (agent === null)
      return { snapshot: null, problem: `no agent in the namespace ${this.#agentNamespace} runs on this node` };
    const answer = await this.reader.read(agent, '/api/node');
    return answer.ok
      ? { snapshot: answer.body as NodeSnapshot, problem: '' }
      : { snapshot: null, problem: answer.message };
  }
}

/** Whether an object of a pod asks for GPUs: by an extended resource of this project, or by a claim. */
export function asksForGpus(object: unknown): boolean {
  const { spec } = record(object);
  const { containers, initContainers, resourceClaims } = record(spec);
  return (
    list(resourceClaims).length > 0 ||
    [...list(containers), ...list(initContainers)].some((container) => {
      const { limits, requests } = record(record(container).resources);
      return [...Object.keys(record(limits)), ...Object.keys(record(requests))].some(isGpuResource);
    })
  );
}

export function isGpuResource(name: string): boolean {
  return name === CORE_RESOURCE || name === MEMORY_RESOURCE || name.startsWith('tencent.com/mig-');
}

type KnownGpu = { readonly uuid: string; readonly index: number };

/** Finds devices on the GPUs of nodes, by name of the node. */
function locatorOf(nodes: ReadonlyMap<string, readonly KnownGpu[]>): LocateDevice {
  const nodeOf = new Map([...nodes.keys()].map((node) => [poolName(node), node]));
  return ({ pool, device }) => {
    const node = nodeOf.get(pool) ?? null;
    const gpu = nodes.get(node ?? '')?.find(({ uuid }) => deviceName(uuid) === device);
    return { node, gpu: gpu?.index ?? null };
  };
}

function gpusOf({ annotations }: Node): readonly InventoryGpu[] {
  return inventoryOf(annotations)?.gpus ?? [];
}

/** Whether a node offers GPUs of this project, or has an inventory of them. */
export function hasGpus({ allocatable, annotations }: Node): boolean {
  return [...allocatable.keys()].some(isGpuResource) || NODE_INVENTORY_KEY in annotations;
}

function containersOf(pod: Pod, byContainer: ReadonlyMap<string, AllocationSnapshot>): readonly GpuContainer[] {
  // Indexes of the annotations count the containers of the specification without its init containers.
  const all = [
    ...pod.initContainers.map((container) => ({ container, annotated: '' })),
    ...pod.containers.map((container, at) => ({
      container,
      annotated: pod.annotations[predicateGpuIndexKey(at)] ?? '',
    })),
  ];
  return all.flatMap(({ container: { name, extended }, annotated }) => {
    const allocation = byContainer.get(`${pod.kubeletUid}/${name}`) ?? byContainer.get(`${pod.uid}/${name}`) ?? null;
    const requested = {
      cores: Number(extended(CORE_RESOURCE)) || 0,
      memoryBlocks: Number(extended(MEMORY_RESOURCE)) || 0,
    };
    if (allocation === null && annotated === '' && requested.cores === 0 && requested.memoryBlocks === 0) return [];
    const known = annotated.split(',').filter((text) => /^\d+$/u.test(text));
    const gpus = allocation?.slices.map(({ gpuIndex }) => gpuIndex) ?? known.map(Number);
    return [{ name, requested, gpus, allocation }];
  });
}

export function slicesOf({ containers }: GpuPod): readonly SliceSnapshot[] {
  return [...new Set(containers.flatMap(({ allocation }) => allocation ?? []))].flatMap(({ slices }) => slices);
}

async function mapLimited<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Map<number, R>();
  const next = items.entries();
  const worker = async (): Promise<void> => {
    for (const [at, item] of next) results.set(at, await work(item));
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, items.length) }, worker));
  return items.map((_, at) => results.get(at) as R);
}

function compareNames(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
