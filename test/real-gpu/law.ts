import { join } from 'node:path';
import type { BareGpu } from './bare-gpu.js';
import { BudgetOver } from './budget.js';

/** A table of figures; a row that could not be measured says why. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: (readonly string[])[];
}

export interface LawFigures {
  readonly tables: readonly Table[];
  /** What the budget left no time for. */
  readonly leftOut: readonly string[];
}

export interface LawOptions {
  /** Of each measurement of a rate. */
  readonly seconds: number;
  readonly rows: readonly (readonly Load[])[];
  /** Pairs of batches of calls, whose cost is measured. */
  readonly batches: number;
  readonly conduct: readonly string[];
  /** Tells what was measured. */
  readonly say: (line: string) => void;
}

/** A container and its kernels: their duration in microseconds, or `mixed` (native/test/gpu/spin.c). */
export interface Load {
  readonly share: number;
  readonly kernel: string;
}

const loads = (text: string): Load[] =>
  text.split(' ').map((one) => {
    const [share = '', kernel = ''] = one.split(':');
    return { share: Number(share), kernel };
  });

export const USUAL_OPTIONS: Omit<LawOptions, 'say'> = {
  seconds: 4,
  rows: [
    '30:2000 70:2000',
    '30:20 70:20',
    '30:200 70:200',
    '10:2000 20:2000 30:2000 40:2000',
    '50:20000 50:20000',
    '20:20000 80:200',
    '30:mixed 30:mixed',
    '30:mixed 30:mixed',
    '20:mixed 50:20000',
    '50:20',
  ].map(loads),
  batches: 1000,
  // Tests of conduct that were mended after they had failed on a GPU.
  conduct: ['control_launch_forms', 'control_memory_narrow', 'control_reported_use_long'],
};

/** Written before each call, so that the caches of a core hold nothing of the library. */
const COLD_KIB = 4096;
/** For starting a program, and for learning what its launches cost. */
const START_S = 30;
const LAWS = [
  { name: 'without turns', turns: false },
  { name: 'in turns', turns: true },
] as const;

type Step = readonly [table: Table, name: string, measure: () => Promise<readonly string[]>];

/**
 * Measures what a GPU does between contexts, the shares of containers without an agent by the old law (without turns)
 * and the new one (in turns), the cost of calls, and conduct; until the budget of `gpu` is over.
 */
export async function measureLaw(gpu: BareGpu, options: LawOptions): Promise<LawFigures> {
  const probe = gpu.compile('native/test/gpu/probe.c');
  const spin = gpu.compile('native/test/gpu/spin.c');
  await calibrate(gpu, spin);
  const leftOut: string[] = [];
  const tables: Table[] = [];
  const table = (title: string, ...columns: string[]): Table => {
    const made = { title, columns, rows: [] };
    tables.push(made);
    return made;
  };
  const steps = [
    ...probeSteps(gpu, probe, options, table),
    ...shareSteps(gpu, spin, options, table),
    ...costSteps(gpu, options, table),
    ...conductSteps(gpu, options, table),
  ];
  for (const [at, name, measure] of steps) {
    try {
      gpu.demandTime();
      for (const row of rowsOf(await measure(), at)) {
        at.rows.push(row);
        options.say(`${at.title}: ${row.join(' | ')}`);
      }
    } catch (error) {
      if (error instanceof BudgetOver) leftOut.push(`${at.title}: ${name}`);
      else at.rows.push([name, `failed: ${(error as Error).message.split('\n')[0]}`]);
    }
  }
  return { tables: tables.filter(({ rows }) => rows.length > 0), leftOut };
}

/** Kernels of every program have the length that they have on the idle GPU. */
async function calibrate(gpu: BareGpu, spin: string): Promise<void> {
  gpu.extend({ SPIN_ROUNDS_PER_MS: undefined, TEST_ROUNDS_PER_MS: undefined });
  const { stderr } = await gpu.outcome([spin, '0', '1000'], { seconds: START_S });
  const found = (name: string): string | undefined => new RegExp(`^${name} (\\d+)`, 'm').exec(stderr)?.[1];
  gpu.extend({ SPIN_ROUNDS_PER_MS: found('rounds_per_ms'), TEST_ROUNDS_PER_MS: found('test_rounds_per_ms') });
}

/** A step may measure several rows of a table at once. */
function rowsOf(cells: readonly string[], { columns }: Table): (readonly string[])[] {
  return Array.from({ length: cells.length / columns.length }, (_, row) =>
    cells.slice(row * columns.length, (row + 1) * columns.length),
  );
}

type Tables = (title: string, ...columns: string[]) => Table;

const quantiles = (values: readonly number[]): string => values.map((value) => value.toFixed(0)).join(', ');

interface Gaps {
  readonly gaps: number;
  readonly awayPercent: number;
  readonly awayUs: readonly number[];
  readonly runningUs: readonly number[];
}

