import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readExports } from '../../src/agent/libraries/elf-file.js';
import type { Diagnosis } from '../../src/agent/doctor/diagnosis.js';
import { packageFile } from '../../src/host/package-files.js';
import { NotInstallable, type Workshop } from '../clients/workshop.js';
import { MAIN } from '../harness/programs.js';
import type { DriverMachine, Place, Printed } from './driver-machine.js';
import { driverFiles } from './host-layouts.js';
import { cudaCalls, nvmlCalls, refusedCalls } from './known-calls.js';
import type { Branch } from './packages.js';

/** What one check of a branch found; without faults it passed. */
export interface CheckResult {
  readonly faults: readonly string[];
  /** What was compared, for the reader. */
  readonly done: string;
  /** The reason why the check could not run. */
  readonly skipped?: string;
}

export interface Check {
  /** A sentence about the branch. */
  readonly title: string;
  readonly run: (machine: DriverMachine, workshop: Workshop) => Promise<CheckResult>;
}

const LIBRARIES = ['libcuda.so.1', 'libnvidia-ml.so.1'] as const;
/** Names that programs and debuggers look up and that the control libraries do not know. */
const UNKNOWN_TO_US = /^(cudbg|cuEGLApiInit$|cuMemGetAttribute|nvmlInternalGetExportTable$)/;
/** NVML_ERROR_NO_PERMISSION */
const NO_PERMISSION = 4;
/**
 * The probe calls cuInit itself and leaves NVML uninitialised; the error string is an address, and the answer about a
 * user object depends on the address that it gets.
 */
const NOT_CALLED = /^(cuInit|nvmlInit\w*|nvmlErrorString)$|UserObject/;
/** What differs from run to run: times of logs, addresses, free memory of the machine, pids. */
const ACCIDENTAL =
  /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d |0x[0-9a-f]{6,}|(?<=Memory\.(?:Total|Free)\.*: )\d+ MB|(?<=process )\d+/g;

/** The gdb in cuda-gdb does not know sections of newer C libraries; it says so in the order in which it finds them. */
const OF_OLD_GDB = /^BFD: |Shared library architecture unknown/;

async function exportsOf(machine: DriverMachine, soname: string): Promise<string[]> {
  const read = await readExports(join(machine.libraries('alone'), soname));
  if (!read.ok) throw new Error(`${soname}: ${read.reason}`);
  return [...read.value].sort();
}

const knownSymbols = (soname: string): string[] =>
  (soname === 'libcuda.so.1' ? cudaCalls() : nvmlCalls()).map(({ symbol }) => symbol);

const nameOf = (line: string): string => line.split(' ')[0] ?? '';

/** The first differences between two lists of lines, each line named by its beginning up to `: ` or a space. */
function differences(alone: readonly string[], inFront: readonly string[], most = 10): string[] {
  const found: string[] = [];
  for (let at = 0; at < Math.max(alone.length, inFront.length) && found.length < most; at += 1)
    if (alone[at] !== inFront[at])
      found.push(`alone: ${alone[at] ?? 'nothing'}; in front: ${inFront[at] ?? 'nothing'}`);
  return found;
}

const sameNames: Check = {
  title: 'dlsym finds the names of the driver and no others',
  async run(machine) {
    const faults: string[] = [];
    const counts: string[] = [];
    for (const soname of LIBRARIES) {
      const driver = await exportsOf(machine, soname);
      const known = knownSymbols(soname);
      const asked = [...new Set([...known, ...driver])].sort();
      const found = machine.probe('names', 'in front', soname, asked).map(nameOf);
      const extra = found.filter((name) => !driver.includes(name));
      const missing = driver.filter((name) => !found.includes(name));
      if (extra.length > 0)
        faults.push(`${soname}: ${extra.length} names that the driver lacks: ${extra.slice(0, 5).join(', ')}`);
      if (missing.length > 0)
        faults.push(`${soname}: ${missing.length} names of the driver are missing: ${missing.slice(0, 5).join(', ')}`);
      const lacks = known.filter((name) => !driver.includes(name)).length;
      const unknown = driver.filter((name) => UNKNOWN_TO_US.test(name)).length;
      counts.push(`${soname}: ${driver.length} names, of ours ${lacks} removed, ${unknown} that only the driver has`);
    }
    return { faults, done: counts.join('; ') };
  },
};

