import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { readExports } from '../../../src/agent/libraries/elf-file.js';
import { exportedNames, withoutExports } from '../../../src/agent/libraries/elf-symbols.js';
import { scratchDirectory } from '../../scratch.js';
import { buildElf } from './elf-builder.js';
import { FUZZ_INPUTS, mutate, seededNumbers } from './mutation.js';

const NM = '/usr/bin/nm';

const namesOf = (image: Buffer): string[] => {
  const names = exportedNames(image);
  if (!names.ok) throw new Error(names.reason);
  return [...names.value].sort();
};

test('the exports of a library are its defined dynamic symbols, also where only parts of the file are read', async (t) => {
  const image = buildElf({ soname: 'libcuda.so.1', exports: ['cuInit', 'cuMemAlloc_v2'] });
  t.same(namesOf(image), ['cuInit', 'cuMemAlloc_v2']);
  const path = join(await scratchDirectory(t), 'libcuda.so.1');
  writeFileSync(path, image);
  t.same(await readExports(path), exportedNames(image));
});

test('a library without some of its exports keeps its size, its code and the other exports', (t) => {
  const image = buildElf({ soname: 'libcuda.so.1', content: 'code', exports: ['cuInit', 'cuMemAlloc_v2', 'cuNew'] });
  const before = Buffer.from(image);
  const changed = withoutExports(image, new Set(['cuNew', 'cuUnknown']));
  if (!changed.ok) throw new Error(changed.reason);
  t.same(namesOf(changed.value), ['cuInit', 'cuMemAlloc_v2']);
  t.equal(changed.value.length, image.length);
  t.ok(changed.value.includes('code'));
  t.same(image, before, 'the image that was passed stays as it was');
  t.end();
});

test('a 32-bit library and one without dynamic symbols are refused', (t) => {
  t.match(exportedNames(buildElf({ architecture: 'i386' })), { ok: false, reason: 'not a 64-bit library' });
  const none = buildElf({ soname: 'liba.so.1' });
  const type = Buffer.from([11, 0, 0, 0]);
  none.writeUInt32LE(1, none.lastIndexOf(type));
  t.match(exportedNames(none), { ok: false, reason: 'it has no dynamic symbol table' });
  t.end();
});

test('the exports of the libraries of this machine are those that nm prints', { skip: !existsSync(NM) }, async (t) => {
  const libraries = ['libc.so.6', 'libm.so.6', 'libdl.so.2']
    .flatMap((name) => ['/lib/x86_64-linux-gnu', '/lib/aarch64-linux-gnu'].map((directory) => join(directory, name)))
    .filter((path) => existsSync(path));
  for (const path of libraries) {
    const printed = execFileSync(NM, ['-D', '--defined-only', path], { encoding: 'utf8' });
    // Symbols of type A are names of versions; those at address 0 do not exist for dlsym.
    const expected = [...printed.matchAll(/^[0-9a-f]+ [^A] ([^@\n]+)/gm)].map((match) => match[1] ?? '');
    const read = await readExports(path);
    if (!read.ok) throw new Error(read.reason);
    // A variable of a thread may have the address 0 within the thread's block.
    for (const name of expected) if (!/^_*tls|errno$/.test(name)) t.ok(read.value.has(name), `${path}: ${name}`);
  }
});

test(`${FUZZ_INPUTS} broken libraries are read or refused, and none makes the reader throw`, (t) => {
  const random = seededNumbers(11);
  const image = buildElf({ soname: 'libcuda.so.1', exports: ['cuInit', 'cuMemAlloc_v2'] });
  for (let round = 0; round < FUZZ_INPUTS; round += 1) {
    const broken = mutate(image, random);
    exportedNames(broken);
    withoutExports(broken, new Set(['cuInit']));
  }
  t.pass();
  t.end();
});

test('nm prints a removed export as weak and undefined', { skip: !existsSync(NM) }, async (t) => {
  const path = join(await scratchDirectory(t), 'libcuda.so.1');
  const changed = withoutExports(
    buildElf({ soname: 'libcuda.so.1', exports: ['cuInit', 'cuNew'] }),
    new Set(['cuNew']),
  );
  if (!changed.ok) throw new Error(changed.reason);
  writeFileSync(path, changed.value);
  t.match(execFileSync(NM, ['-D', path], { encoding: 'utf8' }), /^ +w cuNew$/m);
  t.same(namesOf(readFileSync(path)), ['cuInit']);
});
