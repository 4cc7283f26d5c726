// npm run test:stalls: runs test files while random processes of theirs stand still for a moment, as on a host that is busy.
import { Command } from 'commander';
import { readdirSync, readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build, lineOf, runEach, testFiles, withoutDetails } from './test-files.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const STALL_MS = { least: 300, most: 900 };
/** Between two stalls of a file. */
const PAUSE_MS = { least: 50, most: 1_000 };
/** Characters of a command. */
const SHOWN = 150;

const command = new Command('npm run test:stalls --')
  .description(
    'Runs test files, one at a time, and at random moments stops a random process of the file (SIGSTOP to its own or one ' +
      'that descends from it) for 0.3 to 0.9 s. Of a file that fails it prints the results and which processes were stopped.',
  )
  .argument('[files...]', 'test files or folders (default: all of npm test)')
  .option('--seed <number>', 'which processes and moments are drawn (default: another one at each run)', Number)
  .option('--rounds <number>', 'how often each file runs', Number, 1)
  .parse();

async function main(names) {
  const { rounds, seed = Date.now() % 1_000_000 } = command.opts();
  const files = testFiles(names.length === 0 ? ['test'] : names);
  await build();
  const { generator } = await import('../dist/test/generator.js');
  const failed = [];
  let stalls;
  process.once('exit', () => stalls?.end());
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => process.exit(1));
  for (let round = 1; round <= rounds; round++)
    for (const [index, file] of files.entries()) {
      stalls = new Stalls(generator(seed + 1_009 * round + 31 * index));
      await runEach(
        [file],
        { jobs: 1, flags: ['--enable-source-maps'], started: (child) => stalls.start(child) },
        (result) => {
          console.log(`${lineOf(result)}, ${stalls.stopped.length} stalls`);
          if (result.passed) return;
          failed.push(file);
          console.log(`${withoutDetails(result.output)}${result.errors}# seed ${seed}, round ${round}`);
          for (const line of stalls.stopped) console.log(`# ${line}`);
        },
      );
    }
  console.log(`# seed ${seed}: ${rounds * files.length - failed.length} of ${rounds * files.length} runs passed`);
  for (const file of failed) console.log(`# failed: ${file}`);
  return failed.length === 0 ? 0 : 1;
}

/** Stops processes of one test file, until it ends. */
class Stalls {
  /** A line for each stall. */
  stopped = [];
  #random;
  #standing = null;

  constructor(random) {
    this.#random = random;
  }

  start(child) {
    const began = performance.now();
    let ended = false;
    child.once('exit', () => (ended = true));
    const loop = async () => {
      for (;;) {
        await delay(this.#between(PAUSE_MS));
        if (ended) return;
        const alive = familyOf(child.pid);
        const chosen = alive[Math.floor(this.#random() * alive.length)];
        const milliseconds = this.#between(STALL_MS);
        if (chosen === undefined) continue;
        const at = ((performance.now() - began) / 1000).toFixed(2);
        if (!signal(chosen, 'SIGSTOP')) continue;
        this.#standing = chosen;
        this.stopped.push(
          `at ${at} s for ${milliseconds.toFixed(0)} ms: ${chosen.pid} ${chosen.command.slice(0, SHOWN)}`,
        );
        await delay(milliseconds);
        this.end();
      }
    };
    void loop();
  }

  /** Lets the process go on that stands still. */
  end() {
    if (this.#standing !== null) signal(this.#standing, 'SIGCONT');
    this.#standing = null;
  }

  #between({ least, most }) {
    return least + this.#random() * (most - least);
  }
}

/** Signals a process, unless it has ended and another one has its id. */
function signal({ pid, began }, name) {
  try {
    return statOf(pid)?.began === began && process.kill(pid, name);
  } catch {
    return false;
  }
}

/** A process and all that descend from it, without those that have ended. */
function familyOf(root) {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .flatMap((name) => statOf(Number(name)) ?? []);
  const family = new Set([root]);
  // Sorted by their start, parents come before their children.
  for (const { pid, parent } of all.sort((one, other) => one.began - other.began || one.pid - other.pid))
    if (family.has(parent)) family.add(pid);
  return all.filter(({ pid, state }) => family.has(pid) && state !== 'Z');
}

/** proc_pid_stat(5); undefined: there is no such process. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const end = stat.lastIndexOf(')');
    // State, parent, and as the 22nd field the start in ticks since boot.
    const fields = stat.slice(end + 2).split(' ');
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      .split('\0')
      .map((word) => word.replace(ROOT, ''))
      .join(' ');
    return { pid, command, state: fields[0], parent: Number(fields[1]), began: Number(fields[19]) };
  } catch {
    return undefined;
  }
}

try {
  process.exitCode = await main(command.args);
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
