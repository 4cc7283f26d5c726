import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { measured, type Measurement } from '../../bench/report.js';
import { compareReports, readReport, regressionText } from '../../bench/summary/regressions.js';
import { scratchDirectory } from '../scratch.js';

const result = (...figures: Measurement[]) => [{ bench: 'hook', figures, notes: [] }];

test('a ratio that is a fifth worse than before is a regression, on any machine', (t) => {
  const before = result(measured('launch', 70, 'ns', 66), measured('admissions', 2000, '1/s', 1000));
  const slowMachine = result(measured('launch', 140, 'ns', 132), measured('admissions', 1000, '1/s', 500));
  t.notOk(compareReports(before, slowMachine).some(({ regressed }) => regressed));
  const slowCode = result(measured('launch', 140, 'ns', 100), measured('admissions', 1000, '1/s', 900));
  t.match(
    compareReports(before, slowCode).map(({ figure, regressed }) => [figure, regressed]),
    [
      ['admissions', true],
      ['launch', true],
    ],
  );
  t.match(
    regressionText(compareReports(before, slowCode)),
    /^2 ratios compared, 2 worse.*\n {2}hook: admissions: 2\.000/,
  );
  t.end();
});

test('what the spread of the runs explains is no regression, and what is better never is', (t) => {
  const noisy = { ...measured('start', 300, 'ms', 100), ratioSpread: [1.5, 4.5] as const };
  t.notOk(compareReports(result(measured('start', 220, 'ms', 100)), result(noisy))[0]?.regressed);
  t.ok(
    (compareReports(result(measured('start', 300, 'ms', 100)), result(measured('start', 200, 'ms', 100)))[0]?.worse ??
      0) < 0,
  );
  t.end();
});

test('figures without a baseline, and figures that only one report has, are not compared', (t) => {
  const before = result(measured('launch', 70, 'ns'), measured('copy', 70, 'ns', 60));
  t.same(compareReports(before, result(measured('launch', 700, 'ns', 66), measured('fill', 70, 'ns', 60))), []);
  t.end();
});

test('a file that is no report is refused with what was expected', async (t) => {
  const path = join(await scratchDirectory(t), 'report.json');
  await writeFile(path, '# Benchmarks');
  t.throws(() => readReport(path), /cannot be read as the JSON of a report .*: npm run bench writes report\.json/);
  await writeFile(path, '{}');
  t.throws(() => readReport(path), /holds no results: expected the report\.json/);
  t.end();
});
