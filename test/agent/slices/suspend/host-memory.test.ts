import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { freeGroupBytes, freeHostBytes } from '../../../../src/agent/slices/suspend/host-memory.js';
import { scratchDirectory } from '../../../scratch.js';

const MIB = 2 ** 20;

async function machine(t: Parameters<typeof scratchDirectory>[0], files: Readonly<Record<string, string | number>>) {
  const directory = await scratchDirectory(t);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(directory, path, '..'), { recursive: true });
    await writeFile(join(directory, path), `${content}\n`);
  }
  return { proc: join(directory, 'proc'), cgroups: join(directory, 'cgroup') };
}

test('the free memory of the host is what it can give without swapping', async (t) => {
  const places = await machine(t, { 'proc/meminfo': 'MemTotal: 2048 kB\nMemFree:  16 kB\nMemAvailable:   1024 kB' });
  t.equal(await freeHostBytes(places), MIB);
  t.equal(await freeHostBytes(await machine(t, { 'proc/meminfo': 'MemTotal: 2048 kB' })), null);
});

test('the tightest control group above a process decides, in version 2', async (t) => {
  const places = await machine(t, {
    'proc/7/cgroup': '0::/kubepods/pod1/main',
    'cgroup/kubepods/pod1/main/memory.max': 'max',
    'cgroup/kubepods/pod1/main/memory.current': 10 * MIB,
    'cgroup/kubepods/pod1/memory.max': 100 * MIB,
    'cgroup/kubepods/pod1/memory.current': 30 * MIB,
    'cgroup/kubepods/memory.max': 1000 * MIB,
    'cgroup/kubepods/memory.current': 900 * MIB,
  });
  t.equal(await freeGroupBytes(7, places), 70 * MIB);
});

test('version 1 has a controller of its own, and a number for no limit', async (t) => {
  const places = await machine(t, {
    'proc/7/cgroup': '4:cpu,memory:/pod1/main\n0::/elsewhere',
    'proc/8/cgroup': '4:memory:/pod2',
    'cgroup/memory/pod1/main/memory.limit_in_bytes': 50 * MIB,
    'cgroup/memory/pod1/main/memory.usage_in_bytes': 20 * MIB,
    'cgroup/memory/pod2/memory.limit_in_bytes': '9223372036854771712',
    'cgroup/memory/pod2/memory.usage_in_bytes': 20 * MIB,
  });
  t.equal(await freeGroupBytes(7, places), 30 * MIB);
  t.equal(await freeGroupBytes(8, places), Infinity);
});

test('an agent in a control group namespace of its own finds groups outside of it', async (t) => {
  const files = {
    'proc/7/cgroup': '0::/../../pods/pod1/main',
    'proc/8/cgroup': '0::/../sibling',
    'cgroup/system/agents/own/memory.max': 'max',
    'cgroup/system/agents/sibling/memory.max': 20 * MIB,
    'cgroup/system/agents/sibling/memory.current': 15 * MIB,
    'cgroup/system/pods/pod1/main/memory.max': 100 * MIB,
    'cgroup/system/pods/pod1/main/memory.current': 40 * MIB,
    'cgroup/system/pods/pod1/memory.max': 50 * MIB,
    'cgroup/system/pods/pod1/memory.current': 40 * MIB,
  };
  const places = await machine(t, files);
  for (let round = 0; round < 2; round += 1) {
    t.equal(await freeGroupBytes(7, places), 10 * MIB);
    t.equal(await freeGroupBytes(8, places), 5 * MIB);
  }
});

test('an unknown control group is no group without limit', async (t) => {
  const places = await machine(t, { 'proc/7/cgroup': '0::/../../pod1', 'proc/8/cgroup': '0::/absent' });
  for (const pid of [7, 8, 9]) t.equal(await freeGroupBytes(pid, places), null);
});
