import fc from 'fast-check';
import { test } from 'tap';
import {
  addIncrease,
  highest,
  NO_COUNTERS,
  wentBack,
  type UsageCounters,
} from '../../../../src/agent/slices/usage/usage-counters.js';
import { decodeDeviceUsage, type DeviceUsage } from '../../../../src/abi/usage-file.js';
import { DEVICE_USAGE } from '../../../../src/abi/vgpu-abi.js';

/** Contents of a file: anything at all. */
const anyUsage = fc
  .uint8Array({ minLength: DEVICE_USAGE.structSize, maxLength: DEVICE_USAGE.structSize })
  .map((bytes) => decodeDeviceUsage(Buffer.from(bytes)));

function usage(counters: Partial<DeviceUsage>): DeviceUsage {
  return { ...decodeDeviceUsage(Buffer.alloc(DEVICE_USAGE.structSize)), ...counters };
}

const numbers = (counters: UsageCounters): number[] =>
  Object.values(counters).flatMap((value) => (typeof value === 'number' ? [value] : Object.values(value)));

test('for a file that only its library writes the sum equals the counters of the file', (t) => {
  const steps = fc.array(fc.record({ launches: fc.nat(1e6), throttledNs: fc.nat(1e9) }), {
    minLength: 1,
    maxLength: 20,
  });
  fc.assert(
    fc.property(steps, (increases) => {
      let [total, seen, now]: [UsageCounters, UsageCounters, DeviceUsage] = [NO_COUNTERS, NO_COUNTERS, usage({})];
      for (const { launches, throttledNs } of increases) {
        now = usage({ launches: now.launches + launches, throttledNs: now.throttledNs + throttledNs });
        total = addIncrease(total, seen, now);
        seen = highest(seen, now);
      }
      return total.launches === now.launches && total.throttledNs === now.throttledNs;
    }),
  );
  t.end();
});

test('sums never decrease and stay exact, whatever is written', (t) => {
  fc.assert(
    fc.property(
      fc.array(anyUsage, { maxLength: 8 }),
      fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
      (reads, anew) => {
        let [total, seen] = [NO_COUNTERS, NO_COUNTERS];
        for (const [at, now] of reads.entries()) {
          if (anew[at] === true) seen = NO_COUNTERS;
          const next = addIncrease(total, seen, now);
          const [was, is] = [numbers(total), numbers(next)];
          if (is.some((value, index) => !Number.isSafeInteger(value) || value < (was[index] ?? Infinity))) return false;
          [total, seen] = [next, highest(seen, now)];
        }
        return true;
      },
    ),
  );
  t.end();
});

test('a new file begins at zero, and adds its counters', (t) => {
  const first = addIncrease(NO_COUNTERS, NO_COUNTERS, usage({ launches: 5 }));
  t.equal(addIncrease(first, NO_COUNTERS, usage({ launches: 3 })).launches, 8);
  t.end();
});

test('a charge that is refunded and made again counts once', (t) => {
  let [total, seen] = [NO_COUNTERS, NO_COUNTERS];
  for (const chargedNs of [100, 70, 90, 100, 130]) {
    const now = usage({ chargedNs });
    total = addIncrease(total, seen, now);
    seen = highest(seen, now);
  }
  t.equal(total.chargedNs, 130);
  t.end();
});

test('denials are counted by API', (t) => {
  const now = { ...usage({}), denied: { ...NO_COUNTERS.denied, vmm: 2, alloc: 1 } };
  const total = addIncrease(NO_COUNTERS, NO_COUNTERS, now);
  t.match(total.denied, { vmm: 2, alloc: 1, pitch: 0 });
  t.end();
});

test('only counters that the library never decreases are evidence of forgery', (t) => {
  const before = usage({ launches: 10, chargedNs: 10, waits: 10, throttledNs: 10, peakBytes: 10 });
  t.equal(wentBack(before, usage({ ...before, peakBytes: 1, chargedNs: 9, levelAtNs: 0n })), false);
  for (const name of ['launches', 'waits', 'throttledNs'] as const)
    t.equal(wentBack(before, { ...before, [name]: 9 }), true);
  t.end();
});
