import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { measured } from '../../bench/report.js';
import { combined } from '../../bench/summary/repeated-runs.js';
import { writeReport } from '../../bench/summary/report-file.js';

const facts = { date: '2026-01-02', commit: 'abc', processor: 'P', cores: 2, memoryGib: 4, kernel: '6.1', node: 'v20' };

test('several runs are reported by the median of each figure and its spread', async (t) => {
  const run = (value: number, baseline: number) => [
    { bench: 'cost', figures: [measured('launch', value, 'ns', baseline)], notes: [`run of ${value}`] },
  ];
  const results = combined([run(12, 10), run(30, 10), run(11, 11)]);
  t.match(results, [{ figures: [{ value: 12, baseline: 10, spread: [11, 30] }], notes: ['run of 11'] }]);
  const path = writeReport(t.testdir(), { name: 'cost', introduction: 'What it is.', facts, results });
  const text = await readFile(path, 'utf8');
  t.match(text, /^# Benchmark: cost\n\nWhat it is\.\n/);
  t.match(text, /\| launch \| 12 ns \(11 to 30\) \| 10 \| 1\.200 \|/);
  t.match(text, /commit abc/);
});

test('a figure that one run lacks counts in the others', (t) => {
  const figure = (value: number) => measured('memory', value, 'MiB', null, 'library');
  const runs = [
    [{ bench: 'a', figures: [figure(1)], notes: [] }],
    [{ bench: 'a', figures: [], notes: [] }],
    [{ bench: 'a', figures: [figure(3)], notes: [] }],
  ];
  t.match(combined(runs)[0]?.figures, [{ value: 3, spread: [1, 3] }]);
  t.end();
});

test('variants stand side by side, and the picture has a dot for each', async (t) => {
  const results = [
    {
      bench: 'share',
      figures: [
        measured('20 us @30', 30.1, '%', 30, 'ours'),
        measured('20 us @30', 45, '%', 30, 'other'),
        measured('20 us @70', 69.9, '%', 70, 'ours'),
        measured('sum', 3, 's'),
      ],
      notes: ['a note'],
    },
  ];
  const directory = t.testdir();
  const path = writeReport(directory, { name: 'share', introduction: '', facts, results });
  const text = await readFile(path, 'utf8');
  t.match(text, '|  | unit | baseline | ours | other |');
  t.match(text, '| 20 us @30 | % | 30 | 30.10 | 45 |');
  t.match(text, '| 20 us @70 | % | 70 | 69.90 | none |', 'a variant without a figure');
  t.match(text, '| sum | 3 s |  |  |');
  const drawing = await readFile(join(directory, 'share.svg'), 'utf8');
  t.equal(drawing.match(/<circle /g)?.length, 2 + 3, 'the legend, and the figures');
});
