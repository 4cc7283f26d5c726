import { closeSync, openSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { FileParts, readParts } from '../../src/host/file-parts.js';
import { scratchDirectory } from '../scratch.js';

for (const withLists of [true, false]) {
  test(`parts of open files are read again and again, ${withLists ? 'at once' : 'one by one'}`, async (t) => {
    const path = join(await scratchDirectory(t), 'file');
    writeFileSync(path, 'abcdefgh');
    const fd = openSync(path, 'r');
    t.teardown(() => closeSync(fd));
    const parts = [
      { fd, position: 2, length: 3 },
      null,
      { fd, position: 6, length: 2 },
      { fd, position: 8, length: 0 },
    ];
    const read = new FileParts(parts, withLists);
    const texts = (): unknown[] => parts.map((_, at) => read.bytes(at)?.toString());
    read.read();
    t.same(texts(), ['cde', undefined, 'gh', '']);
    writeFileSync(path, 'ABCDEFGH');
    read.read();
    t.same(texts(), ['CDE', undefined, 'GH', '']);
    truncateSync(path, 7);
    read.read();
    t.same(texts(), ['CDE', undefined, undefined, ''], 'a part that is no longer there in full is not read');
  });
}

test('a list is used again for the same parts only', async (t) => {
  const path = join(await scratchDirectory(t), 'file');
  writeFileSync(path, 'abcdefgh');
  const fd = openSync(path, 'r');
  t.teardown(() => closeSync(fd));
  const first = readParts(new FileParts([]), [{ fd, position: 0, length: 2 }]);
  t.equal(first.bytes(0)?.toString(), 'ab');
  t.equal(readParts(first, [{ fd, position: 0, length: 2 }]), first);
  for (const other of [
    { fd, position: 1, length: 2 },
    { fd, position: 0, length: 3 },
    { fd: fd + 1, position: 0, length: 2 },
    null,
  ])
    t.not(readParts(first, [other]), first);
  t.equal(
    readParts(first, [{ fd, position: 1, length: 2 }])
      .bytes(0)
      ?.toString(),
    'bc',
  );
});
