import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { kernelDriver, noKernelDriver } from '../../../../src/agent/gpus/nvidia/kernel-driver.js';

function machine(t: Test) {
  const root = mkdtempSync(join(tmpdir(), 'kernel-'));
  t.teardown(() => rmSync(root, { recursive: true }));
  const paths = { dev: join(root, 'dev'), proc: join(root, 'proc'), sys: join(root, 'sys') };
  for (const path of Object.values(paths)) mkdirSync(path);
  const put = (path: string, content = ''): void => {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
  };
  return { paths, put, calls: [] as string[] };
}

test('no module is loaded where the device nodes exist', async (t) => {
  const { paths, put, calls } = machine(t);
  put(join(paths.dev, 'nvidiactl'));
  put(join(paths.dev, 'nvidia-uvm'));
  const kernel = kernelDriver(paths, async (program) => void calls.push(program));
  t.equal(await kernel.ensureLoaded(), null);
  t.same(calls, []);
});

test('missing modules are loaded and reported', async (t) => {
  const { paths, put, calls } = machine(t);
  put(join(paths.dev, 'nvidiactl'));
  const kernel = kernelDriver(paths, async (program, args) => {
    calls.push([program, ...args].join(' '));
    put(join(paths.dev, 'nvidia-uvm'));
  });
  t.equal(
    await kernel.ensureLoaded(),
    `loaded kernel modules with modprobe, since there was no ${join(paths.dev, 'nvidia-uvm')}`,
  );
  t.same(calls, ['modprobe -a nvidia nvidia-uvm']);
});

test('nvidia-modprobe makes the device nodes where modprobe does not', async (t) => {
  const { paths, put } = machine(t);
  const kernel = kernelDriver(paths, async (program) => {
    if (program !== 'nvidia-modprobe') return;
    put(join(paths.dev, 'nvidiactl'));
    put(join(paths.dev, 'nvidia-uvm'));
  });
  t.match(
    await kernel.ensureLoaded(),
    /^loaded kernel modules with nvidia-modprobe, since there was no .*nvidiactl and .*nvidia-uvm$/,
  );
});

test('a failure to load modules names the modules and the commands that were tried', async (t) => {
  const { paths } = machine(t);
  const kernel = kernelDriver(paths, async (program) => {
    if (program === 'nvidia-modprobe') throw new Error('spawn nvidia-modprobe ENOENT');
    throw new Error('Command failed: modprobe\nmodprobe: FATAL: Module nvidia not found');
  });
  const said = await kernel.ensureLoaded();
  t.match(
    said,
    /kernel modules could not be loaded \(modprobe: Command failed: modprobe; nvidia-modprobe: spawn nvidia-modprobe ENOENT\)$/,
  );
});

test('the kernel driver lists the GPUs that it binds, or nothing', async (t) => {
  const { paths } = machine(t);
  const kernel = kernelDriver(paths, async () => undefined);
  t.equal(await kernel.gpus(), null);
  for (const id of ['0000:3b:00.0', '0000:04:00.0'])
    mkdirSync(join(paths.proc, 'driver/nvidia/gpus', id), { recursive: true });
  t.same(await kernel.gpus(), ['0000:04:00.0', '0000:3b:00.0']);
});

test('the NUMA node of a GPU is that of its PCI device', async (t) => {
  const { paths, put } = machine(t);
  const kernel = kernelDriver(paths, async () => undefined);
  put(join(paths.sys, 'bus/pci/devices/0000:3b:00.0/numa_node'), '1\n');
  put(join(paths.sys, 'bus/pci/devices/0000:3c:00.0/numa_node'), '-1\n');
  t.equal(await kernel.numaNode('00000000:3B:00.0'), 1);
  t.equal(await kernel.numaNode('00000000:3C:00.0'), null);
  t.equal(await kernel.numaNode('00000000:3E:00.0'), null);
});

test('a library that needs no kernel driver gets an empty one', async (t) => {
  t.equal(await noKernelDriver.ensureLoaded(), null);
  t.equal(await noKernelDriver.gpus(), null);
  t.equal(await noKernelDriver.numaNode('00000000:3B:00.0'), null);
});
