import { test } from 'tap';
import { usage } from '../../../src/gpu/ledger/state.js';
import { generator } from '../../generator.js';
import { GRACE_MS, KubeletModel, nodeOf, type ModelPod } from './kubelet-model.js';

const GPUS = 4;
const BLOCKS = 16;
const PODS = 200;

/** Cores and memory blocks of the pods. */
type Shapes = readonly (readonly [number, number])[];

/**
 * Pods come and go under a scheduler that only counts free cores and blocks of a node, as Volcano or KAI do: there are
 * no predictions, and the agent decides alone. Returns how many pods were sent, and what the agent refused.
 */
function run(shapes: Shapes, seed: number): { readonly sent: number; readonly refused: readonly string[] } {
  const random = generator(seed);
  const model = new KubeletModel(nodeOf(GPUS, BLOCKS));
  let sent = 0;
  for (let step = 0; step < PODS; step++) {
    const [cores, memoryBlocks] = shapes[Math.floor(random() * shapes.length)] as readonly [number, number];
    const pods = [...model.pods.values()];
    const sum = (of: (pod: ModelPod) => number): number => pods.reduce((total, pod) => total + of(pod), 0);
    const fits =
      sum((pod) => pod.cores) + cores <= GPUS * 100 && sum((pod) => pod.memoryBlocks) + memoryBlocks <= GPUS * BLOCKS;
    if (!fits || random() < 0.2) {
      const ending = pods[Math.floor(random() * pods.length)];
      if (ending !== undefined) model.end(ending);
      model.reconcile(2 * GRACE_MS);
      continue;
    }
    sent += 1;
    model.admit({ cores, memoryBlocks, order: ['core', 'memory'], failAfter: 2, knowsPods: true });
    for (const pod of [...model.pods.values()]) if (!pod.started) model.start(pod);
    for (const [uuid, held] of usage(model.state))
      if (held.coreIds.size > 100 || held.memoryIds.size > BLOCKS) throw new Error(`${uuid} is given away twice`);
  }
  return { sent, refused: [...model.refused, ...model.lateRefusals] };
}

const SEEDS = [1, 2, 3];

for (const [name, shapes] of [
  [
    'whole GPUs',
    [
      [100, 16],
      [200, 32],
      [300, 48],
    ],
  ],
  ['slices of a quarter', [[25, 4]]],
  ['slices of a half', [[50, 8]]],
] as const)
  test(`a scheduler that only counts is right about ${name}: the agent refuses none`, (t) => {
    for (const seed of SEEDS) {
      const { sent, refused } = run(shapes, seed);
      t.ok(sent > PODS / 4, `${sent} pods`);
      t.same(refused, [], `seed ${seed}`);
    }
    t.end();
  });

test('a scheduler that only counts sends slices of mixed sizes where they fit on no GPU: the agent refuses these only', (t) => {
  const results = SEEDS.map((seed) =>
    run(
      [
        [60, 8],
        [50, 8],
        [30, 4],
        [100, 16],
      ],
      seed,
    ),
  );
  const sent = results.reduce((sum, result) => sum + result.sent, 0);
  const refused = results.reduce((sum, result) => sum + result.refused.length, 0);
  t.comment(`${refused} of ${sent} pods refused`);
  t.ok(refused > 0);
  t.ok(refused < sent / 2);
  t.end();
});
