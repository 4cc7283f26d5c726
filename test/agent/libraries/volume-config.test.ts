import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parseVolumeConfig } from '../../../src/agent/libraries/volume-config.js';
import { driverLibraries } from './host-builder.js';

const SHIPPED = fileURLToPath(new URL('../../../../etc/volume.conf', import.meta.url));

test('a volume.conf of the original is read unchanged, its mode and unknown keys are ignored', (t) => {
  const text =
    '{"volume":[{"name":"nvidia","base":"/etc/gpu-manager/vdriver","mode":"ReadWriteOnce","comment":1,"components":{"binaries":["nvidia-smi"],"libraries":["libcuda.so"]}}]}';
  t.same(parseVolumeConfig(text), {
    ok: true,
    volumes: [
      { name: 'nvidia', base: '/etc/gpu-manager/vdriver', binaries: ['nvidia-smi'], libraries: ['libcuda.so'] },
    ],
  });
  t.end();
});

test('components that are missing or null are empty', (t) => {
  const volume = (components: string) => `{"volume":[{"name":"origin","base":"/x"${components}}]}`;
  const expected = { ok: true, volumes: [{ name: 'origin', base: '/x', binaries: [], libraries: [] }] };
  for (const components of ['', ',"components":null', ',"components":{}', ',"components":{"libraries":null}'])
    t.same(parseVolumeConfig(volume(components)), expected);
  t.end();
});

test('a file that is not a volume.conf is refused with the place and the reason', (t) => {
  t.match(parseVolumeConfig('{"volume":'), { ok: false, code: 'not-json' });
  t.match(parseVolumeConfig('{}'), { ok: false, code: 'wrong-shape', reason: /volume/ });
  t.match(parseVolumeConfig('{"volume":[{"name":"a","base":"relative"}]}'), {
    ok: false,
    code: 'wrong-shape',
    reason: /volume\[0\]\.base/,
  });
  t.match(parseVolumeConfig('{"volume":[{"name":"../a","base":"/x"}]}'), {
    ok: false,
    code: 'wrong-shape',
    reason: /volume\[0\]\.name/,
  });
  t.match(parseVolumeConfig('{"volume":[{"name":"a","base":"/x"},{"name":"a","base":"/x"}]}'), {
    ok: false,
    reason: /described twice/,
  });
  t.end();
});

test('the shipped volume.conf covers the libraries of drivers 470 to 580 and no firmware', (t) => {
  const parsed = parseVolumeConfig(readFileSync(SHIPPED, 'utf8'));
  if (!parsed.ok) throw new Error(parsed.reason);
  t.same(
    parsed.volumes.map(({ name, base }) => `${base}/${name}`),
    ['/etc/gpu-manager/vdriver/nvidia', '/etc/gpu-manager/vdriver/origin'],
  );
  for (const { libraries } of parsed.volumes) {
    for (const driver of ['470.256.02', '535.54.03', '580.95.05']) {
      const uncovered = driverLibraries(driver).filter(
        ({ file }) => !libraries.some((listed) => file.startsWith(listed)),
      );
      t.same(
        uncovered.map(({ file }) => file),
        ['libz.so.1.2.13'],
        driver,
      );
    }
    t.same(
      libraries.filter((name) => !name.endsWith('.so')),
      [],
    );
    t.equal(new Set(libraries).size, libraries.length);
  }
  t.end();
});
