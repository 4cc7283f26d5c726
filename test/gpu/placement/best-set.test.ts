import fc from 'fast-check';
import { test } from 'tap';
import { ANY_GPUS } from '../../../src/gpu/gpu-selection.js';
import { place, type Placement } from '../../../src/gpu/placement/place.js';
import type { PlacementOptions } from '../../../src/gpu/placement/request.js';
import type { GpuSlot } from '../../../src/gpu/placement/slot.js';
import type { Level } from '../../../src/gpu/topology/level.js';
import { topologyOfPairs, type Topology } from '../../../src/gpu/topology/topology.js';
import {
  BRIDGED,
  CUBE_MESH,
  GIB,
  T6,
  T8,
  gpuAt,
  pcieMachine,
  slotsOf,
  switched,
  withNvlinks,
} from '../topology/machines.js';
import { anyMachine, pcieTrees, situations } from '../topology/random-machines.js';
import { firstInOrder, highestScore, linksOpinion, scoreOpinion, subsets } from './exhaustive.js';

const indexes = (placed: Placement): readonly number[] => (placed.ok ? placed.gpus.map((gpu) => gpu.index) : []);

/** `count` whole GPUs of `topology`, of which only `free` are free. */
function link(
  topology: Topology,
  free: readonly number[],
  count: number,
  options: PlacementOptions = {},
): readonly number[] {
  const slots = slotsOf(topology.levels.length).map((slot, at) =>
    free.includes(at) ? slot : { ...slot, freeCores: 0 },
  );
  return indexes(place(topology, slots, { cores: count * 100, memoryBytes: 0 }, options));
}

const everything = (topology: Topology): number[] => [...topology.levels.keys()];

/** Whether a machine has any NVLink. */
const isLinked = (topology: Topology): boolean => topology.nvlinks.some((row) => row.some((links) => links > 0));

test('no free set of the same size has more NVLinks or, without NVLink, a shorter distance, on any machine', (t) => {
  fc.assert(
    fc.property(
      situations(fc.oneof(anyMachine(8, 0), anyMachine(8, 2), anyMachine(8, 18))),
      ({ topology, free, count }) => {
        const chosen = link(topology, free, count);
        if (count > free.length) return chosen.length === 0;
        const opinion = isLinked(topology) ? linksOpinion : scoreOpinion;
        const fits = new Set(chosen).size === count && chosen.every((index) => free.includes(index));
        const best = Math.max(...subsets(free, count).map((set) => opinion(topology, set)));
        return fits && (count === 1 || opinion(topology, chosen) === best);
      },
    ),
    { numRuns: 400 },
  );
  t.pass('the test compares 400 situations');
  t.end();
});

test('sets are compared by their NVLinks, the disjoint NVLink sets that remain, PCIe and NUMA distance, and the PCIe value of the rest', (t) => {
  const switches = fc
    .tuple(pcieTrees(8), fc.integer({ min: 1, max: 18 }))
    .map(([tree, links]) =>
      topologyOfPairs(tree.levels.length, (a, b) => ({ level: levelOf(tree, a, b), nvlinks: links })),
    );
  const bridges = pcieTrees(8).map((tree) =>
    topologyOfPairs(tree.levels.length, (a, b) => ({
      level: levelOf(tree, a, b),
      nvlinks: a % 2 === 0 && b === a + 1 ? 4 : 0,
    })),
  );
  const joined = fc.oneof(anyMachine(7, 2), switches, bridges).filter(isLinked);
  fc.assert(
    fc.property(
      situations(joined),
      ({ topology, free, count }) =>
        String(link(topology, free, count)) === String(firstInOrder(topology, free, count) ?? []),
    ),
    { numRuns: 400 },
  );
  t.pass('the test compares 400 situations');
  t.end();
});

function levelOf(topology: Topology, a: number, b: number): Level {
  return topology.levels[a]?.[b] ?? 'SYS';
}

/** Eight GPUs on NVSwitch: 0 and 1 behind one PCIe switch, 2 and 3 and also 4 to 7 on host bridges of their own. */
const SWITCHED_UNEVEN = topologyOfPairs(8, (a, b) => ({
  level: a === 0 && b === 1 ? 'PXB' : a < 4 === b < 4 ? 'NODE' : 'SYS',
  nvlinks: 18,
}));

