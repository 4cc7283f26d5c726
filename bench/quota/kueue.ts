import { Quota } from '../../src/quota/index.js';

/** Workloads of one class in one queue, as Kueue's generator describes them. */
interface WorkloadClass {
  readonly name: string;
  readonly count: number;
  readonly everyMs: number;
  readonly runtimeMs: number;
  readonly request: number;
}

/** Sizes that Kueue publishes for its scheduler performance tests. Classes by falling priority. */
export interface KueueSetting {
  readonly name: string;
  readonly cohorts: number;
  readonly queues: number;
  readonly classes: readonly WorkloadClass[];
  /** The wall-clock time of Kueue's own run, mean of its published runs. It was limited by 50 API requests a second. */
  readonly publishedMs: number;
}

const NOMINAL_QUOTA = 20;
const BORROWING_LIMIT = 100;

export const KUEUE_SETTINGS: readonly KueueSetting[] = [
  {
    name: 'baseline, 15000 workloads in 30 queues',
    cohorts: 5,
    queues: 6,
    publishedMs: 351_116,
    classes: [
      { name: 'large', count: 50, everyMs: 1200, runtimeMs: 1000, request: 20 },
      { name: 'medium', count: 100, everyMs: 500, runtimeMs: 500, request: 5 },
      { name: 'small', count: 350, everyMs: 100, runtimeMs: 200, request: 1 },
    ],
  },
  {
    // The size is the published one, the mix of classes is the baseline's.
    name: 'large scale, 50000 workloads in 1000 queues',
    cohorts: 10,
    queues: 100,
    publishedMs: 1_179_000,
    classes: [
      { name: 'large', count: 5, everyMs: 1200, runtimeMs: 1000, request: 20 },
      { name: 'medium', count: 10, everyMs: 500, runtimeMs: 500, request: 5 },
      { name: 'small', count: 35, everyMs: 100, runtimeMs: 200, request: 1 },
    ],
  },
];

export interface Replayed {
  readonly workloads: number;
  readonly decisions: number;
  /** Until the last workload was done, in simulated time. */
  readonly makespanMs: number;
  readonly cpuMs: number;
}

interface Waiting {
  readonly name: string;
  readonly queue: number;
}

/** Workloads that wait in one cohort, of one class. First come, first served. */
class Line {
  readonly of: WorkloadClass;
  #waiting: Waiting[] = [];

  constructor(of: WorkloadClass) {
    this.of = of;
  }

  join(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /**
   * Removes the workloads that `isAdmitted` admits, until one is refused and `isFull` reports that the others would be
   * too.
   */
  serve(isFull: () => boolean, isAdmitted: (waiting: Waiting) => boolean): void {
    const staying: Waiting[] = [];
    let at = 0;
    for (let full = false; at < this.#waiting.length && !full; at++) {
      const waiting = this.#waiting[at] as Waiting;
      if (isAdmitted(waiting)) continue;
      staying.push(waiting);
      full = isFull();
    }
    if (at > 0) this.#waiting = [...staying, ...this.#waiting.slice(at)];
  }
}

/**
 * Lets the generator's workloads arrive, wait, run and end, millisecond by millisecond, while the engine decides which
 * of them run.
 */
export function replayKueue({ cohorts, queues, classes }: KueueSetting): Replayed {
  const before = process.cpuUsage();
  let now = 0;
  const quota = new Quota({ clock: () => now });
  for (let cohort = 0; cohort < cohorts; cohort++) {
    quota.createGroup({ name: `cohort-${cohort}`, hard: { 'requests.cpu': NOMINAL_QUOTA * queues } });
    for (let queue = 0; queue < queues; queue++) {
      quota.createGroup({
        name: `queue-${cohort}-${queue}`,
        parent: `cohort-${cohort}`,
        mode: 'elastic',
        hard: { 'requests.cpu': NOMINAL_QUOTA },
        borrow: { 'requests.cpu': BORROWING_LIMIT },
      });
    }
  }
  const total = cohorts * queues * classes.reduce((sum, { count }) => sum + count, 0);
  const lines = Array.from({ length: cohorts }, () => classes.map((each) => new Line(each)));
  const ends = new Map<number, { readonly cohort: number; readonly name: string }[]>();
  let [done, decisions] = [0, 0];
  const admit = (cohort: number, { request, runtimeMs }: WorkloadClass, { name, queue }: Waiting): boolean => {
    decisions++;
    const group = `queue-${cohort}-${queue}`;
    const { allowed } = quota.admit({
      workload: { kind: 'Workload', name },
      group,
      podSets: [{ count: 1, requests: { cpu: request } }],
    });
    if (allowed) {
      const ending = ends.get(now + runtimeMs);
      if (ending === undefined) ends.set(now + runtimeMs, [{ cohort, name }]);
      else ending.push({ cohort, name });
    }
    return allowed;
  };
  const roomIn = (cohort: number): number =>
    Number(quota.status(`cohort-${cohort}`)?.room.get('requests.cpu') ?? 0n) / 1000;
  for (; done < total; now++) {
    const woken = new Set<number>();
    for (const { cohort, name } of ends.get(now) ?? []) {
      quota.release({ kind: 'Workload', name });
      done++;
      woken.add(cohort);
    }
    ends.delete(now);
    for (const [rank, { name, everyMs, count }] of classes.entries()) {
      if (now % everyMs !== 0 || now / everyMs >= count) continue;
      for (let cohort = 0; cohort < cohorts; cohort++) {
        woken.add(cohort);
        for (let queue = 0; queue < queues; queue++)
          lines[cohort]?.[rank]?.join({ name: `${name}-${cohort}-${queue}-${now}`, queue });
      }
    }
    for (const cohort of woken) {
      for (const line of lines[cohort] ?? [])
        line.serve(
          () => roomIn(cohort) < line.of.request,
          (waiting) => admit(cohort, line.of, waiting),
        );
    }
  }
  const { user, system } = process.cpuUsage(before);
  return { workloads: total, decisions, makespanMs: now - 1, cpuMs: (user + system) / 1000 };
}
