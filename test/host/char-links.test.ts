import { mkdir, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { charLinkCommand, makeCharLinks, missingCharLinks } from '../../src/host/char-links.js';
import { nvidiaNodeNames } from '../../src/host/nvidia-nodes.js';
import { scratchDirectory } from '../scratch.js';

/** Devices that every machine has, under the names of NVIDIA's: 1:3, 1:5 and 1:7. */
const DEVICES = { nvidia0: 'null', nvidiactl: 'zero', 'nvidia-caps/nvidia-cap3': 'full' };

async function devicesOf(t: Parameters<typeof scratchDirectory>[0]): Promise<string> {
  const devices = await scratchDirectory(t);
  await mkdir(join(devices, 'nvidia-caps'));
  for (const [name, device] of Object.entries(DEVICES)) await symlink(`/dev/${device}`, join(devices, name));
  await writeFile(join(devices, 'nvidia1'), '');
  return devices;
}

test('every device node of the driver gets a link by its number, and only once', async (t) => {
  const devices = await devicesOf(t);
  const nodes = nvidiaNodeNames(devices);
  t.same(nodes, ['nvidia0', 'nvidia1', 'nvidiactl', 'nvidia-caps/nvidia-cap3']);
  const missing = missingCharLinks([...nodes, 'nvidia7'], devices);
  t.same(missing, [
    { path: 'char/1:3', target: '../nvidia0' },
    { path: 'char/1:5', target: '../nvidiactl' },
    { path: 'char/1:7', target: '../nvidia-caps/nvidia-cap3' },
  ]);
  t.match(charLinkCommand(missing), 'ln -sf ../nvidia0 /dev/char/1:3; ln -sf ../nvidiactl /dev/char/1:5;');
  makeCharLinks(missing, devices);
  t.same(missingCharLinks(nodes, devices), []);
  t.equal(await readlink(join(devices, 'char/1:7')), '../nvidia-caps/nvidia-cap3');
});

test('a link that leads nowhere or to another device is replaced', async (t) => {
  const devices = await devicesOf(t);
  await mkdir(join(devices, 'char'));
  await symlink('../nvidiactl', join(devices, 'char/1:3'));
  await symlink('../gone', join(devices, 'char/1:5'));
  const nodes = ['nvidia0', 'nvidiactl'];
  const missing = missingCharLinks(nodes, devices);
  t.equal(missing.length, 2);
  makeCharLinks(missing, devices);
  t.same(missingCharLinks(nodes, devices), []);
  t.equal(await readlink(join(devices, 'char/1:3')), '../nvidia0');
});