test('under NVSwitch a request gets the pair behind one switch, not a pair across sockets', (t) => {
  t.same(link(SWITCHED_UNEVEN, [0, 1, 3, 4], 2), [0, 1]);
  t.same(link(SWITCHED_UNEVEN, [0, 1, 3, 4, 5], 2), [0, 1]);
  t.same(link(SWITCHED_UNEVEN, [0, 1, 4, 5, 6], 1), [4], 'a single GPU leaves the near pairs intact');
  t.same(link(SWITCHED_UNEVEN, [1, 3, 4, 5, 6], 3), [4, 5, 6]);
  t.end();
});

test('a request for single GPUs does not break an NVLink pair for a third GPU, however near it is', (t) => {
  t.same(link(BRIDGED, everything(BRIDGED), 3), [4, 5, 6]);
  t.same(link(BRIDGED, [0, 1, 2, 3, 6], 3), [0, 1, 6], 'the set does not contain GPU 2, which is on the same socket');
  t.end();
});

test('the same node in the same state gives the same answer, with and without the cache', (t) => {
  fc.assert(
    fc.property(situations(anyMachine(8, 3)), ({ topology, free, count }) => {
      const copy = structuredClone(topology);
      return String(link(topology, free, count)) === String(link(copy, free, count));
    }),
    { numRuns: 100 },
  );
  t.pass('the test compares 100 situations');
  t.end();
});

test('the set contains the required GPUs and the best complement', (t) => {
  const pinned = situations(anyMachine(7, 2)).chain((given) =>
    fc.record({
      given: fc.constant(given),
      must: fc.subarray(given.free, { maxLength: Math.min(given.count, given.free.length) }),
    }),
  );
  fc.assert(
    fc.property(pinned, ({ given: { topology, free, count }, must }) => {
      if (count > free.length) return true;
      const chosen = link(topology, free, count, { mustInclude: must });
      const sets = subsets(free, count).filter((set) => must.every((position) => set.includes(position)));
      const opinion = isLinked(topology) ? linksOpinion : scoreOpinion;
      const best = Math.max(...sets.map((set) => opinion(topology, set)));
      return must.every((position) => chosen.includes(position)) && opinion(topology, chosen) === best;
    }),
    { numRuns: 200 },
  );
  t.pass('the test compares 200 situations');
  t.end();
});

test('the set contains only offered GPUs', (t) => {
  t.same(link(CUBE_MESH, everything(CUBE_MESH), 2, { among: [1, 2, 6] }), [1, 2]);
  t.same(link(CUBE_MESH, everything(CUBE_MESH), 2, { among: [1, 6] }), [1, 6]);
  t.same(link(CUBE_MESH, everything(CUBE_MESH), 2, { among: [3] }), []);
  t.end();
});

test('placement uses a prediction that can serve the request, and ignores any other', (t) => {
  t.same(link(CUBE_MESH, everything(CUBE_MESH), 2, { hint: [0, 6] }), [0, 6]);
  t.same(link(CUBE_MESH, [0, 1, 2], 2, { hint: [0, 6] }), [1, 2]);
  t.same(link(CUBE_MESH, everything(CUBE_MESH), 2, { hint: [5] }), link(CUBE_MESH, everything(CUBE_MESH), 2));
  t.same(link(CUBE_MESH, everything(CUBE_MESH), 2, { hint: [9, -1] }), link(CUBE_MESH, everything(CUBE_MESH), 2));
  t.same(link(T8, everything(T8), 1, { hint: [5] }), [5]);
  t.same(link(T8, [1, 2], 1, { hint: [5] }), [1]);
  t.same(link(T8, everything(T8), 2, { hint: [4, 5], mustInclude: [0] }), [0, 1]);
  t.end();
});

test('a pair is taken within a quad of the cube mesh, so that the other quad stays whole', (t) => {
  const pair = link(CUBE_MESH, everything(CUBE_MESH), 2);
  t.equal(scoreOpinion(CUBE_MESH, pair), 200);
  t.equal(new Set(pair.map((position) => position >> 2)).size, 1, `${pair.join(' and ')} are in one quad`);
  const rest = everything(CUBE_MESH).filter((position) => !pair.includes(position));
  t.equal(highestScore(CUBE_MESH, rest, 4), 900);
  t.end();
});

test('a single GPU is taken from outside the NVLink pairs', (t) => {
  t.same(link(BRIDGED, everything(BRIDGED), 1), [6]);
  t.same(link(BRIDGED, [0, 1, 2, 3, 4], 1), [4], 'the other half of its pair is taken');
  t.same(link(BRIDGED, [0, 1, 2, 3], 2), [0, 1]);
  t.end();
});

