import fc from 'fast-check';
import { test } from 'tap';
import { allows, ANY_GPUS, kindOf } from '../../../src/gpu/gpu-selection.js';
import { demandOf, type Demand } from '../../../src/cluster/placement/demand.js';
import { ClusterNode, copyState, emptyState, slotsOf, type FreeState } from '../../../src/cluster/placement/node.js';
import { placePod } from '../../../src/gpu/pods/pod-placement.js';
import { ScratchStates } from '../../../src/cluster/placement/scratch.js';
import { tryPod } from '../../../src/cluster/placement/fit-simulation.js';
import { isResolvable, judgeFit } from '../../../src/cluster/placement/fit-result.js';
import { subsets } from '../../gpu/placement/exhaustive.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';
import type { GpuSlot } from '../../../src/gpu/placement/slot.js';
import type { ContainerDemand } from '../../../src/gpu/pods/pod-demand.js';
import {
  advance,
  firstStage,
  keptFor,
  slotsFor,
  stepsOf,
  type PlacementStage,
} from '../../../src/gpu/pods/placement-stage.js';
import { BLOCK, node, nodeGpu, pod } from './builders.js';
import { cases } from '../../cases.js';

const gpusOf = fc.array(fc.constantFrom(16, 16, 16, 24), { minLength: 1, maxLength: 5 });
const container = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 99 }), fc.integer({ min: 1, max: 20 })),
  fc.tuple(fc.constantFrom(100, 200, 300), fc.integer({ min: 0, max: 50 })),
);
const used = fc.array(
  fc.tuple(fc.integer({ min: 0, max: 4 }), fc.constantFrom(20, 50, 70, 100), fc.integer({ min: 0, max: 16 })),
  { maxLength: 5 },
);

function busyNode(blocks: readonly number[], taken: readonly (readonly [number, number, number])[]): ClusterNode {
  const there = new ClusterNode(0, node('n', blocks));
  const charges = taken
    .filter(([position]) => position < blocks.length)
    .map(([position, cores, of]) => ({ position, cores, memoryBytes: of * BLOCK }));
  there.charge(charges, 0, 0, 1);
  return there;
}

function tried(there: ClusterNode, demand: Demand): { fits: boolean; after: FreeState } {
  const after = emptyState(there.shape.gpus.length);
  copyState(there.free, after);
  return { fits: tryPod(there, after, demand), after };
}

/** What each GPU has left, without the identity of the GPU. */
function left(cores: readonly number[], memory: readonly number[]): string[] {
  return cores.map((of, at) => (of === 0 ? '0' : `${of}/${memory[at]}`)).sort();
}

test('the fit simulation and the placement agree on what fits', (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        gpusOf,
        used,
        fc.array(container, { minLength: 1, maxLength: 3 }),
        fc.array(container, { maxLength: 1 }),
        (blocks, taken, wanted, init) => {
          const there = busyNode(blocks, taken);
          const demand = pod(wanted, { init: pod(init).containers });
          const placed = placePod(there.shape, slotsOf(there.shape, there.free), demand);
          return (
            tried(there, demand).fits === placed.ok &&
            (judgeFit(there, demand, new ScratchStates()) === null) === placed.ok
          );
        },
      ),
      { numRuns: cases(600, 5_000) },
    ),
  );
  t.end();
});

test('on equal GPUs the fit simulation leaves the same capacity as the placement', (t) => {
  const gpus = fc.integer({ min: 1, max: 5 }).map((count) => new Array<number>(count).fill(16));
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(gpus, used, fc.array(container, { minLength: 1, maxLength: 3 }), (blocks, taken, wanted) => {
        const there = busyNode(blocks, taken);
        const demand = pod(wanted);
        const placed = placePod(there.shape, slotsOf(there.shape, there.free), demand);
        if (!placed.ok) return true;
        const { after } = tried(there, demand);
        there.charge(placed.charges, 0, 0, 1);
        return (
          left([...after.cores], [...after.memory]).join() ===
          left([...there.free.cores], [...there.free.memory]).join()
        );
      }),
      { numRuns: cases(600, 5_000) },
    ),
  );
  t.end();
});

