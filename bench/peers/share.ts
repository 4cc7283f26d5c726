import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { measured, type BenchOptions, type Measurement } from '../report.js';
import { stop, type MachineStatus } from '../sim/machine.js';
import { PeerMachine } from './container.js';
import { LIMITERS, type Library } from './library.js';

/** Peers need this long to settle. */
const WARM_UP_MS = 8000;
const SECONDS = 10;
const QUICK_SECONDS = 3;
const MAX_S = '3600';
const MEMORY_MIB = 8192;
const SHARES = [10, 30, 50, 70, 90];
const PATTERNS = ['async:20', 'async:200', 'async:2000', 'async:20000', 'grid:200:12800'];
/** Machines that run at once. */
const SIDE_BY_SIDE = 5;

interface Tenant {
  readonly share: number;
  readonly pattern: string;
  readonly processes: number;
}

const tenant = (share: number, pattern: string, processes = 1): Tenant => ({ share, pattern, processes });

/** Containers on one GPU. */
const NEIGHBOURS: readonly (readonly Tenant[])[] = [
  [tenant(30, 'async:200'), tenant(70, 'async:200')],
  [tenant(20, 'async:20'), tenant(80, 'async:20000')],
  [tenant(20, 'async:200'), tenant(30, 'async:2000'), tenant(50, 'async:20')],
  [tenant(40, 'async:200', 4), tenant(60, 'async:2000')],
  [tenant(10, 'async:200'), tenant(90, 'async:200')],
];

const LONE: readonly (readonly Tenant[])[] = PATTERNS.flatMap((pattern) =>
  SHARES.map((share) => [tenant(share, pattern)]),
);

interface Running {
  readonly machine: PeerMachine;
  readonly tenants: readonly Tenant[];
  readonly children: readonly (readonly ChildProcess[])[];
}

/** The share of the GPU that each container gets, by the GPU's own counters; the baseline is the requested share. */
export async function share(peers: string, quick: boolean, options: BenchOptions): Promise<void> {
  await measure('share', quick ? LONE.filter((_, at) => at % 5 === 2) : LONE, peers, quick, options);
}

/** The same with neighbours on the GPU. */
export async function neighbours(peers: string, quick: boolean, options: BenchOptions): Promise<void> {
  await measure('neighbours', NEIGHBOURS, peers, quick, options);
}

async function measure(
  kind: string,
  rows: readonly (readonly Tenant[])[],
  peers: string,
  quick: boolean,
  { section, report, note }: BenchOptions,
): Promise<void> {
  const details: Measurement[] = [];
  const errors = new Map<Library, number[]>();
  for (const library of LIMITERS) {
    const ofLibrary: number[] = [];
    for (let at = 0; at < rows.length; at += SIDE_BY_SIDE) {
      for (const { tenants, got, ended } of await runSideBySide(
        library,
        rows.slice(at, at + SIDE_BY_SIDE),
        peers,
        quick,
      )) {
        tenants.forEach((each, index) => {
          const others = tenants.filter((other) => other !== each).map(nameOf);
          const name = others.length === 0 ? nameOf(each) : `${nameOf(each)} beside ${others.join(', ')}`;
          details.push(measured(name, got[index] ?? NaN, '%', each.share, library));
          ofLibrary.push(Math.abs((got[index] ?? NaN) - each.share));
        });
        if (ended > 0) note(`${library}, ${tenants.map(nameOf).join(', ')}: ${ended} programs ended by themselves`);
      }
    }
    errors.set(library, ofLibrary);
  }
  for (const [what, of] of [
    ['mean error', (all: readonly number[]) => all.reduce((sum, error) => sum + error, 0) / all.length],
    ['largest error', (all: readonly number[]) => Math.max(...all)],
  ] as const) {
    const ours = of(errors.get('ours with agent') ?? []);
    for (const [library, all] of errors) report(measured(what, of(all), 'points', ours, library));
  }
  note('How far the received share is from the requested one, over all containers of the next table.');
  section(`${kind}-details`);
  note('20 us @30: a container whose kernels take 20 us requests a share of 30 %, which is the baseline.');
  for (const figure of details) report(figure);
}

function nameOf({ share: requested, pattern, processes }: Tenant): string {
  const [, us = '', blocks] = pattern.split(':');
  const time = Number(us) >= 1000 ? `${Number(us) / 1000} ms` : `${us} us`;
  const kernels = blocks === undefined ? time : `${time} on ${blocks} blocks`;
  return `${kernels} @${requested}${processes > 1 ? ` (${processes} processes)` : ''}`;
}

/** Runs each row on a machine of its own, all at the same time. */
async function runSideBySide(
  library: Library,
  rows: readonly (readonly Tenant[])[],
  peers: string,
  quick: boolean,
): Promise<{ readonly tenants: readonly Tenant[]; readonly got: readonly number[]; readonly ended: number }[]> {
  const running = await Promise.all(rows.map((tenants) => startRow(library, tenants, peers)));
  try {
    await sleep(WARM_UP_MS);
    const before = await Promise.all(running.map(({ machine }) => machine.status()));
    await sleep((quick ? QUICK_SECONDS : SECONDS) * 1000);
    const after = await Promise.all(running.map(({ machine }) => machine.status()));
    return running.map(({ tenants, children }, at) => {
      const [from, to] = [before[at], after[at]];
      if (from === undefined || to === undefined) throw new RangeError(`machine ${at} has no status`);
      const ended = children.flat().filter(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null);
      return { tenants, got: children.map((group) => rateOf(group, from, to)), ended: ended.length };
    });
  } finally {
    await Promise.all(running.flatMap(({ children }) => children.flat().map((child) => stop(child))));
    await Promise.all(running.map(({ machine }) => machine.close()));
  }
}

async function startRow(library: Library, tenants: readonly Tenant[], peers: string): Promise<Running> {
  const machine = await PeerMachine.open(peers);
  const children: ChildProcess[][] = [];
  for (const { share: requested, pattern, processes } of tenants) {
    const container = await machine.container(library, { share: requested, memoryMib: MEMORY_MIB });
    children.push(Array.from({ length: processes }, () => container.start('tenant', MAX_S, pattern)));
  }
  return { machine, tenants, children };
}

/** Percent of the GPU that the programs' kernels used between two samples. */
function rateOf(children: readonly ChildProcess[], from: MachineStatus, to: MachineStatus): number {
  const worked = children.reduce(
    (sum, { pid = 0 }) => sum + (to.workNs.get(pid) ?? 0) - (from.workNs.get(pid) ?? 0),
    0,
  );
  return (100 * worked) / (to.nowNs - from.nowNs);
}