test('under NVSwitch the NUMA node decides: pairs stay on one node, and single GPUs fill the node in use', (t) => {
  const machine = switched(8, 18);
  t.same(link(machine, everything(machine), 2), [0, 1]);
  t.same(link(machine, everything(machine), 4), [0, 1, 2, 3]);
  t.same(link(machine, [0, 1, 2, 3, 5, 6, 7], 1), [5], 'one of the GPUs 4 to 7 is in use');
  t.same(link(machine, [0, 1, 2, 3, 5, 6, 7], 2), [5, 6]);
  t.end();
});

test('a part of a GPU opens the GPU whose loss leaves the best sets', (t) => {
  const share = (slots: readonly GpuSlot[]) => indexes(place(BRIDGED, slots, { cores: 30, memoryBytes: GIB }));
  t.same(share(slotsOf(8)), [6]);
  t.same(share(slotsOf(8, { 2: 10 })), [2], 'a partly used GPU comes first');
  t.same(share(slotsOf(8, { 6: 100 })), [7]);
  t.end();
});

test('a GPU with foreign processes comes last', (t) => {
  const busy = (...at: number[]) =>
    slotsOf(8).map((slot) => (at.includes(slot.gpu.index) ? { ...slot, processCount: 2 } : slot));
  t.same(indexes(place(CUBE_MESH, busy(0, 1, 2, 3), { cores: 200, memoryBytes: 0 })), [6, 7]);
  t.same(indexes(place(T8, busy(0), { cores: 100, memoryBytes: 0 })), [1]);
  t.same(
    indexes(place(T8, busy(0), { cores: 800, memoryBytes: 0 })),
    [0, 1, 2, 3, 4, 5, 6, 7],
    'the GPU is chosen when no other GPU can serve',
  );
  t.same(indexes(place(T8, busy(0), { cores: 50, memoryBytes: GIB })), [1]);
  t.end();
});

test('placement never chooses an unhealthy GPU', (t) => {
  const sick = (...at: number[]) => slotsOf(8).map((slot) => ({ ...slot, usable: !at.includes(slot.gpu.index) }));
  t.same(indexes(place(CUBE_MESH, sick(0, 1, 2, 3), { cores: 200, memoryBytes: 0 })), [4, 7]);
  t.same(indexes(place(T8, sick(0), { cores: 800, memoryBytes: 0 })), []);
  t.same(indexes(place(T8, sick(0), { cores: 100, memoryBytes: 0 }, { hint: [0] })), [1]);
  t.same(indexes(place(T8, sick(0), { cores: 100, memoryBytes: 0 }, { mustInclude: [0] })), []);
  t.same(indexes(place(T8, sick(0), { cores: 30, memoryBytes: GIB }, { mustInclude: [0] })), []);
  t.end();
});

test('whole GPUs offer the requested memory, also where GPUs are unequal', (t) => {
  const slots = slotsOf(6).map((slot, at) => {
    const memoryBytes = at === 3 ? 80 * GIB : 16 * GIB;
    return { ...slot, gpu: gpuAt(at, { memoryBytes }), freeMemoryBytes: memoryBytes };
  });
  const ask = (cores: number, gib: number) => indexes(place(T6, slots, { cores, memoryBytes: gib * GIB }));
  t.same(ask(100, 40), [3]);
  t.same(ask(100, 16), [4]);
  t.same(ask(200, 32), [0, 1]);
  t.same(ask(200, 90), [2, 3]);
  t.same(ask(200, 97), []);
  t.same(ask(600, 160), [0, 1, 2, 3, 4, 5]);
  t.end();
});

