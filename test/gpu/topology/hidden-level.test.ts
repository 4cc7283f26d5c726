import fc from 'fast-check';
import { test } from 'tap';
import { bridgeHiddenLevels, type Device } from '../../../src/gpu/topology/hidden-level.js';
import { NVML_VALUE } from '../../../src/gpu/topology/level.js';
import { levelBetween, subTopology, type Topology } from '../../../src/gpu/topology/topology.js';
import { pcieTrees } from './random-machines.js';

/** The matrix of a machine whose first `gpus` devices are GPUs, with NVLink between some pairs of them. */
function shown(
  machine: Topology,
  gpus: number,
  linked: (a: number, b: number) => boolean,
  affinity: (a: number) => string | null,
): Device[] {
  return Array.from({ length: gpus }, (_, a) => ({
    links: [...machine.levels.keys()].map((b) =>
      b < gpus && a !== b && linked(a, b)
        ? { level: null, nvlinks: 2 }
        : { level: levelBetween(machine, a, b), nvlinks: 0 },
    ),
    affinity: affinity(a),
  }));
}

const anyMatrix = pcieTrees(10).chain((machine) =>
  fc.record({
    machine: fc.constant(machine),
    gpus: fc.integer({ min: 1, max: machine.levels.length }),
    linked: fc.array(fc.boolean(), { minLength: 100, maxLength: 100 }),
  }),
);

test('a level hidden by NVLink is never inferred nearer than it is', (t) => {
  fc.assert(
    fc.property(anyMatrix, ({ machine, gpus, linked }) => {
      const isLinked = (a: number, b: number) => linked[Math.min(a, b) * 10 + Math.max(a, b)] === true;
      // GPUs of one NUMA node have the same affinity: those that meet below SYS.
      const affinity = (a: number) =>
        String([...machine.levels.keys()].find((b) => levelBetween(machine, a, b) !== 'SYS'));
      const concluded = bridgeHiddenLevels(shown(machine, gpus, isLinked, affinity));
      for (let a = 0; a < gpus; a++) {
        for (let b = 0; b < gpus; b++) {
          const truth = NVML_VALUE[levelBetween(machine, a, b)];
          const found = NVML_VALUE[levelBetween(concluded, a, b)];
          if (found < truth || (!isLinked(a, b) && found !== truth)) return false;
        }
      }
      return true;
    }),
    { numRuns: 400 },
  );
  t.pass('the test covers 400 matrices');
  t.end();
});

test('with a NIC in every group the levels hidden by NVLink are inferred exactly', (t) => {
  fc.assert(
    fc.property(pcieTrees(5), (machine) => {
      // Every device twice: the second one, a NIC, is on the same switch as the first.
      const count = machine.levels.length;
      const doubled = subTopology(machine, [...machine.levels.keys(), ...machine.levels.keys()]);
      const beside: Topology = {
        ...doubled,
        levels: doubled.levels.map((row, a) =>
          row.map((level, b) => (a !== b && a % count === b % count ? 'PIX' : level)),
        ),
      };
      const concluded = bridgeHiddenLevels(
        shown(
          beside,
          count,
          () => true,
          () => null,
        ),
      );
      return String(concluded.levels) === String(machine.levels);
    }),
    { numRuns: 200 },
  );
  t.pass('the test covers 200 machines');
  t.end();
});

test('without any other hint the affinity decides between NODE and SYS', (t) => {
  const device = (affinity: string | null, at: number): Device => ({
    links: [0, 1].map((other) => (other === at ? { level: 'X' as const, nvlinks: 0 } : { level: null, nvlinks: 1 })),
    affinity,
  });
  const between = (a: string | null, b: string | null) =>
    bridgeHiddenLevels([device(a, 0), device(b, 1)]).levels[0]?.[1];
  t.equal(between('0-7', '0-7'), 'NODE');
  t.equal(between('0-7', '8-15'), 'SYS');
  t.equal(between(null, null), 'SYS', 'two unknown affinities are not equal affinities');
  t.end();
});
