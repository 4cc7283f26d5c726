import {
  arbitrate,
  NO_MEMORY,
  type ArbitratedNode,
  type ArbitratorMemory,
  type ArbitratorPolicy,
  type ConsumerSpec,
  type PlannedStart,
  type Quantities,
  type RunningPod,
  type Situation,
  type WaitingPod,
} from '../../../src/quota/arbitrator/index.js';

/** A pod of the simulated cluster; its controller replaces it when it is evicted. */
interface SimulatedPod {
  readonly id: string;
  readonly consumer: string;
  readonly uses: Quantities;
  readonly priority: number;
  readonly nodes: ReadonlySet<string> | null;
  readonly budget: string | null;
  readonly since: number;
  node: string | null;
  startedAt: number | null;
  leavesAt: number | null;
  nominated: string | null;
}

/** Pods that consumers create. */
export interface Template {
  readonly consumer: string;
  readonly uses: Quantities;
  readonly priority: number;
  readonly nodes: ReadonlySet<string> | null;
  readonly budget: string | null;
}

export interface SimulatedClusterOptions {
  readonly nodes: readonly ArbitratedNode[];
  readonly consumers: readonly ConsumerSpec[];
  readonly policy: Partial<ArbitratorPolicy>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Maximum number of leaving pods per budget, by name. */
  readonly budgets: ReadonlyMap<string, number>;
  /** Maximum time that an evicted pod takes to leave, milliseconds. */
  readonly graceMs: number;
}

/** An executed eviction and the pod that it was for. */
export interface ExecutedEviction {
  readonly start: PlannedStart;
  readonly at: number;
}

const FREE = 'free';
const NOBODY: ReadonlyMap<string, number> = new Map();

/**
 * A cluster with a simplified Kubernetes scheduler: pods wait in a queue, evicted pods are replaced at once and may be
 * scheduled first, and room of a nominated pod is kept from pods of no higher priority.
 */
export class SimulatedCluster {
  readonly #options: SimulatedClusterOptions;
  readonly #pods = new Map<string, SimulatedPod>();
  readonly carriedOut: ExecutedEviction[] = [];
  /** Start times by pod id. */
  readonly startedAt = new Map<string, number>();
  now = 0;
  #memory: ArbitratorMemory = NO_MEMORY;
  #made = 0;

  constructor(options: SimulatedClusterOptions) {
    this.#options = options;
  }

  get policy(): Partial<ArbitratorPolicy> {
    return this.#options.policy;
  }