function probeSteps(gpu: BareGpu, probe: string, { seconds }: LawOptions, table: Tables): Step[] {
  const half = String(seconds / 2);
  const ask = async <T>(...args: string[]): Promise<T> => JSON.parse(await gpu.run([probe, ...args])) as T;
  const slices = table(
    'Time slices: two kernels that fill the GPU',
    'program',
    'away',
    'away for (us)',
    'running for (us)',
  );
  const switches = table(
    'A busy program beside one whose kernels come one by one',
    'kernel (us)',
    'the busy one is away for (us)',
    'switches there and back (us)',
    'kernel by events (us)',
    'launch to return (us)',
  );
  const events = table(
    'What a pair of events measures (us)',
    'kernel (us)',
    'around 0, 1, 8 kernels, idle stream',
    'queued stream',
    'a kernel without events',
  );
  return [
    [
      slices,
      'two kernels',
      async () => {
        const both = await Promise.all([ask<Gaps>('gaps', half, '20'), ask<Gaps>('gaps', half, '20')]);
        return both.flatMap(({ awayPercent, awayUs, runningUs }, at) => [
          String(at + 1),
          `${awayPercent} %`,
          quantiles(awayUs),
          quantiles(runningUs),
        ]);
      },
    ],
    ...['20', '200', '1000'].map((us): Step => [
      switches,
      us,
      async () => {
        const [busy, tick] = await Promise.all([
          ask<Gaps>('gaps', String(0.75 * seconds), '20'),
          ask<{ eventsUs: number[]; hostUs: number[] }>('tick', us, '3000', half),
        ]);
        const away = busy.awayUs[1] ?? 0;
        return [
          us,
          quantiles(busy.awayUs),
          (away - Number(us)).toFixed(0),
          quantiles(tick.eventsUs),
          quantiles(tick.hostUs),
        ];
      },
    ]),
    ...['20', '200'].map((us): Step => [
      events,
      us,
      async () => {
        const { idleUs, queuedUs, withoutUs } = await ask<
          Record<'idleUs' | 'queuedUs', number[]> & { withoutUs: number }
        >('events', us);
        return [us, idleUs.join(', '), queuedUs.join(', '), String(withoutUs)];
      },
    ]),
  ];
}

function shareSteps(gpu: BareGpu, spin: string, { seconds, rows }: LawOptions, table: Tables): Step[] {
  const wholes = new Map<string, Promise<number>>();
  const rate = async (kernel: string, slice: string | null): Promise<number> =>
    Number(await gpu.run([spin, String(seconds), kernel], { slice, seconds: seconds + START_S }));
  const whole = (kernel: string): Promise<number> => {
    const known = wholes.get(kernel) ?? rate(kernel, null);
    wholes.set(kernel, known);
    return known;
  };
  const shares = table(
    'Shares in percent of what a program does alone, without an agent',
    'containers (share:kernel in us)',
    ...LAWS.map(({ name }) => name),
  );
  return rows.map((row): Step => {
    const name = row.map(({ share, kernel }) => `${share}:${kernel}`).join(' ');
    return [
      shares,
      name,
      async () => {
        const alone: number[] = [];
        for (const { kernel } of row) alone.push(await whole(kernel));
        const cells = [name];
        for (const { turns } of LAWS) {
          const slices = await gpu.slices(
            row.map(({ share }) => share),
            turns,
          );
          const rates = await Promise.all(row.map(({ kernel }, at) => rate(kernel, slices[at] ?? null)));
          cells.push(rates.map((one, at) => ((100 * one) / (alone[at] ?? NaN)).toFixed(1)).join(', '));
        }
        return cells;
      },
    ];
  });
}

function costSteps(gpu: BareGpu, { batches }: LawOptions, table: Tables): Step[] {
  const costs = table('Cost of a call in ns', 'call', 'law', 'through the library', 'driver alone', 'added');
  const hook = gpu.compile('native/bench/hook.c');
  return LAWS.map(({ name, turns }): Step => [
    costs,
    name,
    async () => {
      const [slice = ''] = await gpu.slices([90, 10], turns);
      const text = await gpu.run([hook, gpu.controlPath, String(batches), String(COLD_KIB)], { slice, seconds: 120 });
      const byCall = new Map<string, (readonly [hooked: number, direct: number])[]>();
      for (const line of text.split('\n')) {
        const [call = '', hooked, direct] = line.split(' ');
        byCall.set(call, [...(byCall.get(call) ?? []), [Number(hooked), Number(direct)]]);
      }
      return [...byCall].flatMap(([call, pairs]) => [
        call,
        name,
        ...[
          median(pairs.map(([hooked]) => hooked)),
          median(pairs.map(([, direct]) => direct)),
          median(pairs.map(([hooked, direct]) => hooked - direct)),
        ].map((ns) => ns.toFixed(0)),
      ]);
    },
  ]);
}

function conductSteps(gpu: BareGpu, { conduct }: LawOptions, table: Tables): Step[] {
  const results = table('Conduct tests that were mended', 'test', 'result', 'says');
  return conduct.map((name): Step => [
    results,
    name,
    async () => {
      const program = gpu.compile(join('native/test', `${name}.c`));
      const { status, stdout } = await gpu.outcome([program], { hooked: true, seconds: 120, test: name });
      const result = status === 0 ? 'ok' : status === 77 ? 'skipped' : `not ok (${status ?? 'killed'})`;
      const lines = stdout.trim().split('\n');
      const says = (status === 0 ? lines[0] : lines.at(-1)) ?? '';
      // Without the folders of this machine.
      return [name, result, says.replaceAll(/\/\S+\/(?=native\/)/g, '')];
    },
  ]);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
