import { test } from 'tap';
import { decodeDeviceUsage } from '../../../../src/abi/usage-file.js';
import { DEVICE_USAGE } from '../../../../src/abi/vgpu-abi.js';
import { CounterTotal } from '../../../../src/agent/slices/usage/counter-total.js';
import type { UsageReader } from '../../../../src/agent/slices/usage/usage-reader.js';

/** A usage file of one GPU with these counters. */
function file(counters: { launches: number; peakBytes: number }): UsageReader {
  const bytes = Buffer.alloc(DEVICE_USAGE.structSize);
  const deviceBytes = (): Buffer => {
    bytes.writeUInt32LE(counters.launches, DEVICE_USAGE.launches);
    bytes.writeUInt32LE(counters.peakBytes, DEVICE_USAGE.peakBytes);
    return bytes;
  };
  return { deviceBytes } as unknown as UsageReader;
}

test('all counters are those of the last read, and are decoded anew only if one of them changed', (t) => {
  const counters = { launches: 3, peakBytes: 5 };
  const reader = file(counters);
  const total = new CounterTotal(0);
  const first = total.readAll(reader);
  t.same(first, decodeDeviceUsage(reader.deviceBytes(0) ?? Buffer.alloc(0)));
  t.equal(total.readAll(reader), first, 'nothing changed');
  t.equal(total.total.launches, 3);
  // A counter that steering does not read.
  counters.peakBytes = 7;
  t.match(total.readAll(reader), { launches: 3, peakBytes: 7 });
  counters.launches = 4;
  total.read(reader);
  t.equal(total.total.launches, 4);
  t.match(total.readAll(reader), { launches: 4, peakBytes: 7 });
  t.end();
});

test('another file has counters of its own, also if they are equal', (t) => {
  const total = new CounterTotal(0);
  t.match(total.readAll(file({ launches: 3, peakBytes: 5 })), { launches: 3 });
  t.match(total.readAll(file({ launches: 3, peakBytes: 6 })), { launches: 3, peakBytes: 6 });
  t.equal(total.total.launches, 6);
  t.equal(total.readAll(null), null);
  t.end();
});
