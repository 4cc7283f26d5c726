/**
 * What a client's program reports. Programs print it line by line; lines of another form are ignored.
 *
 *     is WHAT: VALUE               the same alone and in a slice
 *     total WHAT: MIB              the GPU's memory, as the client shows it
 *     got WAY: MIB REASON          memory obtained until it was refused; `refused` for out of memory, `all` for as much as was asked for
 *     pace WHAT: GPU_MS WALL_MS    kernels that take so much of a GPU, and the time until they were done
 *     skip WHAT: REASON            could not be tried
 */
export interface Report {
  readonly is: ReadonlyMap<string, string>;
  readonly totals: ReadonlyMap<string, number>;
  readonly got: ReadonlyMap<string, { readonly mib: number; readonly reason: string }>;
  readonly pace: ReadonlyMap<string, { readonly gpuMs: number; readonly wallMs: number }>;
  readonly skipped: ReadonlyMap<string, string>;
}

/** The limits of one slice. */
export interface Expectation {
  readonly limitMib: number;
  /** Cores (hundredths of the GPU). */
  readonly share: number;
}

const LINE = /^(is|total|got|pace|skip) (.+?): (.*)$/;
/**
 * A container that was idle keeps tokens of 50 ms, and of 200 ms more for a thread that woke late: this part of a
 * second of work runs at once.
 */
const SHARE_SLACK = 1.5;

/** Reads the output of a program. An incomplete line is an error of the program. */
export function readReport(output: string): Report {
  const report = {
    is: new Map<string, string>(),
    totals: new Map<string, number>(),
    got: new Map<string, { mib: number; reason: string }>(),
    pace: new Map<string, { gpuMs: number; wallMs: number }>(),
    skipped: new Map<string, string>(),
  };
  for (const line of output.split('\n')) {
    const match = LINE.exec(line.trimEnd());
    if (match === null) continue;
    const [, kind, what = '', value = ''] = match;
    const [first = '', ...rest] = value.split(' ');
    if (kind === 'is') report.is.set(what, value);
    else if (kind === 'skip') report.skipped.set(what, value);
    else if (kind === 'total') report.totals.set(what, amount(first, line));
    else if (kind === 'got') report.got.set(what, { mib: amount(first, line), reason: rest.join(' ') });
    else report.pace.set(what, { gpuMs: amount(first, line), wallMs: amount(rest[0] ?? '', line) });
  }
  return report;
}

/** NVML's figures of engines that all containers of the GPU share. */
const SHARED_ENGINES = /encoder|decoder|FBC|JpgUtilization|OfaUtilization|DynamicPstates/i;

/** A slice refuses these figures for lack of permission: they would show what other containers do. */
function isRefusedByDesign(what: string, here: string): boolean {
  return SHARED_ENGINES.test(what) && /^error 4$|does not have permission/.test(here);
}

function amount(text: string, line: string): number {
  const value = Number(text);
  if (text === '' || !Number.isFinite(value)) throw new Error(`expected a number in "${line}"`);
  return value;
}

/** The differences between a program's report alone and an unlimited GPU. */
export function faultsAlone(report: Report, { limitMib }: Expectation): string[] {
  const faults: string[] = [];
  for (const [what, mib] of report.totals) if (mib <= limitMib) faults.push(`${what} shows ${mib} MiB of a whole GPU`);
  for (const [way, { mib, reason }] of report.got)
    if (reason !== 'all') faults.push(`${way} got ${mib} MiB, then: ${reason}`);
  if (report.is.size + report.totals.size + report.got.size + report.pace.size === 0) faults.push('reports nothing');
  return faults;
}

/**
 * The differences between the reports of a program's processes in one slice and the report alone, and what exceeds the
 * slice.
 */
export function faultsInSlice(alone: Report, processes: readonly Report[], expected: Expectation): string[] {
  const { limitMib, share } = expected;
  const faults = new Set<string>();
  for (const report of processes) {
    for (const what of new Set([...alone.is.keys(), ...report.is.keys()])) {
      const before = alone.is.get(what) ?? 'nothing';
      const here = report.is.get(what) ?? 'nothing';
      if (before !== here && !isRefusedByDesign(what, here))
        faults.add(`${what}: alone ${before}, in the slice ${here}`);
    }
    for (const what of alone.totals.keys()) {
      const mib = report.totals.get(what);
      if (mib !== limitMib) faults.add(`${what} shows ${mib ?? 'nothing'} instead of ${limitMib} MiB`);
    }
    for (const what of alone.pace.keys()) {
      const { gpuMs, wallMs } = report.pace.get(what) ?? { gpuMs: Infinity, wallMs: 1 };
      if ((gpuMs / wallMs) * 100 > share * SHARE_SLACK)
        faults.add(`${what}: kernels of ${gpuMs} ms were done after ${wallMs} ms, at a share of ${share} %`);
    }
  }
  for (const way of alone.got.keys()) {
    const got = processes.map((report) => report.got.get(way));
    const sum = got.reduce((mib, one) => mib + (one?.mib ?? 0), 0);
    if (sum > limitMib) faults.add(`${way} got ${sum} MiB at a limit of ${limitMib}`);
    if (sum === 0) faults.add(`${way} got nothing`);
    for (const one of got)
      if (one?.reason !== 'refused') faults.add(`${way} ended with "${one?.reason ?? 'nothing'}" instead of "refused"`);
  }
  return [...faults];
}
