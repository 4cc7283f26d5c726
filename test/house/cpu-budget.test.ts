import { readFileSync } from 'node:fs';
import { test } from 'tap';

/** What a run of a whole tier measured (scripts/test.mjs). */
interface Costs {
  readonly tier: string;
  /** How many times more CPU time than on a core of 2020 the reference work took during the run. */
  readonly slowness: number;
  readonly files: readonly { readonly file: string; readonly cpuSeconds: number }[];
}

/** CPU seconds on a core of 2020, which today's machines do in little more than half: of all files, and of one file. */
const BUDGETS: Record<string, { readonly all: number; readonly file: number }> = {
  test: { all: 950, file: 50 },
  long: { all: 2_500, file: 500 },
};
/** Wrong by this much is what the speed of a shared core is: a budget is exceeded only beyond. */
const DOUBT = 1.25;

const measured = process.env.GPU_MANAGER_TEST_COSTS;
const skip = measured === undefined ? 'only a run of a whole tier measures all files: npm test' : false;

test('the files of a tier keep to its budget of CPU time', { skip }, async (t) => {
  const { tier, slowness, files } = JSON.parse(readFileSync(measured ?? '', 'utf8')) as Costs;
  const budget = BUDGETS[tier];
  if (budget === undefined)
    throw new Error(`tier ${tier} has no budget; expected ${Object.keys(BUDGETS).join(' or ')}`);
  const seconds = files.map(({ file, cpuSeconds }) => ({ file, own: cpuSeconds / slowness }));
  const sum = seconds.reduce((total, { own }) => total + own, 0);
  t.comment(
    `${sum.toFixed(0)} of ${budget.all} CPU seconds; this machine takes ${slowness.toFixed(2)} times as long as a core of 2020`,
  );
  t.ok(sum <= DOUBT * budget.all, `all files need ${sum.toFixed(0)} CPU seconds, ${budget.all} are allowed`);
  t.same(
    seconds.filter(({ own }) => own > DOUBT * budget.file).map(({ file, own }) => `${file}: ${own.toFixed(0)} s`),
    [],
    `no file needs more than ${budget.file} CPU seconds; split what is slow into a *.long.ts with a fast twin here`,
  );
});
