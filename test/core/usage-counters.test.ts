import fc from 'fast-check';
import { test } from 'tap';
import { addIncrease, NO_COUNTERS, wentBack, type UsageCounters } from '../../src/core/usage-counters.js';
import { decodeDeviceUsage, DEVICE_USAGE, type DeviceUsage } from '../../src/core/usage-file.js';

/** What a file may say: anything at all. */
const anyUsage = fc.uint8Array({ minLength: DEVICE_USAGE.structSize, maxLength: DEVICE_USAGE.structSize }).map((bytes) => decodeDeviceUsage(Buffer.from(bytes)));

function usage(counters: Partial<DeviceUsage>): DeviceUsage {
  return { ...decodeDeviceUsage(Buffer.alloc(DEVICE_USAGE.structSize)), ...counters };
}

const numbers = (counters: UsageCounters): number[] => Object.values(counters).flatMap((value) => (typeof value === 'number' ? [value] : Object.values(value)));

test('of one file that only its library writes the sum is what the file says', (t) => {
  const steps = fc.array(fc.record({ launches: fc.nat(1e6), throttledNs: fc.nat(1e9) }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(steps, (increases) => {
      let [total, before, now]: [UsageCounters, DeviceUsage | null, DeviceUsage] = [NO_COUNTERS, null, usage({})];
      for (const { launches, throttledNs } of increases) {
        now = usage({ launches: now.launches + launches, throttledNs: now.throttledNs + throttledNs });
        total = addIncrease(total, before, now);
        before = now;
      }
      return total.launches === now.launches && total.throttledNs === now.throttledNs;
    }),
  );
  t.end();
});

test('whatever is written, sums never fall and never leave the numbers that are exact', (t) => {
  fc.assert(
    fc.property(fc.array(anyUsage, { maxLength: 8 }), fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }), (reads, anew) => {
      let total = NO_COUNTERS;
      let before: DeviceUsage | null = null;
      for (const [at, now] of reads.entries()) {
        const next = addIncrease(total, anew[at] === true ? null : before, now);
        const [was, is] = [numbers(total), numbers(next)];
        if (is.some((value, index) => !Number.isSafeInteger(value) || value < (was[index] ?? Infinity))) return false;
        [total, before] = [next, now];
      }
      return true;
    }),
  );
  t.end();
});

test('a new file begins at nothing, and adds all that it says', (t) => {
  const first = addIncrease(NO_COUNTERS, null, usage({ launches: 5 }));
  t.equal(addIncrease(first, null, usage({ launches: 3 })).launches, 8);
  t.end();
});

test('denials are counted by API', (t) => {
  const before = usage({});
  const now = { ...before, denied: { ...before.denied, vmm: 2, alloc: 1 } };
  const total = addIncrease(addIncrease(NO_COUNTERS, null, before), before, now);
  t.match(total.denied, { vmm: 2, alloc: 1, pitch: 0 });
  t.end();
});

test('only counters that the library never lowers are evidence of a forgery', (t) => {
  const before = usage({ launches: 10, chargedNs: 10, throttledNs: 10, peakBytes: 10 });
  t.equal(wentBack(before, { ...before, peakBytes: 1, levelAtNs: 0n }), false);
  for (const name of ['launches', 'chargedNs', 'throttledNs'] as const) t.equal(wentBack(before, { ...before, [name]: 9 }), true);
  t.end();
});
