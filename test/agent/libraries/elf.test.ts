import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { test } from 'tap';
import { readElfFile } from '../../../src/agent/libraries/elf-file.js';
import { minimumLinux, readElf, type ElfFacts } from '../../../src/agent/libraries/elf.js';
import { parseLdSoCache } from '../../../src/agent/libraries/ld-so-cache.js';
import { buildElf } from './elf-builder.js';
import { FUZZ_INPUTS, mutate, seededNumbers } from './mutation.js';

const READELF = '/usr/bin/readelf';

function factsOf(bytes: Buffer): ElfFacts {
  const result = readElf(bytes);
  if (!result.ok) throw new Error(result.reason);
  return result.value;
}

/** SONAME and NEEDED as readelf prints them. */
function askReadelf(path: string): { soname: string | null; needed: string[] } {
  const text = execFileSync(READELF, ['-d', '-W', path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const names = (tag: string) =>
    [...text.matchAll(new RegExp(`\\(${tag}\\).*\\[(.*)\\]`, 'g'))].map((match) => match[1] ?? '');
  return { soname: names('SONAME')[0] ?? null, needed: names('NEEDED') };
}

test('SONAME, NEEDED, architecture and ABI note are read from libraries of every architecture', (t) => {
  for (const architecture of ['x86-64', 'i386', 'x32', 'aarch64', 'arm'] as const) {
    const facts = factsOf(
      buildElf({ architecture, soname: 'libcuda.so.1', needed: ['libm.so.6', 'libc.so.6'], minimumLinux: [2, 3, 99] }),
    );
    t.match(facts, { architecture, soname: 'libcuda.so.1', needed: ['libm.so.6', 'libc.so.6'] });
    t.same(minimumLinux(facts), [2, 3, 99]);
  }
  t.end();
});

test('a library without SONAME, needed libraries or notes has none', (t) => {
  const facts = factsOf(buildElf({}));
  t.same(facts, { architecture: 'x86-64', soname: null, needed: [], notes: [] });
  t.equal(minimumLinux(facts), null);
  t.end();
});

test('a file that is not a complete ELF file is refused with the reason', (t) => {
  const library = buildElf({ soname: 'liba.so.1', minimumLinux: [2, 3, 99] });
  t.match(readElf(Buffer.from('/* GNU ld script */ GROUP ( libm.so.6 )')), { ok: false, code: 'not-elf' });
  t.match(readElf(Buffer.alloc(0)), { ok: false, code: 'not-elf' });
  t.match(readElf(library.subarray(0, 30)), { ok: false, code: 'truncated' });
  t.match(readElf(library.subarray(0, library.length - 1)), { ok: false, code: 'truncated' });

  const withoutSections = Buffer.from(library);
  withoutSections.writeUInt16LE(0, 60);
  t.match(readElf(withoutSections), { ok: false, code: 'unsupported', reason: /section headers/ });
  const bigEndian = Buffer.from(library);
  bigEndian[5] = 2;
  t.match(readElf(bigEndian), { ok: false, code: 'unsupported' });
  const manySections = Buffer.from(library);
  manySections.writeUInt16LE(0xffff, 60);
  t.match(readElf(manySections), { ok: false, code: 'unsupported' });
  t.end();
});

test('a library with any names is read back, from its file and from its bytes', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'elf-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const name = fc.string({
    unit: fc.constantFrom('l', 'i', 'b', '.', '-', '_', '1', 'é'),
    minLength: 1,
    maxLength: 60,
  });
  const description = fc.record({
    architecture: fc.constantFrom('x86-64', 'i386', 'aarch64'),
    soname: fc.option(name, { nil: undefined }),
    needed: fc.array(name, { maxLength: 20 }),
    content: fc.string({ maxLength: 5000 }),
  });
  await fc.assert(
    fc.asyncProperty(description, async (given) => {
      const bytes = buildElf(given);
      const path = join(directory, 'library');
      writeFileSync(path, bytes);
      const whole = readElf(bytes);
      assert.deepEqual(whole, {
        ok: true,
        value: { architecture: given.architecture, soname: given.soname ?? null, needed: given.needed, notes: [] },
      });
      assert.deepEqual(await readElfFile(path), whole);
    }),
    { numRuns: 100 },
  );
  t.pass('100 libraries');
});

test('files that are not libraries are refused from disk, too', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'elf-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'file');
  for (const [content, code] of [
    ['', 'not-elf'],
    ['#!/bin/sh\n', 'not-elf'],
    ['\x7fELF', 'truncated'],
  ] as const) {
    writeFileSync(path, content);
    t.match(await readElfFile(path), { ok: false, code });
  }
  await t.rejects(readElfFile(join(directory, 'absent')), { code: 'ENOENT' });
});

test('mutated libraries are read or refused, and never cause an exception', (t) => {
  const originals = (['x86-64', 'i386', 'aarch64'] as const).map((architecture) =>
    buildElf({
      architecture,
      soname: 'libcuda.so.1',
      needed: ['libm.so.6', 'libdl.so.2', 'libc.so.6'],
      minimumLinux: [2, 3, 99],
    }),
  );
  const next = seededNumbers(7);
  let read = 0;
  for (let input = 0; input < FUZZ_INPUTS; input += 1) {
    const result = readElf(mutate(originals[input % originals.length] as Buffer, next));
    if (result.ok) read += 1;
    if (result.ok && result.value.needed.some((needed) => needed.length > 1024))
      t.fail('a name longer than a name can be');
  }
  t.ok(read > 0 && read < FUZZ_INPUTS, `${read} of ${FUZZ_INPUTS} were still libraries`);
  t.end();
});

const skipReadelf =
  existsSync(READELF) && existsSync('/etc/ld.so.cache') ? false : 'needs readelf (binutils) and /etc/ld.so.cache';

test(
  'the libraries of this machine and of the builder are read as readelf prints them',
  { skip: skipReadelf },
  async (t) => {
    const cache = parseLdSoCache(readFileSync('/etc/ld.so.cache'));
    if (!cache.ok) throw new Error(cache.reason);
    const directory = mkdtempSync(join(tmpdir(), 'elf-'));
    t.teardown(() => rmSync(directory, { recursive: true }));
    const built = (['x86-64', 'i386', 'aarch64'] as const).map((architecture) => {
      const path = join(directory, architecture);
      writeFileSync(
        path,
        buildElf({ architecture, soname: 'libcuda.so.1', needed: ['libm.so.6', 'libc.so.6'], minimumLinux: [3, 2, 0] }),
      );
      return path;
    });
    const libraries = [...new Set(cache.entries.map((entry) => entry.path))].filter((_, index) => index % 10 === 0);
    for (const path of [...built, ...libraries]) {
      const result = await readElfFile(path);
      t.match(result, { ok: true }, path);
      if (result.ok) t.strictSame({ soname: result.value.soname, needed: result.value.needed }, askReadelf(path), path);
    }
  },
);
