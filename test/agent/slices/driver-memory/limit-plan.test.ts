import { test } from 'tap';
import type { MemoryEnforcer } from '../../../../src/agent/slices/driver-memory/gpu-enforcement.js';
import {
  containerLimits,
  firstStep,
  NO_LIMITS,
  podLimits,
  stepAfterRead,
  type LimitFacts,
} from '../../../../src/agent/slices/driver-memory/limit-plan.js';

const GIB = 2 ** 30;
const MISC: MemoryEnforcer = { by: 'driver', backend: 'misc' };
const DMEM: MemoryEnforcer = { by: 'driver', backend: 'dmem' };
const LIBRARY: MemoryEnforcer = { by: 'library', reason: '--memory-enforcement=library', mayHaveLimits: true };
const FACTS: LimitFacts = {
  enforcer: MISC,
  limitBytes: 2 * GIB,
  allocatedBytes: 2 * GIB,
  suspendedBytes: null,
  isLeftToDriver: false,
};

for (const [what, facts, soft, hard] of [
  ['what was allocated is guaranteed', {}, 2, 2],
  ['a lower limit is guaranteed as far as it goes', { limitBytes: GIB }, 1, 1],
  ['more than was allocated is not guaranteed', { limitBytes: 3 * GIB }, 2, 3],
  ['with dmem nothing is guaranteed', { enforcer: DMEM }, 0, 2],
  ['a slice without limit has none', { limitBytes: null }, 0, null],
  ['with the library the limit of an earlier run goes', { enforcer: LIBRARY }, 0, null],
  ['unless the library left memory to the driver', { enforcer: LIBRARY, isLeftToDriver: true }, 0, 2],
  ['a suspended slice needs no guarantee', { suspendedBytes: GIB }, 0, 2],
  ['a suspended slice keeps room to come back', { limitBytes: GIB, suspendedBytes: 2 * GIB }, 0, 2],
] as const)
  test(`limits of a container: ${what}`, async (t) => {
    t.same(containerLimits({ ...FACTS, ...facts }), {
      softBytes: soft * GIB,
      hardBytes: hard === null ? null : hard * GIB,
    });
  });

test('limits of a container: the agent says nothing on a GPU whose driver has none', async (t) => {
  t.equal(containerLimits({ ...FACTS, enforcer: { by: 'library', reason: null } }), null);
  t.equal(containerLimits({ ...FACTS, enforcer: { by: 'library', reason: 'MIG' } }), null);
});

test('limits of a pod are the sum of those of its containers, if all have one', async (t) => {
  const limits = (gib: number) => ({ softBytes: gib * GIB, hardBytes: gib * GIB });
  t.same(podLimits([limits(1), limits(2)]), { softBytes: 0, hardBytes: 3 * GIB });
  t.same(podLimits([limits(1), NO_LIMITS]), NO_LIMITS);
  t.equal(podLimits([limits(1), null]), null);
  t.same(podLimits([]), NO_LIMITS);
});

test('the driver is asked where the limits are unknown or not trusted, and told where they differ', async (t) => {
  const wanted = { softBytes: 0, hardBytes: GIB };
  const other = { softBytes: 0, hardBytes: 2 * GIB };
  t.equal(firstStep(null, undefined, false), 'nothing');
  t.equal(firstStep(wanted, wanted, true), 'nothing');
  t.equal(firstStep(wanted, wanted, false), 'read');
  t.equal(firstStep(wanted, undefined, true), 'read');
  t.equal(firstStep(wanted, other, true), 'set');
  t.equal(stepAfterRead(wanted, wanted, 'gone'), 'gone');
  t.equal(stepAfterRead(wanted, undefined, { ...wanted, usedBytes: 5 }), 'right');
  t.equal(stepAfterRead(wanted, undefined, 'none'), 'set');
  t.equal(stepAfterRead(wanted, other, 'none'), 'set');
  t.equal(stepAfterRead(wanted, wanted, 'none'), 'set-again', 'somebody else changed it');
  t.equal(stepAfterRead(NO_LIMITS, NO_LIMITS, 'none'), 'right');
});
