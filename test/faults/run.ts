import { mkdtempSync, existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { runHistories } from './campaign.js';

const command = new Command('npm run test:faults --')
  .description('Kills agents at any step of random histories, and checks what is left of each.')
  .option('--seed <number>', 'of the histories (default: another each time)', whole)
  .option('--runs <count>', 'agents that are killed', whole, 1_000)
  .option('--only <history>', 'repeats one history of the seed', whole)
  .option('--together <count>', 'histories at once', whole, 20)
  .option('--kills <count>', 'agents killed in one history', whole, 4)
  .parse();

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new InvalidArgumentError('Expected a whole number.');
  return value;
}

async function main(): Promise<number> {
  const {
    seed = Date.now() % 1_000_000,
    runs,
    only,
    together,
    kills,
  } = command.opts<{
    seed?: number;
    runs: number;
    only?: number;
    together: number;
    kills: number;
  }>();
  const indexes = only === undefined ? Array.from({ length: Math.ceil(runs / kills) }, (_, index) => index) : [only];
  const directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gmf-'));
  const begun = performance.now();
  try {
    const {
      histories,
      kills: killed,
      steps,
      failures,
    } = await runHistories({ directory, seed, indexes, together, kills });
    for (const { index, violations, story } of failures) {
      console.log(`\n# history ${index} of seed ${seed} went wrong: ${violations.join('; ')}\n${story}`);
      console.log(`# again: npm run test:faults -- --seed ${seed} --only ${index}`);
    }
    const named = [...steps].sort((a, b) => b[1] - a[1]);
    console.log(named.map(([step, count]) => `${String(count).padStart(6)}  ${step}`).join('\n'));
    console.log(
      `seed ${seed}: ${histories} histories, agents killed ${killed} times at ${named.length} steps in ${Math.round((performance.now() - begun) / 1_000)} s; ${failures.length} went wrong`,
    );
    return failures.length === 0 ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

process.exitCode = await main();
