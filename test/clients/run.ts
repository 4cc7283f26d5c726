import { readdirSync } from 'node:fs';
import { Command } from 'commander';
import { packageFile } from '../../src/host/package-files.js';
import type { Client, Program } from './client.js';
import { ClientMachine, whyNoMachine, type Run } from './machine.js';
import { faultsAlone, faultsInSlice, readReport, type Report } from './report.js';
import { ResultsFile, type ProgramResult } from './results.js';
import { writeTable } from './table.js';
import { InstallationTimedOut, NotInstallable, Workshop } from './workshop.js';

const LIMIT_MIB = 1_000;
const SHARE = 20;

const command = new Command('npm run test:clients --')
  .description(
    'Runs programs of other projects, alone on the simulated driver and in a slice of it, and reports the differences. ' +
      'A program that cannot be installed is skipped with the reason.',
  )
  .argument('[clients...]', 'folders of test/clients (default: all)')
  .option('--quick', 'only the fast programs')
  .option('--verbose', "print the programs' output")
  .option('--table', 'run nothing; write the latest results into docs/reference/compatibility.md')
  .parse();

async function main(names: readonly string[]): Promise<number> {
  const {
    quick = false,
    verbose = false,
    table = false,
  } = command.opts<{ quick?: boolean; verbose?: boolean; table?: boolean }>();
  const workshop = new Workshop({ quick: quick });
  const results = new ResultsFile(workshop.resultsPath);
  if (table) {
    writeTable(packageFile('docs/reference/compatibility.md'), results.read());
    return 0;
  }
  const reason = whyNoMachine();
  if (reason !== null) {
    console.log(`clients skipped: ${reason}`);
    return 0;
  }
  const clients = await loadClients(names, quick);
  if (clients.length === 0) {
    console.error(`no client is called ${names.join(' or ')}; expected one of the folders of test/clients`);
    return 2;
  }
  const machine = new ClientMachine({ limitMib: LIMIT_MIB, share: SHARE });
  const counts = { passed: 0, skipped: 0 };
  const failures: string[] = [];
  try {
    for (const [index, [name, client]] of clients.entries()) {
      const line = `${index + 1} - ${client.title} ${client.version}`;
      let programs: readonly Program[];
      try {
        programs = client.programs(workshop);
      } catch (error) {
        if (error instanceof InstallationTimedOut) {
          failures.push(name);
          console.log(`not ok ${line}: not installed`);
          console.log(`# ${error.message}`);
          continue;
        }
        if (!(error instanceof NotInstallable)) throw error;
        counts.skipped += 1;
        console.log(`ok ${line} # SKIP ${error.message}`);
        continue;
      }
      const done: ProgramResult[] = [];
      for (const program of programs) {
        const result = await runProgram(machine, program, verbose);
        done.push(result);
        for (const fault of result.alone) console.log(`# ${program.name}, alone: ${fault}`);
        for (const fault of result.inSlice) console.log(`# ${program.name}, in a slice: ${fault}`);
        for (const [what, why] of Object.entries(result.skipped))
          console.log(`# ${program.name}: ${what} skipped: ${why}`);
      }
      const failed = done.some(({ alone, inSlice }) => alone.length + inSlice.length > 0);
      if (failed) failures.push(name);
      else counts.passed += 1;
      console.log(`${failed ? 'not ok' : 'ok'} ${line}: ${done.map(({ name: program }) => program).join('; ')}`);
      const { title, version, way, limits = '' } = client;
      results.write(name, { title, version, way, limits, programs: done });
    }
  } finally {
    machine.close();
  }
  console.log(`1..${clients.length}`);
  for (const name of failures) console.log(`# failed: ${name}`);
  console.log(`clients: ${counts.passed} passed, ${failures.length} failed, ${counts.skipped} skipped`);
  return failures.length === 0 ? 0 : 1;
}

/** The clients in the order of their folders. */
async function loadClients(wanted: readonly string[], quick: boolean): Promise<[string, Client][]> {
  const here = new URL('.', import.meta.url);
  const clients: [string, Client][] = [];
  for (const entry of readdirSync(here, { withFileTypes: true })) {
    if (!entry.isDirectory() || (wanted.length > 0 && !wanted.includes(entry.name))) continue;
    const { client } = (await import(new URL(`${entry.name}/client.js`, here).href)) as { readonly client: Client };
    if (quick && client.quick !== true) continue;
    clients.push([entry.name, client]);
  }
  return clients;
}

async function runProgram(machine: ClientMachine, program: Program, verbose: boolean): Promise<ProgramResult> {
  const alone = await machine.alone(program);
  const inSlice = await machine.inSlice(program);
  if (verbose)
    for (const [where, { outputs }] of [['alone', alone] as const, ['in a slice', inSlice] as const])
      for (const { stdout, stderr, status } of outputs)
        console.log(`--- ${program.name}, ${where}: status ${status}\n${stdout}${stderr}`);
  const reportsAlone = readReports(program, alone);
  const reportsInSlice = readReports(program, inSlice);
  const [before] = reportsAlone.reports;
  const mayFail = program.mayFail === true;
  return {
    name: program.name,
    facts: before?.is.size ?? 0,
    passes: [...(before?.is.values() ?? [])].filter((value) => value === 'ok').length,
    alone: [
      ...(mayFail ? [] : faultsOfEnd(alone)),
      ...reportsAlone.faults,
      ...(before === undefined ? [] : faultsAlone(before, machine.expectation)),
    ],
    inSlice: [
      ...(mayFail ? [] : faultsOfEnd(inSlice)),
      ...reportsInSlice.faults,
      ...inSlice.findings,
      ...(before === undefined ? [] : faultsInSlice(before, reportsInSlice.reports, machine.expectation)),
    ],
    skipped: Object.fromEntries(before?.skipped ?? []),
  };
}

/** The reports of a run's processes; unreadable output is a fault. */
function readReports(program: Program, { outputs }: Run): { readonly reports: Report[]; readonly faults: string[] } {
  const reports: Report[] = [];
  const faults: string[] = [];
  for (const output of outputs) {
    try {
      reports.push(readReport(program.describe === undefined ? output.stdout : program.describe(output)));
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error));
    }
  }
  return { reports, faults };
}

/** How processes failed, with their last output. */
function faultsOfEnd({ outputs }: Run): string[] {
  return outputs
    .filter(({ status }) => status !== 0)
    .map(({ status, stdout, stderr }) => {
      const last = `${stdout}\n${stderr}`.split('\n').findLast((line) => line.trim() !== '') ?? 'nothing said';
      return `${status === null ? 'ended by a signal or out of time' : `exit code ${status}`}: ${last.trim()}`;
    });
}

process.exitCode = await main(command.args);
