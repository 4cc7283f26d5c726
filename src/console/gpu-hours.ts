import { list, record, text } from '../kube/json.js';

/** What GPU-hours are summed up by. */
export const USAGE_BY = ['namespace', 'pod', 'group', 'node'] as const;

export type UsageBy = (typeof USAGE_BY)[number];

/** GPU-hours of one namespace, pod, quota group or node: half a GPU for two hours is one. */
export interface UsageRow {
  readonly name: string;
  readonly allocatedGpuHours: number;
  readonly usedGpuHours: number;
  /** Used as a part of allocated; null where nothing was allocated. */
  readonly usedPart: number | null;
  readonly pods: number;
  /** As `node:index`, ascending; absent where the source does not tell. */
  readonly gpus?: readonly string[];
}

export interface Usage {
  /** Those with most allocated hours first. */
  readonly rows: readonly UsageRow[];
  /** From when the source knows, milliseconds since 1970. */
  readonly fromMs: number;
}

/** The name of what belongs to no quota group. */
export const NO_GROUP = '(no group)';

const HOUR_SECONDS = 3_600;

interface Sum {
  readonly gpus: Set<string>;
  readonly pods: Set<string>;
  allocatedSeconds: number;
  usedSeconds: number;
}

/**
 * Sums up what agents answered to `/api/use`, by node; texts, which say why an agent did not answer, are left out.
 * `sees`: whether a namespace counts.
 */
export function hoursOfAgents(
  answers: ReadonlyMap<string, unknown>,
  by: UsageBy,
  sees: (namespace: string) => boolean,
): Usage {
  const sums = new Map<string, Sum>();
  let fromMs = Infinity;
  for (const [node, answer] of answers) {
    if (typeof answer === 'string') continue;
    const { fromMs: knownMs, containers } = record(answer);
    if (typeof knownMs === 'number') fromMs = Math.min(fromMs, knownMs);
    for (const one of list(containers).map(record)) {
      const [namespace, group] = [text(one.namespace), text(one.quotaGroup)];
      if (!sees(namespace)) continue;
      const pod = `${namespace}/${text(one.pod)}`;
      const name = { namespace, pod, group: group || NO_GROUP, node }[by];
      const sum = sums.get(name) ?? { gpus: new Set(), pods: new Set(), allocatedSeconds: 0, usedSeconds: 0 };
      sums.set(name, sum);
      sum.pods.add(pod);
      for (const gpu of list(one.gpus)) sum.gpus.add(`${node}:${String(gpu)}`);
      sum.allocatedSeconds += Number(one.allocatedSeconds);
      sum.usedSeconds += Number(one.usedSeconds);
    }
  }
  const rows = [...sums].map(([name, { allocatedSeconds, usedSeconds, pods, gpus }]) => ({
    ...usageRow(name, allocatedSeconds / HOUR_SECONDS, usedSeconds / HOUR_SECONDS, pods.size),
    gpus: [...gpus].sort(),
  }));
  return { rows: mostFirst(rows), fromMs };
}

/** The row of an amount of hours, to two decimals, and to four below a tenth. */
export function usageRow(name: string, allocated: number, used: number, pods: number): UsageRow {
  const rounded = (hours: number): number => {
    const unit = hours < 0.1 ? 10_000 : 100;
    return Math.round(hours * unit) / unit;
  };
  return {
    name,
    allocatedGpuHours: rounded(allocated),
    usedGpuHours: rounded(used),
    usedPart: allocated === 0 ? null : Math.round((used / allocated) * 1000) / 1000,
    pods,
  };
}

export function mostFirst(rows: readonly UsageRow[]): readonly UsageRow[] {
  return [...rows].sort((a, b) => b.allocatedGpuHours - a.allocatedGpuHours || (a.name < b.name ? -1 : 1));
}

/** Headings of the cells of rows. */
export function usageHeadings(by: UsageBy, hasGpus: boolean): readonly string[] {
  return [by.toUpperCase(), 'ALLOCATED', 'USED', 'USE', 'PODS', ...(hasGpus ? ['GPUS'] : [])];
}

/** A row as texts, below its headings; `none` stands where there is no use. */
export function usageCells(row: UsageRow, hasGpus: boolean, none: string): readonly string[] {
  const { name, allocatedGpuHours, usedGpuHours, usedPart, pods, gpus = [] } = row;
  const part = usedPart === null ? none : `${Math.round(usedPart * 100)} %`;
  return [
    ...[name, String(allocatedGpuHours), String(usedGpuHours), part, String(pods)],
    ...(hasGpus ? [gpus.join(' ')] : []),
  ];
}