test('no GPU is charged beyond its capacity', (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        gpusOf,
        used,
        fc.array(container, { minLength: 1, maxLength: 3 }),
        fc.array(container, { maxLength: 2 }),
        (blocks, taken, wanted, init) => {
          const there = busyNode(blocks, taken);
          const before = { cores: [...there.free.cores], memory: [...there.free.memory] };
          const placed = placePod(
            there.shape,
            slotsOf(there.shape, there.free),
            pod(wanted, { init: pod(init).containers }),
          );
          if (!placed.ok) return true;
          return before.cores.every((free, position) => {
            const own = placed.charges.filter((charge) => charge.position === position);
            const whole = own.some((charge) => charge.cores === 100);
            const cores = own.reduce((sum, charge) => sum + charge.cores, 0);
            const memory = own.reduce((sum, charge) => sum + charge.memoryBytes, 0);
            return cores <= free && (whole || memory <= (before.memory[position] as number));
          });
        },
      ),
      { numRuns: cases(600, 5_000) },
    ),
  );
  t.end();
});

test('a container takes over the GPU of its init container and may grow on it', (t) => {
  const there = busyNode([16, 16], [[0, 40, 4]]);
  const init = pod([[50, 4]]).containers;
  const placed = placePod(there.shape, slotsOf(there.shape, there.free), pod([[60, 8]], { init }));
  t.match(placed, { ok: true, containers: [{ container: 0, indexes: [0] }] });
  t.same(
    placed.ok && placed.charges.reduce((sum, charge) => sum + charge.cores, 0),
    60,
    'the larger of the two requests counts',
  );
  const noRoom = placePod(there.shape, slotsOf(there.shape, there.free), pod([[70, 8]], { init }));
  t.match(
    noRoom,
    { ok: true, containers: [{ indexes: [1] }] },
    'the container gets another GPU where the first one has no room to grow',
  );
  const narrow = busyNode([16], [[0, 40, 4]]);
  t.match(
    placePod(narrow.shape, slotsOf(narrow.shape, narrow.free), pod([[70, 8]], { init })),
    { ok: false, reason: /^container 0: /, isProven: true },
    'the only GPU has no room to grow',
  );
  t.end();
});

/** Whether any assignment of the containers to GPUs exists; tries every assignment. */
function anyAssignment(there: ClusterNode, demand: Demand): boolean {
  const { gpus } = there.shape;
  const cores = [...there.free.cores];
  const memory = [...there.free.memory];
  const tryFrom = (at: number): boolean => {
    const wanted = demand.containers[at];
    if (wanted === undefined) return true;
    const positions = [...gpus.keys()];
    if (wanted.cores < 100)
      return positions.some((position) => {
        const [c, m] = [cores[position] as number, memory[position] as number];
        if (c < wanted.cores || m < wanted.memoryBytes) return false;
        [cores[position], memory[position]] = [c - wanted.cores, m - wanted.memoryBytes];
        const fits = tryFrom(at + 1);
        [cores[position], memory[position]] = [c, m];
        return fits;
      });
    const whole = positions.filter((position) => cores[position] === 100);
    return subsets(whole, wanted.cores / 100).some((set) => {
      const kept = set.map((position) => memory[position] as number);
      if (kept.reduce((sum, bytes) => sum + bytes, 0) < wanted.memoryBytes) return false;
      set.forEach((position) => ([cores[position], memory[position]] = [0, 0]));
      const fits = tryFrom(at + 1);
      set.forEach((position, place) => ([cores[position], memory[position]] = [100, kept[place] as number]));
      return fits;
    });
  };
  return tryFrom(0);
}

test('several containers fit if any assignment exists, and are unresolvable only if idle GPUs would offer none', (t) => {
  const tight = fc.oneof(
    fc.tuple(fc.constantFrom(30, 40, 50, 60, 70), fc.integer({ min: 1, max: 20 })),
    fc.tuple(fc.constantFrom(100, 200), fc.integer({ min: 0, max: 40 })),
  );
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(gpusOf, used, fc.array(tight, { minLength: 2, maxLength: 5 }), (blocks, taken, wanted) => {
        const there = busyNode(blocks, taken);
        const demand = pod(wanted);
        const placed = placePod(there.shape, slotsOf(there.shape, there.free), demand);
        const judged = judgeFit(there, demand, new ScratchStates());
        return (
          placed.ok === anyAssignment(there, demand) &&
          (judged === null) === placed.ok &&
          (judged === 'too-large') === !anyAssignment(busyNode(blocks, []), demand)
        );
      }),
      { numRuns: cases(600, 5_000) },
    ),
  );
  t.end();
});

