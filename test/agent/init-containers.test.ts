import { test } from 'tap';
import type { ResourceKind } from '../../src/gpu/resources.js';
import { cases } from '../cases.js';
import { generator } from '../generator.js';
import { cards } from './gpus.js';
import { startedNode } from './node.js';
import { container, pod, simplePod } from './pods.js';

const ORDERS: readonly (readonly [string, readonly ResourceKind[], readonly ResourceKind[]])[] = [
  ['cores first', ['core', 'memory'], ['core', 'memory']],
  ['memory first', ['memory', 'core'], ['memory', 'core']],
  ['cores first, then memory first', ['core', 'memory'], ['memory', 'core']],
  ['memory first, then cores first', ['memory', 'core'], ['core', 'memory']],
];

for (const [name, ofInit, ofMain] of ORDERS)
  test(`an init container is placed where the container after it has room, ${name}`, async (t) => {
    const node = await startedNode(t, {
      gpus: cards(2, 4_096),
      knowsPods: true,
      kubelet: { order: ({ name: asking }) => (asking === 'init' ? ofInit : ofMain) },
    });
    const before = simplePod(50, 12);
    t.match(await node.kubelet.admit(before), { ok: true });
    await node.kubelet.startContainer(before.uid, 'main');
    const wanted = pod([container('main', 5, 8)], [container('init', 5, 2)]);
    t.match(await node.kubelet.admit(wanted), { ok: true });
    await node.kubelet.startContainer(wanted.uid, 'init');
    await node.kubelet.startContainer(wanted.uid, 'main');
    t.ok(usedBlocks(node).every((blocks) => blocks <= 16));
  });

const SHAPES: readonly (readonly [cores: number, memoryBlocks: number])[] = [
  [5, 2],
  [5, 8],
  [10, 4],
  [20, 8],
  [30, 2],
  [50, 12],
  [100, 0],
  [200, 0],
];

for (const seed of cases([1], [1, 2, 4_711]))
  test(`no admitted pod with init containers is refused when it starts, in any order of the resources, seed ${seed}`, async (t) => {
    const random = generator(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const node = await startedNode(t, {
      gpus: cards(3, 4_096),
      knowsPods: true,
      kubelet: { order: () => (random() < 0.5 ? ['core', 'memory'] : ['memory', 'core']) },
    });
    const shaped = (name: string) => container(name, ...pick(SHAPES));
    const living: string[] = [];
    const late: string[] = [];
    let admitted = 0;
    for (let at = 0; at < 30; at += 1) {
      while (living.length > 0 && random() < 0.45) {
        const [over = ''] = living.splice(Math.floor(random() * living.length), 1);
        node.kubelet.remove(over);
      }
      const wanted = pod(
        Array.from({ length: random() < 0.7 ? 1 : 2 }, (_, index) => shaped(`c${index}`)),
        Array.from({ length: random() < 0.6 ? 1 : 2 }, (_, index) => shaped(`i${index}`)),
      );
      const admission = await node.kubelet.admit(wanted);
      const used = usedBlocks(node);
      t.ok(
        used.every((blocks) => blocks <= 16),
        `at most 16 blocks of each GPU are allocated: ${used.join(', ')}`,
      );
      if (!admission.ok) continue;
      admitted += 1;
      try {
        for (const each of [...wanted.initContainers, ...wanted.containers])
          await node.kubelet.startContainer(wanted.uid, each.name);
        living.push(wanted.uid);
      } catch (error) {
        const shapes = [...wanted.initContainers, ...wanted.containers].map(
          (each) => `${each.cores}/${each.memoryBlocks}`,
        );
        late.push(`${shapes.join(' ')}: ${(error as Error).message}`);
        node.kubelet.remove(wanted.uid);
      }
    }
    t.ok(admitted > 10, `${admitted} pods are admitted`);
    t.same(late, []);
  });

/** Blocks of memory that the ledger has allocated on each GPU. */
function usedBlocks(node: Awaited<ReturnType<typeof startedNode>>): number[] {
  const { state } = node.agent.allocator;
  return state.node.gpus.map(({ gpu }) => {
    const parts = [...state.allocations.values()].flatMap((allocation) => allocation.parts);
    // A container holds ids of the init containers before it.
    return new Set(parts.flatMap(({ gpuUuid, memoryIds }) => (gpuUuid === gpu.uuid ? memoryIds : []))).size;
  });
}