const sameLookups: Check = {
  title: 'cuGetProcAddress answers with the function of the driver, or with the hook of that function',
  async run(machine) {
    const soname = LIBRARIES[0];
    const driver = await exportsOf(machine, soname);
    const names = [...new Set([...cudaCalls().map(({ name }) => name), ...driver])].sort();
    const alone = machine.probe('lookups', 'alone', soname, names);
    if (alone.length === 0) return { faults: [], done: '', skipped: 'this branch has no cuGetProcAddress' };
    const hooked = new Set(
      cudaCalls()
        .filter((call) => call.hooked)
        .map(({ symbol }) => symbol),
    );
    const offsets = new Map(
      machine.probe('names', 'alone', soname, driver).map((line) => line.split(' ') as [string, string]),
    );
    const hookedOffsets = new Set([...offsets].filter(([name]) => hooked.has(name)).map(([, offset]) => offset));
    const expected = alone.map((line) => {
      const offset = / driver (\d+)$/.exec(line)?.[1];
      return offset !== undefined && hookedOffsets.has(offset) ? line.replace(/ driver (?=\d+$)/, ' hook ') : line;
    });
    const hooks = expected.filter((line) => line.includes(' hook ')).length;
    return {
      faults: differences(expected, machine.probe('lookups', 'in front', soname, names)),
      done: `${alone.length} look-ups, ${hooks} answered with a hook`,
    };
  },
};

const sameAnswers: Check = {
  title: 'calls without a GPU return what the driver returns',
  async run(machine) {
    const faults: string[] = [];
    const refused = refusedCalls();
    let calls = 0;
    let refusals = 0;
    for (const soname of LIBRARIES) {
      const names = (await exportsOf(machine, soname)).filter(
        (name) => /^(cu|nvml)[A-Z]/.test(name) && !NOT_CALLED.test(name),
      );
      const alone = machine.probe('calls', 'alone', soname, names);
      const expected = alone.map((line) => {
        const name = nameOf(line);
        return refused.has(name) ? `${name} ${NO_PERMISSION}` : line;
      });
      calls += alone.length;
      refusals += names.filter((name) => refused.has(name)).length;
      faults.push(...differences(expected, machine.probe('calls', 'in front', soname, names), 40));
    }
    return { faults, done: `${calls} calls, of them ${refusals} that every container is refused` };
  },
};

const sameMirrors: Check = {
  title: 'hosts of every layout are mirrored alike',
  async run(machine) {
    const faults: string[] = [];
    const files = driverFiles(machine.branch);
    const lists = [...machine.mirrors].map(([layout, mirror]) => ({
      layout,
      names: readdirSync(join(mirror, 'lib64')).sort(),
    }));
    const [first] = lists;
    for (const { layout, names } of lists) {
      for (const file of files) if (!names.includes(file)) faults.push(`${layout.name}: ${file} is not in the mirror`);
      if (first !== undefined && names.join() !== first.names.join())
        faults.push(`${layout.name} has ${names.join(' ')}, ${first.layout.name} has ${first.names.join(' ')}`);
    }
    for (const [layout, mirror] of machine.mirrors) {
      const expected = machine.branch.nvidiaSmi !== null;
      if (existsSync(join(mirror, 'bin/nvidia-smi')) !== expected)
        faults.push(`${layout.name}: nvidia-smi ${expected ? 'is missing' : 'appears'}`);
    }
    return { faults, done: `${lists.map(({ layout }) => layout.name).join(', ')}; ${files.length} files each` };
  },
};

/** Runs a program in both places; its output and exit code have to be the same. */
function sameOutput(machine: DriverMachine, commands: readonly (readonly string[])[]): string[] {
  const describe = ({ status, stdout, stderr }: Printed): string[] => [
    `status ${status}`,
    ...`${stdout}\n${stderr}`.split('\n').filter((line) => !OF_OLD_GDB.test(line)),
  ];
  const say = (place: Place, command: readonly string[]): string[] =>
    describe(machine.run(place, command)).map((line) =>
      line.replaceAll(machine.libraries(place), 'LIBRARIES').replace(ACCIDENTAL, ''),
    );
  return commands.flatMap((command) =>
    differences(say('alone', command), say('in front', command), 2).map(
      (fault) => `${basename(command[0] ?? '')} ${command.slice(1).join(' ')}: ${fault}`,
    ),
  );
}

