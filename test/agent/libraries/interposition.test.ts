import { test } from 'tap';
import { defaultPathMounts } from '../../../src/agent/libraries/interposition.js';

const MIRROR = '/etc/gpu-manager/vdriver/nvidia/current';

test('a limited container finds the control libraries, and these find the driver, in both default directories', (t) => {
  const mounts = defaultPathMounts(MIRROR, true, 'x86-64');
  t.same(
    mounts.map(({ containerPath }) => containerPath),
    ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'].flatMap((directory) =>
      ['libcuda.so.1', 'libnvidia-ml.so.1', 'libcuda-origin.so.1', 'libnvidia-ml-origin.so.1'].map(
        (name) => `${directory}/${name}`,
      ),
    ),
  );
  for (const { hostPath, containerPath, writable } of mounts) {
    t.equal(hostPath, `${MIRROR}/lib64/${containerPath.split('/').at(-1) ?? ''}`);
    t.equal(writable, false);
  }
  t.end();
});

test('a container with whole GPUs finds the driver itself', (t) => {
  t.same(
    defaultPathMounts(MIRROR, false, 'aarch64').map(({ containerPath }) => containerPath),
    [
      '/usr/lib/aarch64-linux-gnu/libcuda.so.1',
      '/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1',
      '/usr/lib64/libcuda.so.1',
      '/usr/lib64/libnvidia-ml.so.1',
    ],
  );
  t.end();
});

test('no library is mounted where no default directory is known', (t) => {
  t.same(defaultPathMounts(MIRROR, true, 'other'), []);
  t.end();
});
