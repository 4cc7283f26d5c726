/**
 * What `npm run test:gpu` begins with, on the simulated driver: it shows that the programs run and the tables are
 * written, and nothing about a GPU.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { scratchDirectory } from '../scratch.js';
import { BareGpu } from './bare-gpu.js';
import { Budget } from './budget.js';
import { measureLaw, type LawOptions } from './law.js';
import { writeLaw } from './law-report.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

async function simulated(t: Teardown, budget: Budget): Promise<{ readonly gpu: BareGpu; readonly directory: string }> {
  const directory = await scratchDirectory(t);
  const gpu = join(directory, 'gpu');
  mkdirSync(gpu);
  const node = join(directory, 'node.json');
  writeFileSync(node, JSON.stringify({ gpus: [{}] }));
  const files = {
    cuda: packageFile('native/build/sim/libcuda.so.1'),
    nvml: packageFile('native/build/sim/libnvidia-ml.so.1'),
    uuid: 'GPU-00000000-0000-0000-0000-000000000000',
  };
  const bare = new BareGpu(gpu, files, budget);
  bare.extend({ GPU_SIM_NODE: node });
  return { gpu: bare, directory };
}

const FEW: LawOptions = {
  seconds: 0.3,
  rows: [
    [
      { share: 30, kernel: '2000' },
      { share: 70, kernel: '2000' },
    ],
  ],
  batches: 2,
  conduct: ['control_obstacles', 'control_of_no_file'],
  say: () => undefined,
};

test('slices, switches, events, shares by both laws and the cost of calls are measured and written as tables', async (t) => {
  const { gpu, directory } = await simulated(t, new Budget(600));
  const { tables, leftOut } = await measureLaw(gpu, FEW);
  t.same(leftOut, []);
  const columns = new Map(tables.map(({ title, rows }) => [title.split(/[: ]/)[0], rows.map(([first]) => first)]));
  t.same(columns.get('Time'), ['1', '2']);
  t.same(columns.get('A'), ['20', '200', '1000'], 'switches');
  t.same(columns.get('What'), ['20', '200'], 'events');
  const calls = ['launch', 'allocate', 'copy', 'fill', 'cold-launch', 'cold-allocate'];
  t.same(columns.get('Cost'), [...calls, ...calls]);
  const shares = tables.find(({ title }) => title.startsWith('Shares'))?.rows[0];
  t.match(shares, ['30:2000 70:2000', /^\d+\.\d, \d+\.\d$/, /^\d+\.\d, \d+\.\d$/]);
  const conduct = tables.find(({ title }) => title.startsWith('Conduct'))?.rows ?? [];
  t.match(conduct[0], ['control_obstacles', 'ok', /^the process slot says/]);
  t.match(conduct[1], ['control_of_no_file', /^failed: /], 'what fails is a row of its own');
  const report = join(directory, 'report.md');
  writeFileSync(report, 'before\n<!-- law: begin -->\nold\n<!-- law: end -->\nafter\n');
  writeLaw(report, { tables, leftOut: ['x: y'] }, 'A simulated GPU.');
  const text = readFileSync(report, 'utf8');
  t.match(text, /^before\n<!-- law: begin -->\n\nA simulated GPU\.\n\n### Time slices/);
  t.match(text, /\n- x: y\n\n<!-- law: end -->\nafter\n$/);
  t.notMatch(text, /\nold\n/);
});

test('a budget that ends leaves out what it has no time for, and keeps what was measured', async (t) => {
  const budget = new Budget(600);
  const { gpu: limited } = await simulated(t, budget);
  const { tables, leftOut } = await measureLaw(limited, { ...FEW, say: () => budget.end() });
  t.equal(tables.length, 1, 'the first table was measured before the budget ended');
  t.match(leftOut, [
    /^A busy program/,
    /^A busy/,
    /^A busy/,
    /^What/,
    /^What/,
    /^Shares/,
    /^Cost/,
    /^Cost/,
    /^Conduct/,
    /^Conduct/,
  ]);
});
