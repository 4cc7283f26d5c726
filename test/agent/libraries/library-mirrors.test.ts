import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog, type Log } from '../../../src/host/log.js';
import { openHostRoot } from '../../../src/agent/libraries/host-root.js';
import { findHostLibrary, Inventory } from '../../../src/agent/libraries/inventory.js';
import { LibraryMirrors } from '../../../src/agent/libraries/library-mirrors.js';
import { describeControlLibrary, describeOwnFile } from '../../../src/agent/libraries/own-files.js';
import { readElfFile } from '../../../src/agent/libraries/elf-file.js';
import { parseVolumeConfig, type VolumeDescription } from '../../../src/agent/libraries/volume-config.js';
import { scratchDirectory } from '../../scratch.js';
import { buildControlFiles } from './control-files.js';
import { buildElf } from './elf-builder.js';
import { buildHost, LIBRARY_DIRECTORY, type HostDescription } from './host-builder.js';

const LDCONFIG = '/sbin/ldconfig';
const SHIPPED = fileURLToPath(new URL('../../../../etc/volume.conf', import.meta.url));

/** The shipped volumes under another base directory. */
function shippedVolumes(base: string): VolumeDescription[] {
  const parsed = parseVolumeConfig(readFileSync(SHIPPED, 'utf8'));
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.volumes.map((volume) => ({ ...volume, base }));
}

async function controlLibraries(scratch: string, architecture: 'x86-64' | 'aarch64') {
  const agent = join(scratch, 'agent');
  const paths = buildControlFiles(agent, architecture);
  return {
    controls: await Promise.all(paths.map(describeControlLibrary)),
    ownFiles: new Map([['gpu-client', await describeOwnFile(join(agent, 'gpu-client'))]]),
  };
}

interface Setting {
  readonly scratch: string;
  readonly architecture: 'x86-64' | 'aarch64';
  readonly root?: string;
  readonly log?: Log;
}

async function mirrorsOf({
  scratch,
  architecture,
  root = join(scratch, 'host'),
  log = silentLog(),
}: Setting): Promise<LibraryMirrors> {
  const files = await controlLibraries(scratch, architecture);
  const hostRoot = await openHostRoot(root);
  return new LibraryMirrors({
    volumes: shippedVolumes(join(scratch, 'vdriver')),
    hostRoot,
    architecture,
    ...files,
    log,
    clock: systemClock,
  });
}

/** A log that collects its warnings. */
function recordingLog(): { log: Log; warnings: string[] } {
  const warnings: string[] = [];
  const log = silentLog();
  log.warn = (...words: unknown[]) => void warnings.push(JSON.stringify(words));
  return { log, warnings };
}

const HOSTS: readonly HostDescription[] = ['470.256.02', '535.54.03', '580.95.05'].flatMap(
  (driver): HostDescription[] => [
    { driver, architecture: 'x86-64', with32Bit: true },
    { driver, architecture: 'aarch64' },
  ],
);

for (const host of HOSTS) {
  test(`driver ${host.driver} for ${host.architecture} is mirrored with and without the control libraries`, async (t) => {
    const scratch = await scratchDirectory(t);
    buildHost(join(scratch, 'host'), host);
    const mirrors = await mirrorsOf({ scratch, architecture: host.architecture });
    t.same(await mirrors.start(), { ok: true });
    await mirrors.stop();
    t.equal(mirrors.driverVersion(), host.driver);
    const shared = mirrors.directory('shared') ?? '';
    const origin = mirrors.directory('origin') ?? '';
    t.same([shared, origin], [join(scratch, 'vdriver/nvidia/current'), join(scratch, 'vdriver/origin/current')]);

    const needed = async (path: string) => {
      const elf = await readElfFile(path);
      return elf.ok ? elf.value.needed : [];
    };
    for (const name of ['libcuda.so', 'libcuda.so.1'])
      t.same(await needed(join(shared, 'lib64', name)), ['libcuda-origin.so.1', 'libc.so.6']);
    t.same(await needed(join(shared, 'lib64/libcuda-origin.so.1')), ['libm.so.6', 'libc.so.6']);
    t.same(await needed(join(shared, 'lib64/libnvidia-ml.so.1')), ['libnvidia-ml-origin.so.1', 'libc.so.6']);
    t.same(await needed(join(origin, 'lib64/libcuda.so.1')), ['libm.so.6', 'libc.so.6']);
    t.notOk(existsSync(join(origin, 'lib64/libcuda-origin.so.1')));

    const libraries = readdirSync(join(shared, 'lib64'));
    t.ok(libraries.includes('libGLX_indirect.so.0'));
    t.notOk(
      libraries.some((name) => /^(libEGL\.so|libz\.so)/.test(name)),
      'no library of Mesa or of the system',
    );
    t.equal(libraries.includes(`libnvidia-gpucomp.so.${host.driver}`), !host.driver.startsWith('470'));
    t.same(readdirSync(join(shared, 'bin')), [
      'gpu-client',
      'nvidia-cuda-mps-control',
      'nvidia-cuda-mps-server',
      'nvidia-debugdump',
      'nvidia-persistenced',
      'nvidia-smi',
    ]);
    t.notOk(readdirSync(join(origin, 'bin')).includes('gpu-client'));

    for (const [directory, architectures] of [
      ['lib64', [host.architecture]],
      ['lib', ['i386']],
    ] as const) {
      for (const mirror of [shared, origin]) {
        const names = existsSync(join(mirror, directory)) ? readdirSync(join(mirror, directory)) : [];
        t.equal(names.length > 0, directory === 'lib64' || host.with32Bit === true);
        for (const name of names)
          t.match(
            await readElfFile(join(mirror, directory, name)),
            { ok: true, value: { architecture: architectures[0] } },
            name,
          );
      }
    }
    t.notOk(existsSync(join(shared, 'lib/libcuda.so.1')), 'no 32-bit driver without a control library');
    t.equal(existsSync(join(origin, 'lib/libcuda.so.1')), host.with32Bit === true);
  });
}

