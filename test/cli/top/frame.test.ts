import { test } from 'tap';
import { frameOf, type Size } from '../../../src/cli/top/frame.js';
import { printed } from '../../../src/cli/top/printed.js';
import { sampleOf } from '../../../src/cli/top/node-source.js';
import { react, START, withSample, withTree, type TopState } from '../../../src/cli/top/state.js';
import { plainText } from '../../../src/cli/top/text.js';
import { usageTable } from '../../../src/cli/usage.js';
import type { NodeSnapshot } from '../../../src/agent/node/view.js';
import { allocation, gpu, GIB, node, slice } from '../../agent/display/fixture.js';

const GPUS = [
  gpu(0, { usedPercent: 62, usedMemoryBytes: 3 * GIB }),
  gpu(1, { health: { status: 'lost', reason: 'gone', sinceMs: 0 } }),
];
const COUNTERS = slice(GPUS[0]!).counters!;
const container = (name: string, usedPercent: number, usedGib: number, throttledSeconds: number) =>
  allocation(name, [
    slice(GPUS[0]!, { usedPercent, usedMemoryBytes: usedGib * GIB, counters: { ...COUNTERS, throttledSeconds } }),
  ]);
const snapshot = (seconds: number) =>
  node({
    atMs: 1_700_000_000_000 + seconds * 1000,
    gpus: GPUS,
    allocations: [container('a', 5, 3, 0), container('b', 20, 1, seconds * 0.5), container('c', 10, 2, 0)],
  });
const stateOf = (...snapshots: readonly NodeSnapshot[]): TopState =>
  snapshots.reduce((state, one) => withSample(state, sampleOf(one)), START);
const linesOf = (state: TopState, size: Partial<Size> = {}): string[] =>
  frameOf(state, { columns: 100, rows: 24, ...size }).lines.map((line) => plainText(line).trimEnd());

test('top shows GPUs, and containers sorted by a column', (t) => {
  const names = (state: TopState): string[] =>
    linesOf(state).flatMap((line) => /default\/(\w)\/main/.exec(line)?.[1] ?? []);
  const state = stateOf(snapshot(0), snapshot(2));
  t.same(names(state), ['b', 'c', 'a']);
  t.same(names({ ...state, sort: 'memory' }), ['a', 'c', 'b']);
  t.same(names({ ...state, sort: 'throttled' }), ['b', 'a', 'c']);
  t.same(names({ ...state, sort: 'name', reversed: true }), ['c', 'b', 'a']);
  const lines = linesOf(state);
  t.match(lines[0], /^node1 {2}gpu-manager 1\.2\.3 {2}driver 580\.95\.05 +22:13:22 UTC$/);
  t.match(lines[1], /^GPU 0 +█{11}░{7} +62 % .*3\.0\/16\.0 GiB +90 allocated +40 °C +75 W ▅▅$/);
  t.match(lines[2], /^GPU 1 +lost for \d+ \S+: gone$/);
  t.match(
    lines.find((line) => line.includes('/b/')),
    /20\/30 % +1\.0\/4\.0 GiB +0\.50 s\/s/,
  );
  t.end();
});

test('top shows the history of each container where the terminal is wide enough', (t) => {
  const state = stateOf(...[0, 2, 4].map(snapshot));
  const line = linesOf(state).find((one) => one.includes('/b/'));
  t.match(line, / 0 +▆▆▆$/, '20 of 30 cores, three times');
  t.notMatch(linesOf(state, { columns: 80 }).join('\n'), /HISTORY/);
  t.end();
});

test('the tree shows pods, their containers, and the processes below', (t) => {
  const [owner] = allocation('one', []).owners;
  const of = (container: string, pids: readonly number[]) =>
    allocation(container, [slice(GPUS[0]!, { pids: [...pids] })], { owners: [{ ...owner!, pod: 'train', container }] });
  const flat = stateOf(
    node({ gpus: GPUS, allocations: [of('worker', [11, 12]), of('loader', []), container('a', 9, 1, 0)] }),
  );
  const { state, effect } = react(flat, { kind: 'text', text: 'v' }, frameOf(flat, { columns: 100, rows: 24 }).targets);
  t.equal(effect, 'read-processes');
  const worker = state.slices.find(({ name }) => name.endsWith('worker'))!;
  const process = {
    ...{ gpuUuid: GPUS[0]!.uuid, gpuIndex: 0, pid: 11, containerPid: 1, uid: 1000, user: 'ines' },
    ...{ command: 'python train.py', usedMemoryBytes: 2 * GIB, usedPercent: 7 },
  };
  const document = { atMs: 0, allocation: worker.allocation.id, processes: [process], omitted: 0 };
  const lines = linesOf(withTree(state, new Map([[worker.key, { known: true, document }]])));
  const from = lines.findIndex((line) => line === 'default/train');
  t.match(lines.slice(from, from + 4), [
    'default/train',
    /^ {2}loader +0 /,
    /^ {2}worker +0 /,
    /^ {4}11 ines python train\.py +7 % +2\.0 GiB/,
  ]);
  t.match(linesOf(state).join('\n'), / {2}worker .*\n {4}11\n {4}12\n/, 'pids alone until more is known');
  t.equal(lines.filter((line) => line.startsWith('default/train')).length, 1);
  t.end();
});

