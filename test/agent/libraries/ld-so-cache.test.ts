import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { test } from 'tap';
import { parseLdSoCache, type CacheEntry } from '../../../src/agent/libraries/ld-so-cache.js';
import { buildLdSoCache } from './cache-builder.js';
import { FUZZ_INPUTS, mutate, seededNumbers } from './mutation.js';

const CACHE = '/etc/ld.so.cache';

const ENTRIES: readonly CacheEntry[] = [
  { name: 'libcuda.so.1', path: '/lib/x86_64-linux-gnu/libcuda.so.1', architecture: 'x86-64', hardware: null },
  { name: 'libcuda.so.1', path: '/lib/i386-linux-gnu/libcuda.so.1', architecture: 'i386', hardware: null },
  { name: 'libcuda.so.1', path: '/lib/aarch64-linux-gnu/libcuda.so.1', architecture: 'aarch64', hardware: null },
  {
    name: 'libm.so.6',
    path: '/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libm.so.6',
    architecture: 'x86-64',
    hardware: 'x86-64-v3',
  },
  {
    name: 'libm.so.6',
    path: '/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v4/libm.so.6',
    architecture: 'x86-64',
    hardware: 'x86-64-v4',
  },
  { name: 'libm.so.6', path: '/lib/x86_64-linux-gnu/tls/libm.so.6', architecture: 'x86-64', hardware: 'legacy' },
];

test('a cache is read with the header of the old format and without it', (t) => {
  for (const oldHeader of [false, true])
    t.same(parseLdSoCache(buildLdSoCache(ENTRIES, { oldHeader })), { ok: true, entries: ENTRIES });
  t.same(parseLdSoCache(buildLdSoCache([])), { ok: true, entries: [] });
  t.end();
});

test('a cache of a glibc that did not write the byte order is read', (t) => {
  t.same(parseLdSoCache(buildLdSoCache(ENTRIES.slice(0, 3), { endianness: 0 })), {
    ok: true,
    entries: ENTRIES.slice(0, 3),
  });
  t.end();
});

test('a cache written for another byte order is refused', (t) => {
  t.match(parseLdSoCache(buildLdSoCache(ENTRIES, { endianness: 3 })), { ok: false, code: 'big-endian' });
  t.end();
});

test('entries that are not ELF libraries are left out', (t) => {
  const cache = buildLdSoCache(ENTRIES);
  cache.writeUInt32LE(0x0302, 48);
  t.same(parseLdSoCache(cache), { ok: true, entries: ENTRIES.slice(1) });
  t.end();
});

test('a file that is not a complete cache is refused with the reason', (t) => {
  const cache = buildLdSoCache(ENTRIES);
  t.match(parseLdSoCache(Buffer.alloc(0)), { ok: false, code: 'unknown-format' });
  t.match(parseLdSoCache(Buffer.from('ld.so-1.7.0\0')), { ok: false, code: 'truncated' });
  t.match(parseLdSoCache(cache.subarray(0, 40)), { ok: false, code: 'truncated' });
  t.match(parseLdSoCache(cache.subarray(0, 100)), { ok: false, code: 'truncated' });
  const beyond = Buffer.from(cache);
  beyond.writeUInt32LE(0xffff_fff0, 48 + 4);
  t.match(parseLdSoCache(beyond), { ok: false, code: 'bad-offset' });
  const endless = Buffer.concat([
    buildLdSoCache(ENTRIES.slice(0, 2)).subarray(0, 48 + 24 * 2),
    Buffer.alloc(9000, 0x61),
  ]);
  t.match(parseLdSoCache(endless), { ok: false, code: 'bad-offset' });
  t.end();
});

test('any entries that ldconfig writes are read back', (t) => {
  const text = fc.string({ unit: fc.constantFrom('a', 'Z', '9', '.', '_', '-', 'ä', '/'), maxLength: 40 });
  const entry: fc.Arbitrary<CacheEntry> = fc.record(
    {
      name: text,
      path: text,
      architecture: fc.constantFrom('x86-64', 'i386', 'x32', 'aarch64', 'arm', 'ppc64le', 'other'),
      hardware: fc.constantFrom(null, null, 'legacy', 'x86-64-v2', 'x86-64-v3', 'atomics'),
    },
    { noNullPrototype: true },
  );
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 30 }), fc.boolean(), (entries, oldHeader) => {
      assert.deepEqual(parseLdSoCache(buildLdSoCache(entries, { oldHeader })), { ok: true, entries });
    }),
    { numRuns: 200 },
  );
  t.pass('200 caches of up to 30 entries');
  t.end();
});

test('mutated caches are read or refused, and never cause an exception', (t) => {
  const originals = [buildLdSoCache(ENTRIES), buildLdSoCache(ENTRIES, { oldHeader: true })];
  const next = seededNumbers(4);
  let read = 0;
  for (let input = 0; input < FUZZ_INPUTS; input += 1) {
    const result = parseLdSoCache(mutate(originals[input % 2] as Buffer, next));
    if (!result.ok) continue;
    read += 1;
    // No text from outside of the input may appear in the result.
    if (result.entries.some((entry) => entry.path.length > 4096)) t.fail('a path longer than the input');
  }
  t.ok(read > 0 && read < FUZZ_INPUTS, `${read} of ${FUZZ_INPUTS} were still caches`);
  t.end();
});

test(
  'the cache of this machine is read as ldconfig prints it',
  { skip: existsSync(CACHE) ? false : 'no /etc/ld.so.cache here' },
  (t) => {
    const listed = execFileSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' })
      .split('\n')
      .flatMap((line) => {
        const match = /^\t(\S+) \(.*\) => (.+)$/.exec(line);
        return match === null ? [] : [{ name: match[1], path: match[2] }];
      });
    const result = parseLdSoCache(readFileSync(CACHE));
    t.ok(result.ok);
    if (result.ok)
      t.strictSame(
        result.entries.map(({ name, path }) => ({ name, path })),
        listed,
      );
    t.ok(listed.length > 0);
    t.end();
  },
);
