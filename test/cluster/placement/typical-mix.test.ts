import { test } from 'tap';
import { MixLearner } from '../../../src/cluster/placement/typical-mix.js';
import { FragmentationScore } from '../../../src/cluster/placement/fragmentation-score.js';
import { ClusterNode } from '../../../src/cluster/placement/node.js';
import { BLOCK, node, pod } from './builders.js';

test('the mix holds each kind of request with its frequency', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 100; round++) {
    learner.observe(pod([[50, 8]]));
    if (round % 4 === 0) learner.observe(pod([[200, 0]]));
  }
  const [half, two] = learner.mix.requests;
  t.match(half, { count: 1, cores: 50, memoryBytes: 8 * BLOCK });
  t.match(two, { count: 2, cores: 100, memoryBytes: 0 });
  t.ok(Math.abs((half?.weight ?? 0) - 0.8) < 0.05);
  t.ok(Math.abs((half?.weight ?? 0) + (two?.weight ?? 0) - 1) < 1e-9);
  t.end();
});

test('the mix leaves out pods without GPUs', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 100; round++) t.notOk(learner.observe(pod([], { cpuMilli: 1000 })));
  t.same(learner.mix.requests, []);
  t.end();
});

test('a pod with several GPU containers counts once, divided among its containers', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 16; round++)
    learner.observe(
      pod(
        [
          [20, 2],
          [100, 0],
        ],
        { cpuMilli: 8000 },
      ),
    );
  t.equal(learner.seen, 16);
  t.match(learner.mix.requests, [
    { weight: 0.5, cpuMilli: 4000 },
    { weight: 0.5, cpuMilli: 4000 },
  ]);
  t.end();
});

test('recent requests replace old ones in the mix', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 20_000; round++) learner.observe(pod([[50, 8]]));
  for (let round = 0; round < 40_000; round++) learner.observe(pod([[30, 8]]));
  t.equal(learner.mix.requests[0]?.cores, 30);
  t.ok((learner.mix.requests[0]?.weight ?? 0) > 0.95);
  t.end();
});

test('the mix stays small for any number of kinds of request', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 5000; round++)
    learner.observe(pod([[1 + (round % 99), 1 + (round % 50)]], { cpuMilli: round }));
  t.equal(learner.mix.requests.length, 64);
  t.end();
});

test('the mix is recomputed often at first and rarely later', (t) => {
  const learner = new MixLearner();
  const made: number[] = [];
  for (let round = 1; round <= 5000; round++) if (learner.observe(pod([[50, 8]]))) made.push(round);
  t.same(made.slice(0, 4), [16, 32, 64, 128]);
  const gaps = made.slice(1).map((at, before) => at - (made[before] as number));
  t.equal(Math.max(...gaps), 1024);
  t.end();
});

test('usable capacity falls by what typical pods can no longer use', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 16; round++) learner.observe(pod([[60, 8]], { cpuMilli: 4000 }));
  const meter = new FragmentationScore(learner.mix, []);
  const there = new ClusterNode(0, node('n', [16, 16], { cpuMilli: 8000 }));
  const usable = () => meter.usable(there.shape, there.free);
  const idle = usable();
  t.ok(idle > 0);
  there.charge([{ position: 0, cores: 50, memoryBytes: 0 }], 0, 0, 1);
  const halved = usable();
  t.ok(Math.abs(halved - idle / 2) < 1e-9, 'pods of 60 cores cannot use a GPU with 50 cores left');
  there.charge([{ position: 1, cores: 0, memoryBytes: 9 * BLOCK }], 0, 0, 1);
  t.equal(usable(), 0, 'a GPU with too little memory is not usable');
  there.charge([{ position: 1, cores: 0, memoryBytes: 9 * BLOCK }], 0, 0, -1);
  there.charge([], 5000, 0, 1);
  t.equal(usable(), 0, 'a node without CPU is not usable');
  t.end();
});

test('usable capacity counts how many requests of each kind fit', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 16; round++) learner.observe(pod([[30, 2]]));
  const meter = new FragmentationScore(learner.mix, []);
  const usable = (taken: number): number => {
    const there = new ClusterNode(0, node('n', [16]));
    there.charge([{ position: 0, cores: taken, memoryBytes: 0 }], 0, 0, 1);
    return meter.usable(there.shape, there.free);
  };
  const lost = (from: number, to: number) => usable(from) - usable(to);
  t.ok(lost(0, 10) < lost(10, 20), 'three pods of 30 cores leave ten cores unused in any case');
  t.end();
});

test('capacity that only few nodes offer counts more than capacity that all nodes offer', (t) => {
  const learner = new MixLearner();
  for (let round = 0; round < 8; round++) {
    learner.observe(pod([[100, 0]], { cpuMilli: 4000 }));
    learner.observe(pod([[100, 0]], { cpuMilli: 64_000 }));
  }
  const large = new ClusterNode(0, node('large', [16], { cpuMilli: 64_000 }));
  const small = [1, 2, 3].map((slot) => new ClusterNode(slot, node(`small-${slot}`, [16], { cpuMilli: 8000 })));
  const lost = (meter: FragmentationScore): number => {
    const there = new ClusterNode(0, large.shape);
    const before = meter.usable(there.shape, there.free);
    there.charge([], 1000, 0, 1);
    return before - meter.usable(there.shape, there.free);
  };
  t.ok(
    lost(new FragmentationScore(learner.mix, [large, ...small])) >
      1.2 * lost(new FragmentationScore(learner.mix, [large])),
  );
  t.end();
});