test('with only /usr of the host mounted and no cache in it, the same libraries are found', async (t) => {
  const scratch = await scratchDirectory(t);
  buildHost(join(scratch, 'host'), { driver: '580.95.05', architecture: 'x86-64', with32Bit: true });
  const whole = await mirrorsOf({ scratch, architecture: 'x86-64' });
  await whole.start();
  await whole.stop();
  const names = (directory: string) => readdirSync(join(whole.directory('shared') ?? '', directory));
  const expected = ['bin', 'lib', 'lib64'].map(names);
  rmSync(join(scratch, 'vdriver'), { recursive: true });

  const usr = await mirrorsOf({ scratch, architecture: 'x86-64', root: join(scratch, 'host/usr') });
  t.same(await usr.start(), { ok: true });
  await usr.stop();
  t.same(['bin', 'lib', 'lib64'].map(names), expected);
});

test('a corrupt cache is reported, and the library directories are searched instead', async (t) => {
  const scratch = await scratchDirectory(t);
  buildHost(join(scratch, 'host'), { driver: '580.95.05', architecture: 'x86-64' });
  writeFileSync(join(scratch, 'host/etc/ld.so.cache'), 'garbage');
  const inventory = await new Inventory(await openHostRoot(join(scratch, 'host'))).take({
    wantsLibrary: (name) => name.startsWith('libcuda.so'),
    binaries: [],
  });
  t.match(inventory, { source: 'directories', unreadable: [{ path: '/etc/ld.so.cache', reason: /no header/ }] });
  t.same(
    inventory.libraries.map((library) => library.name),
    ['libcuda.so.1', 'libcuda.so.580.95.05'],
  );
});

test(
  'the cache that ldconfig of the host writes gives the same libraries',
  { skip: existsSync(LDCONFIG) ? false : 'no ldconfig here' },
  async (t) => {
    const scratch = await scratchDirectory(t);
    const root = join(scratch, 'host');
    buildHost(root, { driver: '580.95.05', architecture: 'x86-64', with32Bit: true });
    const request = { wantsLibrary: () => true, binaries: [] };
    const paths = async () =>
      (await new Inventory(await openHostRoot(root)).take(request)).libraries.map((library) => library.path).sort();
    const ours = await paths();
    rmSync(join(root, 'etc/ld.so.cache'));
    execFileSync(LDCONFIG, ['-r', root]);
    t.same(await paths(), ours);
    t.ok(ours.length > 30);
  },
);

test('a library of the host is found by name, wherever the host is mounted', async (t) => {
  const scratch = await scratchDirectory(t);
  buildHost(join(scratch, 'host'), { driver: '580.95.05', architecture: 'x86-64', with32Bit: true });
  for (const mounted of ['host', 'host/usr']) {
    const root = await openHostRoot(join(scratch, mounted));
    t.equal(
      await findHostLibrary(root, 'libnvidia-ml.so.1', 'x86-64'),
      join(scratch, 'host', LIBRARY_DIRECTORY['x86-64'], 'libnvidia-ml.so.580.95.05'),
    );
    t.equal(await findHostLibrary(root, 'libnvidia-ml.so.1', 'aarch64'), null);
    t.equal(await findHostLibrary(root, 'libnvidia-ml.so', 'i386'), null);
  }
});

