import { mkdtempSync, existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runHistories } from './campaign.js';

/**
 * `npm run test:faults -- --seed N --runs 1000`: kills so many agents; `--only N`: repeats one history of that seed.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      runs: { type: 'string', default: '1000' },
      only: { type: 'string' },
      together: { type: 'string', default: '20' },
      kills: { type: 'string', default: '4' },
    },
  });
  const [seed, runs, together, kills] = [values.seed, values.runs, values.together, values.kills].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  if (![seed, runs, together, kills, Number(values.only ?? 0)].every(Number.isSafeInteger))
    throw new Error('--seed, --runs, --only, --together and --kills are whole numbers');
  const indexes =
    values.only === undefined
      ? Array.from({ length: Math.ceil(runs / kills) }, (_, index) => index)
      : [Number(values.only)];
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
