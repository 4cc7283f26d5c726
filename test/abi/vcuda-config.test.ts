import fc from 'fast-check';
import { test } from 'tap';
import {
  MAX_PIDS,
  VCUDA_CONFIG,
  decodePids,
  encodePids,
  encodeVcudaConfig,
  parseDriverVersion,
} from '../../src/abi/vcuda-config.js';
import type { VcudaConfig } from '../../src/abi/vcuda-config.js';
import { readVcudaConfig } from './read-vcuda-config.js';

const sample: VcudaConfig = {
  podUid: '3ac4c1f0-5d2b-4f1e-9a8e-0d1b6b172fbb',
  containerName: 'trainer',
  busId: '',
  gpuMemoryBytes: 4 * 268_435_456,
  cores: 50,
  softLimit: null,
  driverVersion: { major: 470, minor: 57 },
};

test('the tail has the bytes that the original daemon writes', (t) => {
  const bytes = encodeVcudaConfig(sample);
  // The memory of the reference sample exceeds the exact integers of a double, so the test writes its bytes itself.
  bytes.writeBigUInt64LE(0x1122_3344_5566_7788n, VCUDA_CONFIG.gpuMemoryBytes);
  t.equal(bytes.length, 8240);
  t.equal(
    bytes.subarray(0x2010).toString('hex'),
    '8877665544332211' + '32000000' + '01000000' + 'd6010000' + '39000000' + '01000000' + '00000000',
  );
  t.equal(bytes.toString('utf8', 0, 36), sample.podUid);
  t.equal(bytes.toString('utf8', 4096, 4104), 'trainer\0');
  t.end();
});

test('a soft limit turns the hard limit off, and a whole GPU turns limits off', (t) => {
  const soft = encodeVcudaConfig({ ...sample, softLimit: 80 });
  t.equal(soft.readInt32LE(48), 80);
  t.equal(soft.readInt32LE(8220), 0);
  t.equal(encodeVcudaConfig({ ...sample, softLimit: 400 }).readInt32LE(48), 100);
  t.equal(encodeVcudaConfig({ ...sample, cores: 200 }).readInt32LE(8232), 0);
  t.end();
});

test('encoded configurations are read back as the same configurations', (t) => {
  const config = fc.record({
    podUid: fc.uuid(),
    containerName: fc.stringMatching(/^[a-z0-9-]{1,63}$/),
    busId: fc.constantFrom('', '0000:3B:00.0'),
    gpuMemoryBytes: fc.integer({ min: 0, max: 2 ** 40 }),
    cores: fc.integer({ min: 1, max: 1600 }),
    softLimit: fc.option(fc.integer({ min: 1, max: 100 })),
    driverVersion: fc.record({ major: fc.integer({ min: 0, max: 999 }), minor: fc.integer({ min: 0, max: 999 }) }),
  });
  fc.assert(
    fc.property(config, (written) => {
      t.same(readVcudaConfig(encodeVcudaConfig(written)), { ...written, enabled: written.cores < 100 });
    }),
  );
  t.end();
});

test('texts that do not fit are refused', (t) => {
  t.throws(() => encodeVcudaConfig({ ...sample, podUid: 'x'.repeat(48) }), RangeError);
  t.throws(() => encodeVcudaConfig({ ...sample, busId: '00000000:3B:00.0' }), RangeError);
  t.end();
});

test('driver versions of two and three parts have a major and a minor', (t) => {
  t.same(parseDriverVersion('470.57.02'), { major: 470, minor: 57 });
  t.same(parseDriverVersion('390.116'), { major: 390, minor: 116 });
  t.same(parseDriverVersion('1'), { major: 1, minor: 0 });
  t.same(parseDriverVersion(''), { major: 0, minor: 0 });
  t.end();
});

test('pids are sorted, unique and at most as many as the library reads', (t) => {
  t.equal(encodePids([300, 2, 300, 17]).toString('hex'), '02000000' + '11000000' + '2c010000');
  t.equal(encodePids(Array.from({ length: 3000 }, (_, pid) => pid)).length, MAX_PIDS * 4);
  t.same(decodePids(encodePids([9, 8, 7])), [7, 8, 9]);
  t.same(decodePids(Buffer.from('0200000011', 'hex')), [2]);
  t.same(decodePids(encodePids([])), []);
  t.end();
});
