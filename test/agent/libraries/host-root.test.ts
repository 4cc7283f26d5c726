import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { openHostRoot } from '../../../src/agent/libraries/host-root.js';
import { scratchDirectory } from '../../scratch.js';

async function hostWithLinks(t: Parameters<typeof scratchDirectory>[0]): Promise<string> {
  const root = await scratchDirectory(t);
  mkdirSync(join(root, 'usr/lib/x86_64-linux-gnu/nvidia'), { recursive: true });
  mkdirSync(join(root, 'etc/alternatives'), { recursive: true });
  writeFileSync(join(root, 'usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.535.54.03'), 'driver');
  symlinkSync('usr/lib', join(root, 'lib'));
  symlinkSync('/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.535.54.03', join(root, 'etc/alternatives/libcuda'));
  symlinkSync('/etc/alternatives/libcuda', join(root, 'usr/lib/x86_64-linux-gnu/libcuda.so.1'));
  symlinkSync('loop-b', join(root, 'usr/loop-a'));
  symlinkSync('loop-a', join(root, 'usr/loop-b'));
  symlinkSync('../../../../../../etc/passwd', join(root, 'usr/escape'));
  return root;
}

test('links of the host, absolute ones too, are followed within its root', async (t) => {
  const path = await hostWithLinks(t);
  const root = await openHostRoot(path);
  t.equal(root.extent, 'whole');
  t.equal(
    await root.resolve('/lib/x86_64-linux-gnu/libcuda.so.1'),
    join(path, 'usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.535.54.03'),
  );
  t.equal(await root.resolve('/usr/escape'), null, 'a link that climbs out of the root ends within it');
  t.equal(await root.resolve('/usr/loop-a'), null);
  t.equal(await root.resolve('/usr/lib/../lib/./absent'), null);
  t.equal(await root.resolve('/'), path);
});

test('with only /usr of the host mounted, paths below it and below merged directories are found', async (t) => {
  const path = await hostWithLinks(t);
  mkdirSync(join(path, 'usr/etc'));
  const usr = await openHostRoot(join(path, 'usr'));
  t.equal(usr.extent, 'usr');
  const library = join(path, 'usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.535.54.03');
  t.equal(await usr.resolve('/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.535.54.03'), library);
  t.equal(await usr.resolve('/lib/x86_64-linux-gnu/nvidia/libcuda.so.535.54.03'), library);
  t.equal(await usr.resolve('/etc/alternatives/libcuda'), null);
  t.equal(
    await usr.resolve('/usr/lib/x86_64-linux-gnu/libcuda.so.1'),
    null,
    'a link through /etc leads out of the mounted part',
  );
  t.equal(await usr.read('/etc/ld.so.cache'), null);
  t.same(await usr.list('/usr/lib/x86_64-linux-gnu'), ['libcuda.so.1', 'nvidia']);
  t.same(await usr.list('/usr/lib64'), []);
});

test('a program is found in the order of a shell, if it is executable', async (t) => {
  const path = await scratchDirectory(t);
  for (const directory of ['usr/local/bin', 'usr/bin']) mkdirSync(join(path, directory), { recursive: true });
  writeFileSync(join(path, 'usr/local/bin/nvidia-smi'), 'not executable');
  writeFileSync(join(path, 'usr/bin/nvidia-smi'), 'program');
  chmodSync(join(path, 'usr/bin/nvidia-smi'), 0o755);
  const root = await openHostRoot(path);
  t.equal(await root.which('nvidia-smi'), join(path, 'usr/bin/nvidia-smi'));
  t.equal(await root.which('absent'), null);
  t.equal(await root.which('../bin/nvidia-smi'), null);
});

test('a directory that is neither a root nor a /usr is refused', async (t) => {
  await t.rejects(openHostRoot(await scratchDirectory(t)), /neither/);
  t.equal((await openHostRoot('/')).extent, 'whole');
});
