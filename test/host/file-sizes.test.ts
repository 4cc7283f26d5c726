import { closeSync, openSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { FileSizes } from '../../src/host/file-sizes.js';
import { scratchDirectory } from '../scratch.js';

for (const withLists of [true, false]) {
  test(`sizes of open files and of paths are read again and again, ${withLists ? 'at once' : 'one by one'}`, async (t) => {
    const directory = await scratchDirectory(t);
    const paths = ['a', 'b'].map((name) => join(directory, name));
    for (const path of paths) writeFileSync(path, Buffer.alloc(8_192, 1));
    const fd = openSync(paths[0] as string, 'r');
    t.teardown(() => closeSync(fd));
    const files = [fd, paths[1] as string, join(directory, 'missing'), -1];
    const sizes = new FileSizes(files, withLists);
    sizes.read();
    t.same(
      [0, 1, 2, 3].map((at) => sizes.size(at)),
      [8_192, 8_192, null, null],
    );
    t.ok((sizes.diskBytes(0) ?? 0) >= 8_192);
    t.equal(sizes.diskBytes(3), null);
    truncateSync(paths[0] as string, 5 * 2 ** 32 + 7);
    truncateSync(paths[1] as string, 0);
    sizes.read();
    t.same([sizes.size(0), sizes.size(1), sizes.diskBytes(1)], [5 * 2 ** 32 + 7, 0, 0]);
    t.ok((sizes.diskBytes(0) ?? 0) < 2 ** 20, 'a hole takes no space');
    t.ok(sizes.isOf([...files]));
    t.notOk(sizes.isOf(files.slice(1)));
    t.notOk(sizes.isOf([...files.slice(0, 3), 5]));
  });
}

test('a list without files can be read', async (t) => {
  const sizes = new FileSizes([]);
  t.doesNotThrow(() => sizes.read());
  t.ok(sizes.isOf([]));
});
