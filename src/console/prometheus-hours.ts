import { mostFirst, NO_GROUP, usageRow, type Usage, type UsageBy } from './gpu-hours.js';
import type { InstantAnswer, Prometheus, Sample } from './prometheus.js';

export interface HoursQuestion {
  readonly by: UsageBy;
  /** Length of time until now. */
  readonly forMs: number;
  /** Only these; null: all. */
  readonly namespaces: readonly string[] | null;
}

export type HoursAnswer =
  | { readonly ok: true; readonly usage: Usage }
  /** A sentence. */
  | { readonly ok: false; readonly reason: string };

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Labels by which the sums of a query differ. */
const KEYS: Readonly<Record<UsageBy, string>> = {
  namespace: 'namespace',
  pod: 'namespace, pod',
  group: 'quota_group',
  node: 'node',
};

/** Sums up GPU-hours from the agents' metrics in Prometheus. Never rejects. */
export async function hoursOfPrometheus(
  prometheus: Pick<Prometheus, 'instant'>,
  { by, forMs, namespaces }: HoursQuestion,
  now: number,
): Promise<HoursAnswer> {
  const { window, stepMs, endMs } = windowOf(forMs, now);
  const hours = (metric: string): string =>
    `sum_over_time((sum by (${KEYS[by]}) (${joined(metric, by, namespaces)}))${window}) * ${stepMs} / 3600000`;
  const podsOf = `max by (${KEYS[by]}, namespace, pod) (${joined(ALLOCATED, by, namespaces)})`;
  const answers = await Promise.all(
    [
      hours(ALLOCATED),
      hours(USED),
      `count by (${KEYS[by]}) (max_over_time((${podsOf})${window}))`,
      `min_over_time((min(timestamp(vgpu_gpus)))${window})`,
    ].map((query) => prometheus.instant(query, endMs)),
  );
  const refused = answers.find((answer) => !answer.ok);
  if (refused?.ok === false) return refused;
  const [allocated, used, pods, from] = answers.map(samplesOf) as [
    readonly Sample[],
    readonly Sample[],
    readonly Sample[],
    readonly Sample[],
  ];
  const [usedOf, podsOfName] = [byName(used, by), byName(pods, by)];
  const rows = [...byName(allocated, by)].map(([name, value]) =>
    usageRow(name, value, usedOf.get(name) ?? 0, podsOfName.get(name) ?? 0),
  );
  return { ok: true, usage: { rows: mostFirst(rows), fromMs: (from[0]?.value ?? Infinity) * 1_000 } };
}

/** The namespaces whose pods had GPUs, as Prometheus knows; empty if it does not answer. Never rejects. */
export async function namespacesOfPrometheus(
  prometheus: Pick<Prometheus, 'instant'>,
  forMs: number,
  now: number,
): Promise<readonly string[]> {
  const { window, endMs } = windowOf(forMs, now);
  const query = `max_over_time((max by (namespace) (${ALLOCATED}))${window})`;
  return samplesOf(await prometheus.instant(query, endMs)).flatMap(({ labels }) => labels.namespace ?? []);
}

const ALLOCATED = 'vgpu_container_requested_ratio';
const USED = 'vgpu_container_used_ratio';

/**
 * The range and the step of a subquery. Sums over samples would depend on how often Prometheus scrapes; a subquery
 * looks at the same moments everywhere, one in each step.
 */
function windowOf(
  forMs: number,
  now: number,
): { readonly window: string; readonly stepMs: number; readonly endMs: number } {
  const stepMs = forMs <= DAY_MS ? MINUTE_MS : forMs <= 7 * DAY_MS ? 5 * MINUTE_MS : 15 * MINUTE_MS;
  const endMs = Math.floor(now / stepMs) * stepMs;
  const seconds = Math.max(1, Math.round(forMs / stepMs)) * (stepMs / 1_000) - 1;
  return { window: `[${seconds}s:${stepMs / 1_000}s]`, stepMs, endMs };
}

/** A metric of containers with the labels by which it is summed up. */
function joined(metric: string, by: UsageBy, namespaces: readonly string[] | null): string {
  const selected = `${metric}${selector(namespaces)}`;
  const container = 'instance, namespace, pod, container';
  switch (by) {
    case 'node':
      return `${selected} * on (instance) group_left (node) max by (instance, node) (vgpu_build_info)`;
    case 'group':
      return `sum by (${container}) (${selected}) * on (${container}) group_left (quota_group) max by (${container}, quota_group) (vgpu_allocation_info{pod!=""})`;
    default:
      return selected;
  }
}

/** Names of namespaces have letters, digits and dashes only, so none needs an escape. */
function selector(namespaces: readonly string[] | null): string {
  if (namespaces === null) return '';
  const names = namespaces.filter((name) => /^[a-z0-9-]+$/u.test(name)).sort();
  return `{namespace=~"${names.join('|')}"}`;
}

function byName(samples: readonly Sample[], by: UsageBy): ReadonlyMap<string, number> {
  return new Map(samples.map(({ labels, value }) => [nameOf(labels, by), value]));
}

function nameOf({ namespace = '', pod = '', quota_group: group = '', node = '' }: Sample['labels'], by: UsageBy) {
  return { namespace, pod: `${namespace}/${pod}`, group: group || NO_GROUP, node: node || '(unknown)' }[by];
}

function samplesOf(answer: InstantAnswer): readonly Sample[] {
  return answer.ok ? answer.samples : [];
}
