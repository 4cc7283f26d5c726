import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { replay, type ReplayPolicy } from '../../bench/openb/replay.js';
import { seededRandom, shuffled } from '../../bench/openb/random.js';
import { readDemands, readNodes } from '../../bench/openb/trace.js';
import { run } from '../../bench/placement.js';
import type { Measurement } from '../../bench/report.js';

const nodeList = [
  'sn,cpu_milli,memory_mib,gpu,model',
  'n0,64000,262144,2,P100',
  'n1,96000,393216,8,G2',
  'n2,104000,524288,2,T4',
  'n3,64000,1024,0,',
].join('\n');
const podList = [
  'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos',
  'p0,12000,16384,1,1000,,LS',
  'p1,6000,12288,1,460,,LS',
  'p2,4000,4096,1,230,P100|T4,LS',
  'p3,16000,32768,2,1000,,BE',
  'p4,2000,1024,0,0,,LS',
].join('\n');

function lists(directory: string): { nodes: string; pods: string } {
  const [nodes, pods] = [join(directory, 'nodes.csv'), join(directory, 'pods.csv')];
  writeFileSync(nodes, nodeList);
  writeFileSync(pods, `${podList}\n`);
  return { nodes, pods };
}

test('the reader accepts node and pod lists in the form of the trace', (t) => {
  const files = lists(t.testdir());
  t.match(
    readNodes(files.nodes),
    [{ name: 'n0', cpuMilli: 64_000 }, { name: 'n1' }, { name: 'n2' }],
    'the cluster leaves out nodes without GPUs',
  );
  const demands = readDemands(files.pods);
  t.same(
    demands.map(({ containers }) => containers[0]?.cores),
    [100, 46, 23, 200, undefined],
  );
  t.match(demands[2]?.selector, { terms: [{ labels: [{ operator: 'In', values: ['P100', 'T4'] }] }] });
  t.end();
});

test('the reader names a missing column when it refuses a list', (t) => {
  const directory = t.testdir({
    'nodes.csv': 'sn,cpu_milli\nn0,1\n',
    'pods.csv': 'name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,many,0\n',
  });
  t.throws(() => readNodes(join(directory, 'nodes.csv')), { message: 'the list has no column gpu' });
  t.throws(() => readDemands(join(directory, 'pods.csv')), { message: 'num_gpu is "many", not a number' });
  t.end();
});

test('a replay gives the same result for the same seed and never allocates more than was requested or exists', (t) => {
  const files = lists(t.testdir());
  const [nodes, demands] = [readNodes(files.nodes), readDemands(files.pods)];
  for (const policy of [
    'fragmentation',
    'binpack',
    'spread',
    'topology',
    'best-fit',
    'random',
  ] satisfies ReplayPolicy[]) {
    const once = replay(nodes, demands, policy, 42, 130);
    t.same(replay(nodes, demands, policy, 42, 130), once, policy);
    t.equal(once.length, 9, 'the replay reports a figure for each load');
    t.ok(
      once.every((allocated, at) => allocated <= 100 && allocated >= (once[at - 1] ?? 0)),
      'allocation only grows',
    );
    t.ok((once[0] as number) > 30);
  }
  t.end();
});

test('seeds give different orders of the same elements', (t) => {
  const of = (seed: number) => shuffled(seededRandom(seed), [1, 2, 3, 4, 5, 6, 7, 8]);
  t.notSame(of(1), of(2));
  t.same([...of(1)].sort(), [1, 2, 3, 4, 5, 6, 7, 8]);
  t.end();
});

test('the benchmark reports each policy, and gives the reason when it skips policies without data', async (t) => {
  const files = lists(t.testdir());
  const figures: Measurement[] = [];
  const notes: string[] = [];
  const options = {
    json: false,
    section: () => undefined,
    report: (figure: Measurement) => void figures.push(figure),
    note: (text: string) => void notes.push(text),
  };
  await run({
    ...options,
    args: ['--nodes', files.nodes, '--pods', files.pods, '--seeds', '1..2', '--load', '120', '-o', 'json'],
  });
  t.match(
    figures.map(({ name }) => name).filter((name) => name.endsWith('120 %')),
    [/^pods random/, /^pods best-fit/, /^pods fragmentation/],
  );
  t.match(notes[0], /^pods random: 2 seeds/);
  await t.rejects(run({ ...options, args: ['--nodes', files.nodes, '--pods', files.pods, '--policy', 'magic'] }), {
    message: /^--policy is "magic"/,
  });
  const variable = process.env.GPU_MANAGER_OPENB;
  delete process.env.GPU_MANAGER_OPENB;
  await run({ ...options, args: [] });
  if (variable !== undefined) process.env.GPU_MANAGER_OPENB = variable;
  t.match(notes.at(-1), /^skipped: no data/);
});
