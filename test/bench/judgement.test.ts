import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { measured, type Measurement } from '../../bench/report.js';
import { GOALS, PROMISES } from '../../bench/summary/goals.js';
import { gapsText, judge, judgementTable, missesText } from '../../bench/summary/judgement.js';
import { standardRun } from '../../bench/summary/standard-runs.js';
import { writeReport } from '../../bench/summary/report-file.js';
import { packageFile } from '../../src/host/package-files.js';

const facts = { date: '2026-01-02', commit: 'abc', processor: 'P', cores: 2, memoryGib: 4, kernel: '6.1', node: 'v20' };
const LAUNCH = 'kernel launch, share 100';
const COPY = 'copy on the GPU, share 100';

const hook = (...figures: Measurement[]) => [{ bench: 'hook', figures, notes: [] }];

test('a goal is a limit of a ratio: what the host needs for a call does not count', (t) => {
  const fast = judge(hook(measured(LAUNCH, 70, 'ns', 66), measured(COPY, 130, 'ns', 100)));
  const slow = judge(hook(measured(LAUNCH, 175, 'ns', 165), measured(COPY, 325, 'ns', 250)));
  for (const judged of [fast, slow])
    t.match(
      judged.map(({ goal, isMet }) => [goal.figure, isMet]),
      [
        [LAUNCH, true],
        [COPY, false],
      ],
    );
  t.equal(
    missesText(fast),
    '1 of 2 goals are met\n' +
      '  missed: hook: copy on the GPU, share 100: 1.300 times the same call of the driver; the goal is at most 1.08',
  );
  t.end();
});

test('a figure without a ratio meets no goal, and a figure that was not measured is not judged', (t) => {
  t.match(judge(hook(measured(LAUNCH, 70, 'ns'))), [{ isMet: false }]);
  t.same(judge(hook(measured('another figure', 70, 'ns', 1))), []);
  t.end();
});

test('goals without a figure, or with a single sample of it, are named', (t) => {
  const thrice = { ...measured(LAUNCH, 70, 'ns', 66), spread: [69, 71] as const };
  const gaps = gapsText(judge(hook(thrice, measured(COPY, 130, 'ns', 100))), ['hook']).split('\n');
  t.equal(gaps.length, GOALS.filter(({ bench }) => bench === 'hook').length - 1, 'all but that with a spread');
  t.ok(gaps.includes(`  a single sample: hook: ${COPY}`));
  t.ok(gaps.includes('  not measured: hook: memset, share 100'));
  t.equal(gapsText([], ['elf']), '', 'it has no goal');
  t.end();
});

test('the first page of a report has each promise with its goals, and a picture', async (t) => {
  const results = hook(
    { ...measured(LAUNCH, 70, 'ns', 66), ratioSpread: [1.05, 1.07] },
    measured(COPY, 130, 'ns', 100),
  );
  t.match(
    judgementTable(judge(results)),
    '| 1.060 (1.050 to 1.070) | at most 1.1 | the same call of the driver | yes |',
  );
  const directory = t.testdir();
  const text = readFileSync(writeReport(directory, { name: 'report', introduction: '', facts, results }), 'utf8');
  t.ok(text.indexOf('## Goals') < text.indexOf('## hook'));
  t.match(text, `![${PROMISES.calls}](promise-calls.svg)`);
  t.match(readFileSync(join(directory, 'promise-calls.svg'), 'utf8'), 'hook: kernel launch, share 100');
});

test('the README makes the promises in the words of the goals, and each promise has goals', (t) => {
  const readme = readFileSync(packageFile('README.md'), 'utf8');
  for (const [promise, sentence] of Object.entries(PROMISES)) {
    t.match(readme, sentence);
    t.ok(GOALS.filter((goal) => goal.promise === promise).length >= 2, `${promise} has goals`);
  }
  t.end();
});

test('each figure has one goal, and its benchmark reports a figure of this kind', (t) => {
  const keys = GOALS.map(({ bench, figure }) => `${bench}: ${figure}`);
  t.equal(new Set(keys).size, keys.length);
  for (const { bench, most, least } of GOALS) {
    t.ok(most !== undefined || least !== undefined);
    t.doesNotThrow(() => readFileSync(packageFile(`bench/${bench}.ts`)));
  }
  t.end();
});

test('what has a goal is run three times, or takes its samples by itself', (t) => {
  t.equal(standardRun('webhook').runs, 3);
  t.equal(standardRun('hook').runs, 1);
  t.equal(standardRun('elf').runs, 1);
  t.end();
});