test('the order of containers does not decide whether a pod fits', (t) => {
  const placedOn = (there: ClusterNode, demand: Demand) => {
    const placed = placePod(there.shape, slotsOf(there.shape, there.free), demand);
    return placed.ok ? placed.containers.map(({ indexes }) => indexes.join()) : placed.reason;
  };
  const mixed = busyNode([64, 320], []);
  t.same(placedOn(mixed, pod([[100, 0], [50, 300]])), ['0', '1'], 'the small GPU goes to the container that fits there'); // prettier-ignore
  t.same(placedOn(mixed, pod([[50, 300], [100, 0]])), ['1', '0']); // prettier-ignore
  const parts = busyNode([64, 64], [[0, 40, 0], [1, 60, 0]]); // prettier-ignore
  t.same(placedOn(parts, pod([[30, 1], [40, 1], [30, 1]])), ['0', '1', '0'], '60 and 40 cores are free'); // prettier-ignore
  t.equal(judgeFit(mixed, pod([[100, 0], [50, 300]]), new ScratchStates()), null); // prettier-ignore
  t.end();
});

/** Whether any assignment exists, with init containers and annotations taken into account; tries every set of GPUs. */
function anySet({ shape }: ClusterNode, slots: readonly GpuSlot[], demand: Demand): boolean {
  const steps = stepsOf(demand);
  const tryFrom = (stage: PlacementStage, at: number): boolean => {
    const step = steps[at];
    if (step === undefined) return true;
    const { wanted } = step;
    const found = slotsFor(stage);
    const { must, among } = keptFor(stage, wanted);
    const open = (among ?? [...found.keys()]).filter((position) => {
      const slot = found[position] as GpuSlot;
      if (!allows(demand.selection, slot.gpu)) return false;
      if (!slot.usable || slot.freeCores < Math.min(wanted.cores, 100)) return false;
      return wanted.cores >= 100 || slot.freeMemoryBytes >= wanted.memoryBytes;
    });
    return subsets(open, wanted.gpus ?? Math.ceil(wanted.cores / 100)).some((set) => {
      const chosen = set.map((position) => found[position] as GpuSlot);
      const bytes = chosen.reduce((sum, { freeMemoryBytes }) => sum + freeMemoryBytes, 0);
      const kinds = new Set(chosen.map(({ gpu }) => kindOf(demand.selection, gpu)));
      return (
        must.every((position) => set.includes(position)) &&
        (wanted.cores < 100 || bytes >= wanted.memoryBytes) &&
        kinds.size === 1 &&
        tryFrom(advance(shape, stage, step, set), at + 1)
      );
    });
  };
  return tryFrom(firstStage(slots), 0);
}

const selections = fc.record({
  models: fc.constantFrom([], [], ['T4'], ['A10']),
  excludedModels: fc.constantFrom([], [], [], ['T4']),
  uuids: fc.constantFrom([], [], ['GPU-0', 'GPU-1']),
  excludedUuids: fc.constantFrom([], [], ['GPU-0']),
  equalGpus: fc.boolean(),
  sameNuma: fc.boolean(),
  gpus: fc.constantFrom(1, 1, 2, 3),
  compute: fc.constantFrom(undefined, undefined, 'sm' as const),
  gpuPolicy: fc.constantFrom('binpack' as const, 'spread' as const),
  nodePolicy: fc.constant(null),
});