test('several whole GPUs have the same model and memory where that is possible', (t) => {
  const machine = switched(6, 4);
  const mixed = (large: readonly number[], taken: Readonly<Record<number, number>> = {}) =>
    slotsOf(6, taken).map((slot, at) => {
      const memoryBytes = large.includes(at) ? 80 * GIB : 16 * GIB;
      const model = large.includes(at) ? 'NVIDIA H100 80GB HBM3' : slot.gpu.model;
      const free = slot.freeCores === 100 ? memoryBytes : 0;
      return { ...slot, gpu: gpuAt(at, { memoryBytes, model }), freeMemoryBytes: free };
    });
  const ask = (slots: readonly GpuSlot[], count: number, gib = 0, equalGpus = false) =>
    place(machine, slots, { cores: count * 100, memoryBytes: gib * GIB, selection: { ...ANY_GPUS, equalGpus } });
  t.same(indexes(ask(mixed([0, 2, 4]), 2)), [0, 2], 'near GPUs are not equal on this machine');
  t.same(indexes(ask(mixed([0, 3]), 2, 90)), [0, 3], 'only the large GPUs have the memory');
  t.same(indexes(ask(mixed([0]), 2, 90)), [0, 1], 'equal GPUs are preferred, not required');
  t.match(ask(mixed([0]), 2, 90, true), {
    ok: false,
    reason: /^asked for 2 whole GPUs of one model and memory with 92160 MiB together; 6 are free|6 of 6 are free/,
  });
  t.same(indexes(ask(mixed([0, 1, 2]), 4)), [0, 1, 2, 3], 'no four GPUs are equal');
  t.notOk(ask(mixed([0, 1, 2]), 4, 0, true).ok);
  t.same(indexes(ask(mixed([0, 1, 2], { 4: 100, 5: 100 }), 2, 0, true)), [0, 1]);
  t.same(indexes(ask(mixed([0]), 1, 80, true)), [0], 'one GPU equals itself');
  t.same(
    indexes(place(machine, mixed([0, 2, 4]), { cores: 200, memoryBytes: 0 }, { mustInclude: [3] })),
    [3, 5],
    'a required GPU is joined by its equals',
  );
  t.end();
});

test('GPUs with less memory do not replace twins with more memory', (t) => {
  const machine = switched(4, 4);
  const slots = slotsOf(4).map((slot, at) => ({ ...slot, freeMemoryBytes: (at < 2 ? 8 : 16) * GIB }));
  t.same(indexes(place(machine, slots, { cores: 200, memoryBytes: 32 * GIB })), [2, 3]);
  t.end();
});

test('placement finds NVLinks among more than sixteen GPUs', (t) => {
  const pairs: [number, number, number][] = Array.from({ length: 10 }, (_, at) => [2 * at, 2 * at + 1, 4]);
  const machine = withNvlinks(
    pcieMachine(20, ['NODE', everything(T8), [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]]),
    pairs,
  );
  const free = everything(machine).filter((position) => position !== 0);
  t.same(link(machine, free, 2), [2, 3]);
  t.equal(scoreOpinion(machine, link(machine, free, 4)), 2 * 400 + 4 * 20);
  t.equal(linksOpinion(machine, link(machine, free, 12)), 6 * 4, 'six pairs exist among nineteen free GPUs');
  t.same(link(machine, free, 1), [1], 'its partner is taken');
  t.equal(link(machine, free, 19).length, 19);
  t.same(link(machine, free, 20), []);
  t.same(link(machine, free, 3, { mustInclude: [7, 19] }).length, 3);
  const slots = slotsOf(20).map((slot, at) => (at === 19 ? { ...slot, freeMemoryBytes: 80 * GIB } : slot));
  t.ok(indexes(place(machine, slots, { cores: 200, memoryBytes: 90 * GIB })).includes(19));
  t.same(indexes(place(machine, slots, { cores: 200, memoryBytes: 97 * GIB })), []);
  t.end();
});

test('placement compares all sets where a large machine has few free GPUs', (t) => {
  const single = withNvlinks(pcieMachine(20, ['PIX', [0, 1]], ['NODE', everything(T8)]), [[5, 15, 2]]);
  t.same(link(single, [0, 1, 5, 15], 2), [5, 15], 'no exchange of a single GPU leads to this set');
  t.same(link(single, [0, 1, 5, 15], 1), [0]);
  fc.assert(
    fc.property(anyMachine(20, 2), fc.integer({ min: 1, max: 5 }), (topology, count) => {
      const free = everything(topology).slice(-7);
      if (!isLinked(topology) || topology.levels.length < 17) return true;
      const linked = free.some((a) => free.some((b) => (topology.nvlinks[a]?.[b] ?? 0) > 0));
      return !linked || String(link(topology, free, count)) === String(firstInOrder(topology, free, count) ?? []);
    }),
    { numRuns: 60 },
  );
  t.end();
});

test('a board of 256 GPUs in groups of eight gives whole groups', (t) => {
  const board = topologyOfPairs(256, (a, b) => ({
    level: a >> 3 === b >> 3 ? 'PXB' : 'SYS',
    nvlinks: a >> 3 === b >> 3 ? 18 : 0,
  }));
  const free = everything(board).filter((position) => position % 8 !== 0 || position >= 128);
  for (const groups of [1, 2, 4]) {
    const chosen = link(board, free, groups * 8);
    t.equal(chosen.length, groups * 8);
    t.equal(new Set(chosen.map((position) => position >> 3)).size, groups, `${groups} groups`);
  }
  t.end();
});
