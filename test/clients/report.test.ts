import { test } from 'tap';
import { faultsAlone, faultsInSlice, readReport } from './report.js';
import { clientTable } from './table.js';
import { cargoTestReport, unittestReport } from './suites.js';

const SLICE = { limitMib: 1_000, share: 20 };
const ALONE = readReport(
  ['is name: Tesla V100', 'total cuMemGetInfo: 16128', 'got cuMemAlloc: 2000 all', 'pace launch: 1000 1001'].join('\n'),
);

const inSlice = (...lines: string[]): string[] => faultsInSlice(ALONE, [readReport(lines.join('\n'))], SLICE);
const HELD = [
  'is name: Tesla V100',
  'total cuMemGetInfo: 1000',
  'got cuMemAlloc: 950 refused',
  'pace launch: 1000 4800',
];

test('a program that stays within its limits and sees the same otherwise has no faults', (t) => {
  t.same(faultsAlone(ALONE, SLICE), []);
  t.same(inSlice(...HELD), []);
  t.end();
});

test('each difference between a slice and the GPU is a fault', (t) => {
  const instead = (line: string, index: number): string[] => inSlice(...HELD.with(index, line));
  t.match(instead('is name: Tesla T4', 0), [/name: alone Tesla V100, in the slice Tesla T4/]);
  t.match(instead('total cuMemGetInfo: 16128', 1), [/shows 16128 instead of 1000 MiB/]);
  t.match(instead('got cuMemAlloc: 2000 all', 2), [/got 2000 MiB at a limit of 1000/, /ended with "all"/]);
  t.match(instead('got cuMemAlloc: 900 Segmentation', 2), [/ended with "Segmentation" instead of "refused"/]);
  t.match(instead('got cuMemAlloc: 0 refused', 2), [/got nothing/]);
  t.match(instead('pace launch: 1000 1001', 3), [/kernels of 1000 ms were done after 1001 ms, at a share of 20 %/]);
  t.same(inSlice().length, 5, 'a program that reports nothing in the slice');
  t.end();
});

test('several processes share one limit', (t) => {
  const process = (mib: number): ReturnType<typeof readReport> =>
    readReport(HELD.with(2, `got cuMemAlloc: ${mib} refused`).join('\n'));
  t.same(faultsInSlice(ALONE, [process(500), process(450), process(0)], SLICE), []);
  t.match(faultsInSlice(ALONE, [process(500), process(550)], SLICE), [/got 1050 MiB/]);
  t.end();
});

test('alone, a program that is refused, sees a small GPU or reports nothing has a fault', (t) => {
  t.match(faultsAlone(readReport('got cuMemAlloc: 300 refused'), SLICE), [/got 300 MiB, then: refused/]);
  t.match(faultsAlone(readReport('total a: 1000'), SLICE), [/shows 1000 MiB of a whole GPU/]);
  t.match(faultsAlone(readReport('hello'), SLICE), [/reports nothing/]);
  t.throws(() => readReport('total a: much'), /expected a number in "total a: much"/);
  t.end();
});

test('the reader finds results of test suites with any output between a test and its result', (t) => {
  const unittest = [
    'test_one (suite.Case.test_one) ... ok',
    'test_two (suite.Case.test_two)',
    'What it is about. ... FAIL',
    'test_three (suite.Case) ... a warning',
    'ok',
    "test_four (suite.Case.test_four) ... skipped 'no GPU'",
    'ok',
  ].join('\n');
  t.same(unittestReport(unittest).split('\n'), [
    'is suite.Case.test_one: ok',
    'is suite.Case.test_two: FAIL',
    'is suite.Case.test_three: ok',
    'is suite.Case.test_four: skipped',
  ]);
  const cargo = 'running 3 tests\ntest a::b ... ok\ntest a::slow_is_faster ... FAILED\ntest a::c ... ignored, alone\n';
  t.same(cargoTestReport(cargo, /_faster/).split('\n'), ['is a::b: ok', 'is a::c: ignored']);
  t.end();
});

test('the table states for each client how it ran', (t) => {
  const program = { name: 'memory', facts: 3, passes: 0, alone: [], inSlice: [], skipped: {} };
  const client = { title: 'b', version: '1', way: 'dlopen', limits: '', programs: [program] };
  const held = 'got 2000 MiB at a limit of 1000';
  const table = clientTable({
    b: client,
    a: { ...client, title: 'a', programs: [{ ...program, passes: 2, inSlice: [held] }] },
    c: { ...client, title: 'c', programs: [{ ...program, alone: ['exit code 1'] }] },
  });
  t.same(table.split('\n').slice(2), [
    `| a | 1 | dlopen | memory | runs; 2 of 3 tests pass | ${held} |  |`,
    '| b | 1 | dlopen | memory | runs | the same, limits hold |  |',
    '| c | 1 | dlopen | memory | does not run | the same, limits hold |  |',
  ]);
  t.end();
});
