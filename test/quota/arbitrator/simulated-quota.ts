import {
  arbitrate,
  cohortSituations,
  keptKey,
  NO_MEMORY,
  Quota,
  type ArbitratedGroup,
  type ArbitratorMemory,
  type ArbitratorPolicy,
  type Hard,
  type PlannedStart,
  type Quantities,
} from '../../../src/quota/index.js';

/** A client that creates one workload and retries while it is refused. */
interface Client {
  readonly id: string;
  readonly group: string;
  readonly size: Quantities;
  readonly lastsMs: number;
  readonly retryMs: number;
  nextTryAt: number;
  refusals: number;
  since: number;
  /** When the workload ends; null while it is refused. */
  endsAt: number | null;
  startedAt: number;
  leavesAt: number | null;
}

export interface SimulatedQuotaOptions {
  readonly groups: readonly ArbitratedGroup[];
  readonly policy: Partial<ArbitratorPolicy>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Keys whose requests have the same name with another prefix. */
const RESOURCES: Readonly<Record<string, string>> = { 'limits.cpu': 'cpu', 'limits.memory': 'memory' };

/**
 * The engine with clients that retry, as GitOps does, and the arbitrator of groups on a leader that looks every few
 * seconds. An evicted workload releases its quota some seconds later and is created again by its client.
 */
export class SimulatedQuota {
  readonly quota = new Quota();
  readonly #options: SimulatedQuotaOptions;
  readonly #clients = new Map<string, Client>();
  #memories = new Map<string, ArbitratorMemory>();
  #kept = new Map<string, { readonly size: Quantities; readonly isFirm: boolean }>();
  /** Planned starts with evictions, and when their workloads were admitted. */
  readonly carriedOut: { readonly start: PlannedStart; readonly at: number; admittedAt: number | null }[] = [];
  now = 0;
  #made = 0;

  constructor(options: SimulatedQuotaOptions) {
    this.#options = options;
    for (const { name, parent, isElastic, hard, lend, borrow } of options.groups) {
      const decision = this.quota.createGroup({
        name,
        ...(parent === '' ? {} : { parent }),
        mode: isElastic ? 'elastic' : 'carved',
        hard: written(hard),
        ...(lend === undefined ? {} : { lend: written(lend) }),
        ...(borrow === undefined ? {} : { borrow: written(borrow) }),
      });
      if (!decision.allowed) throw new Error(decision.message);
    }
  }

  add(group: string, size: Quantities, lastsMs: number, retryMs: number): void {
    const id = `Job//w${++this.#made}`;
    this.#clients.set(id, {
      ...{ id, group, size, lastsMs, retryMs, nextTryAt: this.now + this.#options.random() * retryMs },
      ...{ refusals: 0, since: this.now, endsAt: null, startedAt: 0, leavesAt: null },
    });
  }