  add(template: Template): void {
    const id = `pod-${++this.#made}`;
    this.#pods.set(id, {
      ...template,
      id,
      since: this.now,
      node: null,
      startedAt: null,
      leavesAt: null,
      nominated: null,
    });
  }

  /** Ends one running pod. */
  end(): void {
    const running = [...this.#pods.values()].filter(({ node, leavesAt }) => node !== null && leavesAt === null);
    const pod = running[Math.floor(this.#options.random() * running.length)];
    if (pod !== undefined) this.#pods.delete(pod.id);
  }

  situation(): Situation {
    const { nodes, consumers, budgets } = this.#options;
    const capacity = new Map<string, number>();
    for (const { allocatable } of nodes) addTo(capacity, allocatable);
    const pending = new Map<string, Map<string, number>>();
    const waiting: WaitingPod[] = [];
    const pods: RunningPod[] = [];
    const leaving = new Map<string, number>();
    for (const pod of this.#pods.values()) {
      const { id, consumer, uses, priority, node, startedAt, leavesAt, budget } = pod;
      if (node === null) {
        waiting.push({ id, consumer, uses, priority, since: pod.since, nodes: pod.nodes, nominated: pod.nominated });
        const asked = pending.get(consumer) ?? new Map<string, number>();
        pending.set(consumer, asked);
        addTo(asked, uses);
        continue;
      }
      const isLeaving = leavesAt !== null;
      if (isLeaving && budget !== null) leaving.set(budget, (leaving.get(budget) ?? 0) + 1);
      pods.push({ id, consumer, uses, priority, node, startedAt, isLeaving, budgets: budget === null ? [] : [budget] });
    }
    const disruptions = new Map(
      [...budgets].map(([name, allowed]) => [name, Math.max(0, allowed - (leaving.get(name) ?? 0))]),
    );
    return { now: this.now, capacity, consumers, pods, pending, disruptions, nodes, waiting };
  }

  /** Advances the time: pods leave, the scheduler schedules, the arbitrator decides. */
  pass(ms: number): void {
    this.now += ms;
    for (const pod of this.#pods.values())
      if (pod.leavesAt !== null && pod.leavesAt <= this.now) this.#pods.delete(pod.id);
    this.#schedule();
    const plan = arbitrate(this.situation(), this.#memory, this.#options.policy);
    this.#memory = plan.memory;
    for (const start of plan.starts) {
      const waiting = this.#pods.get(start.pod);
      if (waiting === undefined) throw new Error(`${start.pod} is planned to start but does not wait`);
      waiting.nominated = start.node;
      for (const { pod } of start.victims) this.#evict(pod);
      this.carriedOut.push({ start, at: this.now });
    }
  }

  #evict(id: string): void {
    const { random, graceMs } = this.#options;
    const victim = this.#pods.get(id);
    if (victim === undefined || victim.node === null || victim.leavesAt !== null)
      throw new Error(`${id} is planned as a victim but does not run`);
    victim.leavesAt = this.now + Math.floor(random() * graceMs);
    this.add(victim);
  }

  #schedule(): void {
    const { nodes, random } = this.#options;
    const waiting = [...this.#pods.values()].filter(({ node }) => node === null);
    // Random among equals: the replacement of a victim may come before the pod that waits for its room.
    const order = new Map(waiting.map(({ id }) => [id, random()]));
    waiting.sort((a, b) => b.priority - a.priority || (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0));
    const here = new Map(nodes.map(({ name }): [string, SimulatedPod[]] => [name, []]));
    for (const pod of this.#pods.values()) here.get(pod.node ?? pod.nominated ?? '')?.push(pod);
    for (const pod of waiting) {
      const found = nodes
        .filter(({ name }) => name === pod.nominated)
        .concat(nodes)
        .find((node) => fits(pod, node, here.get(node.name) ?? []));
      if (found === undefined) continue;
      const nominatedTo = here.get(pod.nominated ?? '');
      nominatedTo?.splice(nominatedTo.indexOf(pod), 1);
      here.get(found.name)?.push(pod);
      pod.node = found.name;
      pod.startedAt = this.now;
      pod.nominated = null;
      this.startedAt.set(pod.id, this.now);
    }
  }
}

/** Whether a pod fits beside the running pods and the nominated pods of no lower priority. */
function fits(
  pod: SimulatedPod,
  { name, allocatable, podSlots }: ArbitratedNode,
  here: readonly SimulatedPod[],
): boolean {
  if (pod.nodes !== null && !pod.nodes.has(name)) return false;
  let count = 0;
  const taken = new Map<string, number>();
  for (const other of here) {
    if (other === pod || (other.node === null && other.priority < pod.priority)) continue;
    count++;
    addTo(taken, other.uses);
  }
  if (count >= podSlots) return false;
  for (const [resource, amount] of pod.uses)
    if ((taken.get(resource) ?? 0) + amount > (allocatable.get(resource) ?? 0)) return false;
  return true;
}

function addTo(sum: Map<string, number>, uses: Quantities): void {
  for (const [resource, amount] of uses) sum.set(resource, (sum.get(resource) ?? 0) + amount);
}

/**
 * Finds a waiting pod that would start after some evictions, by trying every set of pods of every node: a set that the
 * arbitrator must find, too. Skips nodes with more than `mostPods` possible victims.
 */
export function missedVictims(situation: Situation, policy: Partial<ArbitratorPolicy>, mostPods = 12): string | null {
  const { allocations } = arbitrate(situation, NO_MEMORY, { ...policy, graceMs: Infinity });
  const of = (amounts: Quantities | undefined, resource: string): number => amounts?.get(resource) ?? 0;
  const byName = new Map(allocations.map((allocation) => [allocation.name, allocation]));
  const { nodes = [], waiting = [], pods, disruptions = NOBODY } = situation;
  for (const pod of waiting) {
    const own = byName.get(pod.consumer);
    if ([...pod.uses].some(([resource, amount]) => of(own?.used, resource) + amount > of(own?.deserved, resource)))
      continue;
    const found = nodes.map((node): string | null => {
      if (pod.nodes !== null && !pod.nodes.has(node.name)) return null;
      const here = pods.filter(({ node: at, isLeaving }) => at === node.name && isLeaving !== true);
      const left = (without: readonly RunningPod[], resource: string): number =>
        of(node.allocatable, resource) -
        here.reduce((sum, other) => (without.includes(other) ? sum : sum + of(other.uses, resource)), 0);
      const fits = (without: readonly RunningPod[], which = pod): boolean =>
        here.length - without.length < node.podSlots &&
        [...which.uses].every(([resource, amount]) => left(without, resource) >= amount);
      const isFirst = (without: readonly RunningPod[]): boolean =>
        !waiting.some(
          (other) => other.priority > pod.priority && (other.nodes?.has(node.name) ?? true) && fits(without, other),
        );
      if (fits([])) return FREE;
      const short = [...pod.uses].flatMap(([resource, amount]) => (left([], resource) < amount ? [resource] : []));
      const candidates = here.filter(
        ({ consumer, priority, uses }) =>
          consumer !== pod.consumer &&
          priority <= pod.priority &&
          short.some((resource) => of(uses, resource) > 0 && isOver(byName.get(consumer), resource)),
      );
      if (candidates.length === 0 || candidates.length > mostPods) return null;
      for (let bits = 1; bits < 1 << candidates.length; bits++) {
        const set = candidates.filter((_, index) => (bits >> index) % 2 === 1);
        if (fits(set) && mayGo(set, short) && isFirst(set))
          return `${set.map(({ id }) => id).join(', ')} on ${node.name} for ${pod.id}`;
      }
      return null;
    });
    // A pod that fits without evictions is left to the scheduler.
    const missedSet = found.includes(FREE) ? undefined : found.find((set) => set !== null);
    if (missedSet !== undefined && missedSet !== null) return missedSet;
  }
  return null;

  function isOver(allocation: (typeof allocations)[number] | undefined, resource: string): boolean {
    return of(allocation?.used, resource) > of(allocation?.deserved, resource);
  }

  /** The rules of docs/reference/arbitrator.md, one pod after the other in the most favourable order. */
  function mayGo(set: readonly RunningPod[], short: readonly string[]): boolean {
    for (const [budget, allowed] of disruptions)
      if (set.filter(({ budgets = [] }) => budgets.includes(budget)).length > allowed) return false;
    return [...new Set(set.map(({ consumer }) => consumer))].every((name) => {
      const allocation = byName.get(name);
      const mine = set.filter(({ consumer }) => consumer === name);
      const lost = (resource: string, among = mine): number =>
        among.reduce((sum, { uses }) => sum + of(uses, resource), 0);
      const keeps = [...new Set(mine.flatMap(({ uses }) => [...uses.keys()]))].every(
        (resource) =>
          lost(resource) === 0 || of(allocation?.used, resource) - lost(resource) >= of(allocation?.reserved, resource),
      );
      return (
        keeps &&
        short.some((resource) => {
          if (mine.some(({ uses }) => of(uses, resource) === 0)) return false;
          const smallFirst = [...mine].sort((a, b) => of(a.uses, resource) - of(b.uses, resource));
          return smallFirst.every(
            (_, index) =>
              of(allocation?.used, resource) - lost(resource, smallFirst.slice(0, index)) >
              of(allocation?.deserved, resource),
          );
        })
      );
    });
  }
}
