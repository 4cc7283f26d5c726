// node scripts/run-again.mjs FOLDER: what failed in continuous integration runs once more, alone.
//
// FOLDER has `steps.txt`, a line for each step, `NAME: SECONDS s, status STATUS`, and for a step that runs tests what it
// printed, NAME.out, with a line `# failed: FILE` for each file that failed. A file that passes now is unstable: FOLDER
// gets `unstable.txt`, with the first failure's details. The exit code is 0 if every failure was one of at most two
// unstable files.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** So many unstable files are left to whoever reads the list; more are a fault of the change or of the machine. */
const UNSTABLE_AT_MOST = 2;
/** More failures than this are not chance: nothing runs again. */
const AGAIN_AT_MOST = 5;
/** Lines of a failure that are kept. */
const KEPT = 40;

/** For each step the arguments of npm that run one file of it, whose name is as the step printed it. */
const RUN = {
  test: (file) => ['test', '--', file],
  long: (file) => ['test', '--', file],
  clients: (name) => ['run', 'test:clients', '--', '--quick', name],
  drivers: (name) => ['run', 'test:drivers', '--', name],
  tkestack: (name) => ['run', 'test:tkestack', '--', name.replace(/^tkestack /u, '')],
  'end-to-end': (name) => {
    const [, file, version] = /^(\S+\.e2e)\.js on (\S+)$/u.exec(name) ?? [];
    return ['run', 'test:e2e', '--', '--kubernetes', version, file];
  },
};

function main(folder) {
  const list = join(folder, 'unstable.txt');
  rmSync(list, { force: true });
  const steps = failedSteps(join(folder, 'steps.txt'));
  const failures = [];
  const red = [];
  for (const step of steps) {
    const names = RUN[step] === undefined ? [] : failedFiles(join(folder, `${step}.out`));
    if (names.length === 0) red.push(`${step} failed, and not in a file that can run again`);
    for (const name of names) failures.push({ step, name });
  }
  if (red.length > 0 || failures.length > AGAIN_AT_MOST) {
    for (const { step, name } of failures) red.push(`${step}: ${name} failed`);
    return ended(red, []);
  }
  const unstable = [];
  for (const { step, name } of failures) {
    console.log(`\nonce more, alone: ${name}`);
    if (spawnSync('npm', RUN[step](name), { stdio: 'inherit' }).status === 0)
      unstable.push({ step, name, details: detailsOf(readFileSync(join(folder, `${step}.out`), 'utf8'), name) });
    else red.push(`${step}: ${name} failed twice`);
  }
  if (unstable.length > 0)
    writeFileSync(list, unstable.map(({ step, name, details }) => `${step}: ${name}\n${details}`).join('\n'));
  if (unstable.length > UNSTABLE_AT_MOST) red.push(`${unstable.length} files are unstable, ${UNSTABLE_AT_MOST} may be`);
  return ended(red, unstable);
}

function ended(red, unstable) {
  if (unstable.length > 0) {
    console.log('\nunstable: failed, and passed alone (CONTRIBUTING.md says what to do)');
    for (const { step, name, details } of unstable)
      console.log(`  ${step}: ${name}\n${details.replace(/^/gmu, '    ')}`);
  }
  if (red.length > 0) console.log(`\nfailed:\n${red.map((line) => `  ${line}`).join('\n')}`);
  return red.length === 0 ? 0 : 1;
}

function failedSteps(file) {
  const lines = readFileSync(file, 'utf8').matchAll(/^(.+): \d+ s, status (\d+)$/gmu);
  return [...lines].filter(([, , status]) => status !== '0').map(([, step]) => step);
}

function failedFiles(file) {
  if (!existsSync(file)) return [];
  return [...new Set([...readFileSync(file, 'utf8').matchAll(/^# failed: (.+)$/gmu)].map(([, name]) => name))];
}

/** What failed in a file, of the output of its step: the first lines of each failure. */
function detailsOf(output, name) {
  const lines = sectionOf(output, name).split('\n');
  const kept = [];
  let left = 0;
  for (const line of lines) {
    if (/^ *not ok /u.test(line)) left = 15;
    if (left > 0 && kept.length < KEPT) kept.push(line);
    left -= 1;
  }
  return `${(kept.length > 0 ? kept : lines.slice(-KEPT)).join('\n')}\n`;
}

/** A file of a tier comes before the line that says how it ended, an end-to-end file after its heading. */
function sectionOf(output, name) {
  const end = output.indexOf(`\n# ${name}: FAILED`);
  if (end >= 0) return output.slice(output.lastIndexOf('TAP version', end), end);
  const start = output.indexOf(`# ${name.replace(' on ', ' on Kubernetes ')}\n`);
  if (start < 0) return output;
  const next = output.indexOf(' on Kubernetes ', start + name.length + ' Kubernetes'.length + 3);
  return output.slice(start, next < 0 ? undefined : next);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined || !existsSync(join(folder, 'steps.txt'))) {
    console.error(`expected a folder with steps.txt, found ${folder ?? 'none'}: .ci/run writes it into build`);
    process.exitCode = 2;
  } else process.exitCode = main(folder);
}
