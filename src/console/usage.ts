import type { Clock } from '../host/clock.js';
import type { AgentReader } from '../kube/agent-reader.js';
import { list, record, text } from '../kube/json.js';
import type { ClusterModel } from './cluster-model.js';
import { hoursOfAgents, type UsageBy, type UsageRow } from './gpu-hours.js';
import { hoursOfPrometheus, namespacesOfPrometheus, type HoursAnswer } from './prometheus-hours.js';
import type { Prometheus } from './prometheus.js';
import { sees, type Scope } from './scope.js';

const DAY_MS = 86_400_000;

/** Ranges that readers may choose. */
const RANGES: Readonly<Record<string, number>> = { '24h': DAY_MS, '7d': 7 * DAY_MS, '30d': 30 * DAY_MS };

/** How long agents keep GPU-hours, as the page says it. */
const AGENTS_KEEP = '35 days';
/** How long an answer is reused, for all readers. */
const KEPT_MS = 30_000;
/** Agents that are asked at once; the API server forwards each request. */
const AT_ONCE = 16;
/** Rows that a browser gets. */
const MAX_ROWS = 1_000;

/** GPU-hours of a time that ends now. */
export type UsageAnswer =
  | {
      readonly ok: true;
      readonly source: 'agents' | 'Prometheus';
      /** How long the source keeps them; null if it does not say. */
      readonly keeps: string | null;
      readonly sinceMs: number;
      readonly fromMs: number | null;
      readonly rows: readonly UsageRow[];
      /** Rows that are left out. */
      readonly more: number;
      /** Nodes whose agents did not answer. */
      readonly silent: readonly string[];
    }
  /** A sentence. */
  | { readonly ok: false; readonly reason: string };

export interface UsageOptions {
  readonly reader: Pick<AgentReader, 'read'>;
  readonly model: Pick<ClusterModel, 'nodeNames' | 'agentOf'>;
  /** Null: the agents are asked. */
  readonly prometheus: Pick<Prometheus, 'instant' | 'retention'> | null;
  readonly clock: Clock;
}

/** GPU-hours of the cluster: from Prometheus where the console has one, else from what the agents keep. */
export class Usage {
  readonly #options: UsageOptions;
  readonly #kept = new Map<string, { readonly untilMs: number; readonly answer: Promise<unknown> }>();
  /** Those whose pods had GPUs in a range that was asked for. */
  readonly namespaces = new Set<string>();

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /** Learns which namespaces a range has, before the rights of its reader are looked at. Never rejects. */
  async learn(range: string): Promise<void> {
    const { prometheus, clock } = this.#options;
    const forMs = rangeMs(range);
    if (forMs === null) return;
    const names =
      prometheus === null
        ? namespacesOf(await this.#agents(range, forMs))
        : await this.#once(`namespaces ${range}`, () => namespacesOfPrometheus(prometheus, forMs, clock.now()));
    for (const name of names) this.namespaces.add(name);
  }

  /** Null for a range that there is not. Never rejects. */
  async read(by: UsageBy, range: string, scope: Scope): Promise<UsageAnswer | null> {
    const { prometheus, clock } = this.#options;
    const forMs = rangeMs(range);
    if (forMs === null) return null;
    if (by === 'node' && !scope.tables.has('nodes')) return { ok: false, reason: 'you may not list nodes' };
    const sinceMs = clock.now() - forMs;
    if (prometheus === null) {
      const answers = await this.#agents(range, forMs);
      const silent = [...answers].flatMap(([node, answer]) => (typeof answer === 'string' ? [node] : []));
      const usage = hoursOfAgents(answers, by, (namespace) => sees(scope, 'pods', namespace));
      return { ok: true, source: 'agents', keeps: AGENTS_KEEP, sinceMs, ...shown(usage), silent };
    }
    const seen = scope.tables.get('pods') ?? new Set<string>();
    const namespaces = scope.tables.get('pods') === null ? null : [...seen].sort();
    const [answer, keeps] = await Promise.all([
      this.#once<HoursAnswer>(`${by} ${range} ${namespaces?.join() ?? ''}`, () =>
        hoursOfPrometheus(prometheus, { by, forMs, namespaces }, clock.now()),
      ),
      this.#once('retention', () => prometheus.retention()),
    ]);
    if (!answer.ok) return answer;
    return { ok: true, source: 'Prometheus', keeps, sinceMs, ...shown(answer.usage), silent: [] };
  }

  /** What the agents answer, by node; a text says why one did not. */
  #agents(range: string, forMs: number): Promise<ReadonlyMap<string, unknown>> {
    const { reader, model, clock } = this.#options;
    return this.#once(`agents ${range}`, async () => {
      const since = String(clock.now() - forMs);
      const open = [...model.nodeNames()];
      const answers = new Map<string, unknown>();
      const ask = async (): Promise<void> => {
        for (let node = open.pop(); node !== undefined; node = open.pop()) {
          const agent = model.agentOf(node);
          const answer = agent === null ? null : await reader.read(agent, '/api/use', { query: { since } });
          answers.set(node, answer?.ok === true ? answer.body : (answer?.message ?? 'no agent runs on it'));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, ask));
      return answers;
    });
  }

  #once<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#options.clock.now();
    for (const [other, { untilMs }] of this.#kept) if (now >= untilMs) this.#kept.delete(other);
    const kept = this.#kept.get(key) ?? { untilMs: now + KEPT_MS, answer: ask() };
    this.#kept.set(key, kept);
    return kept.answer as Promise<T>;
  }
}

function rangeMs(range: string): number | null {
  return Object.hasOwn(RANGES, range) ? (RANGES[range] ?? null) : null;
}

function shown({ rows, fromMs }: { readonly rows: readonly UsageRow[]; readonly fromMs: number }) {
  return {
    rows: rows.slice(0, MAX_ROWS),
    more: Math.max(0, rows.length - MAX_ROWS),
    fromMs: Number.isFinite(fromMs) ? fromMs : null,
  };
}

function namespacesOf(answers: ReadonlyMap<string, unknown>): readonly string[] {
  return [...answers.values()].flatMap((answer) =>
    list(record(answer).containers).map((one) => text(record(one).namespace)),
  );
}
