import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'tap';
import { findNvidiaNodes } from '../../src/host/nvidia-nodes.js';
import { scratchDirectory } from '../scratch.js';

const skip = process.getuid?.() === 0 ? false : 'making device nodes needs root';

/** Makes nodes like /dev/null under other names. */
function makeNodes(devices: string, names: readonly string[]): void {
  for (const name of names) {
    mkdirSync(dirname(join(devices, name)), { recursive: true });
    execFileSync('mknod', [join(devices, name), 'c', '1', '3']);
  }
}

test('the nodes that are there are found, and what is needed and absent is named', { skip }, async (t) => {
  const devices = await scratchDirectory(t);
  t.same(findNvidiaNodes(devices, devices), { found: [], missing: ['nvidiactl', 'nvidia-uvm'] });
  makeNodes(devices, ['nvidiactl', 'nvidia0', 'nvidia-modeset']);
  t.same(findNvidiaNodes(devices, devices), { found: ['nvidiactl', 'nvidia-modeset'], missing: ['nvidia-uvm'] });
  makeNodes(devices, ['nvidia-uvm', 'nvidia-uvm-tools']);
  t.same(findNvidiaNodes(devices, devices), {
    found: ['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools', 'nvidia-modeset'],
    missing: [],
  });
});

test('a plain file is no device node', async (t) => {
  const devices = await scratchDirectory(t);
  writeFileSync(join(devices, 'nvidiactl'), '');
  t.same(findNvidiaNodes(devices, devices).found, []);
});

test('capabilities for a part of a GPU are found, those for managing GPUs are not', { skip }, async (t) => {
  const devices = await scratchDirectory(t);
  makeNodes(devices, [
    'nvidia-caps/nvidia-cap1',
    'nvidia-caps/nvidia-cap2',
    'nvidia-caps/nvidia-cap30',
    'nvidia-caps/nvidia-cap31',
    'nvidia-caps/other',
  ]);
  t.same(findNvidiaNodes(devices, join(devices, 'absent')).found, [
    'nvidia-caps/nvidia-cap30',
    'nvidia-caps/nvidia-cap31',
  ]);

  const capabilities = join(devices, 'capabilities');
  mkdirSync(join(capabilities, 'mig'), { recursive: true });
  writeFileSync(join(capabilities, 'mig/config'), 'DeviceFileMinor: 30\nDeviceFileMode: 256\nDeviceFileModify: 1\n');
  t.same(findNvidiaNodes(devices, capabilities).found, ['nvidia-caps/nvidia-cap31']);
});