test('top shows memory beyond the limit and unenforced slices', (t) => {
  const low = slice(GPUS[0]!, { usedMemoryBytes: 3 * GIB, hostBackedLimitBytes: 2 * GIB, hostBackedBytes: 1.5 * GIB });
  const allocations = [allocation('low', [low]), allocation('static', [slice(GPUS[0]!)], { unenforced: true })];
  const text = linesOf(stateOf(node({ gpus: GPUS, allocations }))).join('\n');
  t.match(text, /default\/low\/main .* 3\.0\+1\.5\/4\.0 GiB/);
  t.match(text, /default\/static\/main \(unenforced\) /);
  t.end();
});

test('top and usage mark slices by claims, with the number of containers that share them', (t) => {
  const [owner] = allocation('one', []).owners;
  const claims = [{ namespace: 'team', name: 'model', request: 'gpu' }];
  const allocations = [
    allocation('shared', [slice(GPUS[0]!)], { claims, owners: [owner!, { ...owner!, pod: 'two' }] }),
    allocation('single', [slice(GPUS[0]!)], { claims, unenforced: true }),
  ];
  const text = linesOf(stateOf(node({ gpus: GPUS, allocations })), { columns: 160 }).join('\n');
  t.match(text, /default\/two\/main \(claim, \+1\) /);
  t.match(text, /default\/single\/main \(claim, unenforced\) /);
  const wide = usageTable(node({ gpus: GPUS, allocations: [...allocations, allocation('plain', [])] }), true);
  t.match(wide, /POD UID +CLAIM +ALLOCATION\n.* uid-one +team\/model +[0-9a-f]{16}\n/);
  t.end();
});

test('16 GPUs and 60 slices are usable on 24 rows of 80 columns', (t) => {
  const gpus = Array.from({ length: 16 }, (_, at) => gpu(at, { usedPercent: at * 6, usedMemoryBytes: at * GIB }));
  const allocations = Array.from({ length: 60 }, (_, at) =>
    allocation(`a-long-name-of-a-workload-7c9d8b6f5-${at}`, [slice(gpus[at % 16]!, { usedPercent: at })]),
  );
  const lines = linesOf(stateOf(node({ gpus, allocations })), { columns: 80 });
  t.equal(lines.length, 24);
  const text = lines.join('\n');
  for (const { index } of gpus)
    t.match(text, new RegExp(`GPU ${index} +[█░]+ +${index * 6} % +${index}\\.0/16\\.0 GiB`));
  const shown = lines.filter((line) => line.startsWith('default/'));
  t.ok(shown.length >= 12, `${shown.length} containers`);
  t.match(shown[0], /^default\/a-lon….*-59\/main +11 +59\/30 % +0\.0\/4\.0 GiB +- +0$/, 'long names keep both ends');
  t.match(lines.at(-1), /^60 {2}Enter processes .* q quit$/);
  const small = linesOf(stateOf(node({ gpus, allocations })), { columns: 80, rows: 12 }).join('\n');
  t.match(small, /^ {2}0 █*░* +0% +0% +4 █*░* +24% +25% /m, 'lower terminals have four GPUs in a line');
  t.end();
});

test('a sample without a terminal is printed whole', (t) => {
  const many = Array.from({ length: 50 }, (_, at) => container(`pod-${at}`, at, 1, 0));
  const text = printed(sampleOf(node({ gpus: GPUS, allocations: many })), 120, false);
  t.equal(text.match(/default\//g)?.length, 50);
  t.notOk(text.includes('\u001b'));
  t.notMatch(text, /quit/);
  t.end();
});

test('text that users chose cannot move the cursor', (t) => {
  const evil = allocation('evil', [slice(GPUS[0]!)], {
    owners: [{ podUid: 'u', namespace: 'n', pod: 'p\u001b[2J', container: 'c' }],
  });
  t.notOk(
    linesOf(stateOf(node({ gpus: GPUS, allocations: [evil] })))
      .join('')
      .includes('\u001b'),
  );
  t.end();
});