const program = (
  title: string,
  commands: (machine: DriverMachine, workshop: Workshop) => (readonly string[])[],
): Check => ({
  title: `${title} prints the same`,
  run(machine, workshop) {
    try {
      const wanted = commands(machine, workshop);
      return Promise.resolve({
        faults: sameOutput(machine, wanted),
        done: wanted
          .map((command) => [basename(command[0] ?? ''), ...command.slice(1).map((word) => basename(word))].join(' '))
          .join(', '),
      });
    } catch (error) {
      if (!(error instanceof NotInstallable)) throw error;
      return Promise.resolve({ faults: [], done: '', skipped: error.message });
    }
  },
});

function fetched({ programs }: Branch, name: string): string {
  if (programs === null) throw new NotInstallable(`the archive has no ${name}`);
  return join(programs, name);
}

const programs: readonly Check[] = [
  program('nvidia-smi', ({ branch }) => {
    if (branch.nvidiaSmi === null) throw new NotInstallable('the archive has no nvidia-smi of this branch');
    return [[], ['-L'], ['-q'], ['--version']].map((args) => [branch.nvidiaSmi ?? '', ...args]);
  }),
  program('go-nvml', (_, workshop) => {
    const examples = ['devices', 'compute-processes'];
    const folder = workshop.go('go-nvml', [
      '.',
      ...examples.map((name) => `github.com/NVIDIA/go-nvml/examples/${name}`),
    ]);
    return examples.map((name) => [join(folder, name)]);
  }),
  program('nvidia-ml-py', (_, workshop) => [
    [workshop.python('nvidia-ml-py').interpreter, packageFile('test/drivers/python/nvml.py')],
  ]),
  program('cuda-bindings', (_, workshop) => [
    [workshop.python('cuda-bindings').interpreter, packageFile('test/drivers/python/cuda.py')],
  ]),
  program('hashcat', (_, workshop) => [[workshop.tool('hashcat', 'hashcat'), '-I']]),
  program('FFmpeg', (_, workshop) => [
    [workshop.tool('ffmpeg', 'ffmpeg'), '-loglevel', 'error', '-init_hw_device', 'cuda'],
  ]),
  program('nvtop', ({ branch }) => [[fetched(branch, 'nvtop'), '-s']]),
  // The debugger finds the driver in the program that it starts, by the driver's names for debuggers.
  program('cuda-gdb', ({ branch }) => [
    [
      fetched(branch, 'cuda-gdb'),
      '--batch',
      ...['set environment LD_PRELOAD libcuda.so.1', 'run', 'print &cudbgApiInit != 0', 'info cuda devices'].flatMap(
        (command) => ['-ex', command],
      ),
      '/bin/true',
    ],
  ]),
];

export const BRANCH_CHECKS: readonly Check[] = [sameNames, sameLookups, sameAnswers, sameMirrors, ...programs];

/** `doctor` on a host that has the libraries of a driver, and no kernel driver. */
export const doctorCheck: Check = {
  title: 'doctor says that the kernel driver is missing, and nothing else of the driver',
  run(machine) {
    const [host = ''] = machine.hosts.values();
    const args = [MAIN, 'doctor', '--output', 'json', '--host-root', host].concat(
      '--volume-config',
      packageFile('etc/volume.conf'),
      '--driver',
      'nvidia',
    );
    const printed = machine.run('alone', [process.execPath, ...args]);
    const faults: string[] = [];
    const diagnoses = JSON.parse(printed.stdout) as readonly Diagnosis[];
    const of = (check: string) => diagnoses.filter((diagnosis) => diagnosis.check === check);
    if (!of('driver').some(({ state, what }) => state === 'failed' && /driver not loaded|kernel/i.test(what)))
      faults.push(`the driver's diagnosis names no kernel driver: ${JSON.stringify(of('driver'))}`);
    if (of('libraries').length !== 2 || of('libraries').some(({ state }) => state !== 'ok'))
      faults.push(`the libraries are not found: ${JSON.stringify(of('libraries'))}`);
    return Promise.resolve({
      faults,
      done: of('driver')
        .map(({ what }) => what)
        .join('; '),
    });
  },
};