test('the fit result of one node serves the equal nodes of a cluster, for any demand', (t) => {
  const wantedOf = fc.oneof(
    fc.tuple(fc.constantFrom(20, 30, 40, 50, 60, 70), fc.integer({ min: 1, max: 20 })),
    fc.tuple(fc.constantFrom(100, 200), fc.integer({ min: 0, max: 40 })),
  );
  const gpu = fc.record({
    blocks: fc.constantFrom(16, 16, 24),
    model: fc.constantFrom('T4', 'T4', 'A10'),
    usable: fc.constantFrom(true, true, true, false),
    numaNode: fc.constantFrom(0, 0, 1),
    compute: fc.constantFrom(undefined, undefined, 'sm' as const),
  });
  const nodeOf = fc.record({
    gpus: fc.array(gpu, { minLength: 1, maxLength: 4 }),
    used,
  });
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        fc.array(nodeOf, { minLength: 2, maxLength: 8 }),
        fc.array(wantedOf, { minLength: 1, maxLength: 4 }),
        fc.array(wantedOf, { maxLength: 2 }),
        fc.oneof(fc.constant(ANY_GPUS), selections),
        (nodes, wanted, init, selection) => {
          const divided = (containers: readonly ContainerDemand[]): readonly ContainerDemand[] =>
            containers.map((each) =>
              each.cores < 100 && selection.gpus > 1 ? { ...each, gpus: selection.gpus } : each,
            );
          const demand = demandOf({
            containers: divided(pod(wanted).containers),
            init: divided(pod(init).containers),
            selection,
          });
          return nodes.every(({ gpus, used: taken }, slot) => {
            const shape = node(`n${slot}`, []);
            const entries = gpus.map(({ blocks, model, usable, numaNode, compute }, index) => {
              const entry = nodeGpu(index, blocks, { usable });
              return { ...entry, gpu: { ...entry.gpu, model, numaNode, compute } };
            });
            const there = new ClusterNode(slot, {
              ...shape,
              gpus: entries,
              topology: uniformTopology(gpus.length, 'PHB'),
            });
            const idle = slotsOf(there.shape, there.free);
            const charges = taken
              .filter(([position]) => position < gpus.length)
              .map(([position, cores, of]) => ({ position, cores, memoryBytes: of * BLOCK }));
            there.charge(charges, 0, 0, 1);
            const now = slotsOf(there.shape, there.free);
            const isSelected = entries.some(({ gpu: each }) => allows(selection, each));
            const unfit = !isSelected ? 'not-selected' : anySet(there, idle, demand) ? 'no-room' : 'too-large';
            const expected = anySet(there, now, demand) ? null : unfit;
            return (
              judgeFit(there, demand, new ScratchStates()) === expected &&
              tried(there, demand).fits === (expected === null) &&
              placePod(there.shape, now, demand).ok === (expected === null)
            );
          });
        },
      ),
      { numRuns: cases(600, 5_000) },
    ),
  );
  t.end();
});

test('a search that reaches its limit leaves the pod resolvable', (t) => {
  const there = new ClusterNode(
    0,
    node(
      'n',
      Array.from({ length: 12 }, (_, at) => 64 + at),
    ),
  );
  // Five GPUs without a container of 60 cores hold ten containers of 45.
  const wanted = Array.from({ length: 18 }, (_, at): [number, number] => [at < 7 ? 60 : 45, 1]);
  const demand = pod(wanted);
  const placed = placePod(there.shape, slotsOf(there.shape, there.free), demand);
  t.match(placed, { ok: false, isProven: false }, 'the search does not try all assignments of 18 containers');
  t.equal(judgeFit(there, demand, new ScratchStates()), 'not-searched');
  t.ok(isResolvable('not-searched'));
  t.end();
});

test('a pod that requires GPUs of one model gets GPUs of one model', (t) => {
  const shape = node('n', [16, 16, 16, 16]);
  const gpus = shape.gpus.map((gpu, at) => (at < 2 ? gpu : { ...gpu, gpu: { ...gpu.gpu, model: 'A10' } }));
  const there = new ClusterNode(0, { ...shape, gpus });
  const judged = (cores: number, equalGpus: boolean) =>
    judgeFit(there, pod([[cores, 0]], { selection: { ...ANY_GPUS, equalGpus } }), new ScratchStates());
  t.equal(judged(300, false), null);
  t.equal(judged(300, true), 'too-large');
  t.equal(judged(200, true), null);
  there.charge([{ position: 0, cores: 50, memoryBytes: 0 }], 0, 0, 1);
  there.charge([{ position: 2, cores: 50, memoryBytes: 0 }], 0, 0, 1);
  t.equal(judged(200, false), null);
  t.equal(judged(200, true), 'no-room');
  t.notOk(tried(there, pod([[200, 0]], { selection: { ...ANY_GPUS, equalGpus: true } })).fits);
  t.end();
});
