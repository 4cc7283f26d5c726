import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'tap';
import { findNvidiaNodes, migInstanceNodes } from '../../src/host/nvidia-nodes.js';
import { scratchDirectory } from '../scratch.js';

const skip = process.getuid?.() === 0 ? false : 'making device nodes needs root';

/** Makes nodes like /dev/null under other names. */
function makeNodes(devices: string, names: readonly string[]): void {
  for (const name of names) {
    mkdirSync(dirname(join(devices, name)), { recursive: true });
    execFileSync('mknod', [join(devices, name), 'c', '1', '3']);
  }
}

test('the agent finds the device nodes that exist, and names required nodes that are absent', { skip }, async (t) => {
  const devices = await scratchDirectory(t);
  t.same(findNvidiaNodes(devices), { found: [], missing: ['nvidiactl', 'nvidia-uvm'] });
  makeNodes(devices, ['nvidiactl', 'nvidia0', 'nvidia-modeset']);
  t.same(findNvidiaNodes(devices), { found: ['nvidiactl', 'nvidia-modeset'], missing: ['nvidia-uvm'] });
  makeNodes(devices, ['nvidia-uvm', 'nvidia-uvm-tools']);
  t.same(findNvidiaNodes(devices), {
    found: ['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools', 'nvidia-modeset'],
    missing: [],
  });
});

test('a plain file is no device node', async (t) => {
  const devices = await scratchDirectory(t);
  writeFileSync(join(devices, 'nvidiactl'), '');
  t.same(findNvidiaNodes(devices).found, []);
});

test('only containers with a MIG instance get the nodes of its capabilities', { skip }, async (t) => {
  const devices = await scratchDirectory(t);
  makeNodes(devices, ['nvidiactl', 'nvidia-uvm', 'nvidia-caps/nvidia-cap1', 'nvidia-caps/nvidia-cap66']);
  t.same(findNvidiaNodes(devices).found, ['nvidiactl', 'nvidia-uvm']);
});

test('the nodes of a MIG instance are those that the driver names', async (t) => {
  const capabilities = await scratchDirectory(t);
  const tell = (name: string, minor: number): void => {
    mkdirSync(join(capabilities, name), { recursive: true });
    const text = `DeviceFileMinor: ${minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n`;
    writeFileSync(join(capabilities, name, 'access'), text);
  };
  tell('gpu0/mig/gi7', 66);
  tell('gpu0/mig/gi7/ci0', 67);
  tell('gpu1/mig/gi7', 201);
  t.same(migInstanceNodes(0, 7, 0, capabilities), ['nvidia-caps/nvidia-cap66', 'nvidia-caps/nvidia-cap67']);
  t.same(
    migInstanceNodes(1, 7, 0, capabilities),
    ['nvidia-caps/nvidia-cap201'],
    'nodes that the driver does not show are left out',
  );
  t.same(migInstanceNodes(2, 7, 0, capabilities), []);
});
