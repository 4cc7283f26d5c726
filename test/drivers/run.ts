import { Argument, Command } from 'commander';
import { Workshop } from '../clients/workshop.js';
import { cdiCheck } from './cdi-check.js';
import { BRANCH_CHECKS, doctorCheck, type Check } from './checks.js';
import { DriverMachine, whyNoMachine } from './driver-machine.js';
import { BRANCH_NAMES, DriverPackages, NotAvailable, type Branch } from './packages.js';

/** These need a kernel of the node's kind only once, not for each branch. */
const CHECKS: readonly Check[] = [...BRANCH_CHECKS, cdiCheck, doctorCheck];

const command = new Command('npm run test:drivers --')
  .description(
    "Runs the control library in front of NVIDIA's own libraries. Packages come from Debian's archive into a folder " +
      'outside of this repository; branches and programs that cannot be had are skipped with the reason. Output is TAP.',
  )
  .addArgument(new Argument('[branches...]', 'only these (default: all)').choices(BRANCH_NAMES))
  .parse();

async function main(branches: readonly string[]): Promise<number> {
  const reason = DriverPackages.whyNone() ?? whyNoMachine();
  if (reason !== null) {
    console.log(`1..0 # SKIP drivers: ${reason}`);
    return 0;
  }
  const report = new Report();
  const packages = new DriverPackages();
  const workshop = new Workshop({ quick: false });
  try {
    for (const name of branches.length > 0 ? branches : BRANCH_NAMES) {
      const branch = fetch(packages, name, report);
      if (branch !== null) await examine(branch, workshop, report);
    }
  } finally {
    packages.close();
  }
  return report.end();
}

function fetch(packages: DriverPackages, name: string, report: Report): Branch | null {
  try {
    return packages.fetch(name);
  } catch (error) {
    if (!(error instanceof NotAvailable)) throw error;
    report.skip(`driver ${name}`, error.message);
    return null;
  }
}

async function examine(branch: Branch, workshop: Workshop, report: Report): Promise<void> {
  const machine = await DriverMachine.open(branch);
  const failedBefore = report.failed;
  try {
    for (const check of CHECKS) {
      const title = `driver ${branch.version}: ${check.title}`;
      const { faults, done, skipped } = await check.run(machine, workshop);
      if (skipped !== undefined) report.skip(title, skipped);
      else report.result(title, faults, done);
    }
  } finally {
    machine.close();
  }
  if (report.failed > failedBefore) console.log(`# failed: ${branch.name}`);
}

/** Prints results as TAP, and counts them. */
class Report {
  #count = 0;
  #failed = 0;
  #skipped = 0;

  get failed(): number {
    return this.#failed;
  }

  skip(title: string, why: string): void {
    this.#count += 1;
    this.#skipped += 1;
    console.log(`ok ${this.#count} - ${title} # SKIP ${why}`);
  }

  result(title: string, faults: readonly string[], done: string): void {
    this.#count += 1;
    if (faults.length > 0) this.#failed += 1;
    console.log(`${faults.length > 0 ? 'not ok' : 'ok'} ${this.#count} - ${title}`);
    for (const fault of faults) console.log(`  # ${fault}`);
    if (faults.length === 0) console.log(`  # ${done}`);
  }

  end(): number {
    console.log(`1..${this.#count}`);
    const passed = this.#count - this.#failed - this.#skipped;
    console.log(`drivers: ${passed} passed, ${this.#failed} failed, ${this.#skipped} skipped`);
    return this.#failed === 0 ? 0 : 1;
  }
}

process.exitCode = await main(command.args);