test('a host without a driver is refused with the reason, and mirrored once it has one', async (t) => {
  const scratch = await scratchDirectory(t);
  mkdirSync(join(scratch, 'host/usr'), { recursive: true });
  const mirrors = await mirrorsOf({ scratch, architecture: 'x86-64' });
  t.match(await mirrors.start(), {
    ok: false,
    code: 'no-libcuda',
    reason: /is the NVIDIA driver installed on this node/,
  });
  buildHost(join(scratch, 'host'), { driver: '580.95.05', architecture: 'x86-64' });
  await mirrors.check();
  t.equal(mirrors.driverVersion(), null, 'one reading is not enough: the installation may be in progress');
  await mirrors.check();
  t.equal(mirrors.driverVersion(), '580.95.05');
  await mirrors.stop();
});

test('a driver update on the host becomes a new version without a restart, and mounted versions stay', async (t) => {
  const scratch = await scratchDirectory(t);
  buildHost(join(scratch, 'host'), { driver: '535.54.03', architecture: 'x86-64' });
  const mirrors = await mirrorsOf({ scratch, architecture: 'x86-64' });
  await mirrors.start();
  const current = join(scratch, 'vdriver/nvidia/current');
  const before = readlinkSync(current);
  await mirrors.check();
  await mirrors.check();
  t.equal(readlinkSync(current), before, 'no change');

  rmSync(join(scratch, 'host'), { recursive: true });
  buildHost(join(scratch, 'host'), { driver: '580.95.05', architecture: 'x86-64' });
  await mirrors.check();
  await mirrors.check();
  await mirrors.stop();
  t.equal(mirrors.driverVersion(), '580.95.05');
  t.match(readlinkSync(current), /580\.95\.05/);
  t.ok(existsSync(join(scratch, 'vdriver/nvidia', before, 'lib64/libcuda.so.535.54.03')));
});

test('a driver that disappears leaves the mirror as it was and is reported once', async (t) => {
  const scratch = await scratchDirectory(t);
  const { log, warnings } = recordingLog();
  buildHost(join(scratch, 'host'), { driver: '535.54.03', architecture: 'x86-64' });
  const mirrors = await mirrorsOf({ scratch, architecture: 'x86-64', log });
  await mirrors.start();
  warnings.length = 0;
  rmSync(join(scratch, 'host', LIBRARY_DIRECTORY['x86-64']), { recursive: true });
  for (let look = 0; look < 3; look += 1) await mirrors.check();
  await mirrors.stop();
  t.equal(warnings.length, 1);
  t.match(warnings[0], /libcuda/);
  t.ok(existsSync(join(scratch, 'vdriver/nvidia/current/lib64/libcuda.so.1')));
});

test('libraries of volume.conf that the host lacks cause one warning', async (t) => {
  const scratch = await scratchDirectory(t);
  const { log, warnings } = recordingLog();
  buildHost(join(scratch, 'host'), { driver: '535.54.03', architecture: 'x86-64' });
  const mirrors = await mirrorsOf({ scratch, architecture: 'x86-64', log });
  await mirrors.start();
  const listings = warnings.filter((warning) => warning.includes('libnvidia-rtcore.so'));
  t.equal(listings.length, 1, 'one warning for both volumes');
  rmSync(join(scratch, 'host'), { recursive: true });
  buildHost(join(scratch, 'host'), { driver: '535.54.03', architecture: 'x86-64', content: 'reinstalled' });
  for (let look = 0; look < 2; look += 1) await mirrors.check();
  await mirrors.stop();
  t.equal(warnings.filter((warning) => warning.includes('libnvidia-rtcore.so')).length, 1);
});

test('a file among the libraries that is not an ELF file is skipped', async (t) => {
  const scratch = await scratchDirectory(t);
  buildHost(join(scratch, 'host'), { driver: '535.54.03', architecture: 'x86-64' });
  const library = join(scratch, 'host', LIBRARY_DIRECTORY['x86-64'], 'libnvcuvid.so.535.54.03');
  writeFileSync(library, '/* GNU ld script */');
  const mirrors = await mirrorsOf({ scratch, architecture: 'x86-64' });
  t.same(await mirrors.start(), { ok: true });
  await mirrors.stop();
  t.notOk(readdirSync(join(mirrors.directory('shared') ?? '', 'lib64')).includes('libnvcuvid.so.1'));
});

test('a library that is not a control library is not used as one', async (t) => {
  const scratch = await scratchDirectory(t);
  const path = join(scratch, 'lib.so');
  writeFileSync(path, buildElf({ soname: 'libcuda.so.1', needed: ['libc.so.6'] }));
  await t.rejects(describeControlLibrary(path), /is not a control library/);
  writeFileSync(path, 'text');
  await t.rejects(describeControlLibrary(path), /magic number/);
  symlinkSync('absent', join(scratch, 'absent.so'));
  await t.rejects(describeControlLibrary(join(scratch, 'absent.so')), { code: 'ENOENT' });
});