  /** Clients of a group that are refused or did not try yet. */
  waiting(group: string): number {
    return [...this.#clients.values()].filter((client) => client.group === group && client.endsAt === null).length;
  }

  usage(group: string): Quantities {
    const status = this.quota.status(group);
    return new Map([...(status?.selfUsed ?? [])].map(([key, amount]) => [key, Number(amount)]));
  }

  pass(ms: number): void {
    this.now += ms;
    const clients = [...this.#clients.values()];
    for (const client of clients) {
      if (client.endsAt !== null && client.endsAt <= this.now) this.#end(client, false);
      else if (client.leavesAt !== null && client.leavesAt <= this.now) this.#end(client, true);
    }
    for (const client of clients)
      if (client.endsAt === null && this.#clients.has(client.id) && client.nextTryAt <= this.now) this.#try(client);
    this.#arbitrate();
  }

  #end(client: Client, isEvicted: boolean): void {
    this.quota.release({ kind: 'Job', name: client.id.slice(5) });
    if (!isEvicted) this.#clients.delete(client.id);
    else
      Object.assign(client, {
        ...{ endsAt: null, leavesAt: null, refusals: 0, since: this.now },
        nextTryAt: this.now + this.#options.random() * client.retryMs,
      });
  }

  #try(client: Client): void {
    const { id, group, size } = client;
    const isAdmitted =
      this.#leavesKeptRoom(client) &&
      this.quota.admit({
        workload: { kind: 'Job', name: id.slice(5) },
        group,
        podSets: [
          { count: 1, limits: Object.fromEntries([...size].map(([key, n]) => [RESOURCES[key] ?? key, BigInt(n)])) },
        ],
      }).allowed;
    if (!isAdmitted) {
      client.refusals++;
      client.nextTryAt = this.now + client.retryMs;
      return;
    }
    Object.assign(client, { endsAt: this.now + client.lastsMs, startedAt: this.now });
    this.#kept.delete(id);
    for (const planned of this.carriedOut)
      if (planned.start.pod === id && planned.admittedAt === null) planned.admittedAt = this.now;
  }

  #leavesKeptRoom({ id, group, size }: Client): boolean {
    const own = this.#kept.get(id);
    if (own?.isFirm === true) return true;
    const spec = this.#options.groups.find(({ name }) => name === group);
    const status = this.quota.status(group);
    const unlent = new Map(
      [...(spec?.lend ?? [])].map(([key, lend]) => [
        key,
        Math.max(0, (spec?.hard.get(key) ?? 0) - lend - (this.usage(group).get(key) ?? 0)),
      ]),
    );
    const kept = new Map<string, number>();
    for (const { size: other, isFirm } of this.#kept.values())
      for (const [key, amount] of own === undefined || isFirm ? other : [])
        kept.set(key, (kept.get(key) ?? 0) + amount);
    const room = new Map([...(status?.room ?? [])].map(([key, amount]) => [key, Number(amount)]));
    return keptKey({ adds: size, room, unlent, kept }) === null;
  }

  #arbitrate(): void {
    const clients = [...this.#clients.values()];
    const situations = cohortSituations({
      now: this.now,
      groups: this.#options.groups,
      workloads: clients
        .filter(({ endsAt }) => endsAt !== null)
        .map(({ id, group: consumer, size: uses, startedAt, leavesAt }) => ({
          ...{ id, consumer, uses, startedAt, priority: 0, isLeaving: leavesAt !== null },
        })),
      refused: clients
        .filter(({ endsAt, refusals }) => endsAt === null && refusals > 1)
        .map(({ id, group: consumer, size: uses, since }) => ({ id, consumer, uses, since })),
      disruptions: new Map(),
    });
    const memories = new Map<string, ArbitratorMemory>();
    this.#kept = new Map();
    for (const [cohort, situation] of situations) {
      const memory = this.#memories.get(cohort) ?? NO_MEMORY;
      const plan = arbitrate(situation, memory, { ...this.#options.policy, keepsReserved: false });
      memories.set(cohort, plan.memory);
      for (const start of plan.starts) {
        this.carriedOut.push({ start, at: this.now, admittedAt: null });
        for (const { pod } of start.victims) {
          const victim = this.#clients.get(pod);
          if (victim?.endsAt === null || victim?.leavesAt !== null) throw new Error(`${pod} does not run`);
          victim.leavesAt = this.now + this.#options.random() * 20_000;
        }
      }
      const firm = [...plan.memory.nominations.keys(), ...plan.fitting];
      for (const id of [...firm, ...plan.due]) {
        const size = this.#clients.get(id)?.size;
        if (size !== undefined) this.#kept.set(id, { size, isFirm: firm.includes(id) });
      }
    }
    this.#memories = memories;
  }
}

/** As amounts in base units. */
function written(amounts: Quantities): Hard {
  return Object.fromEntries([...amounts].map(([key, amount]) => [key, BigInt(amount)]));
}
