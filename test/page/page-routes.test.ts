import { test } from 'tap';
import type { HttpRequest } from '../../src/http/route.js';
import type { PageFile } from '../../src/page/page-files.js';
import { pageReadAtFirst } from '../../src/page/page-routes.js';

const REQUEST: HttpRequest = {
  method: 'GET',
  path: '/',
  query: new URLSearchParams(),
  headers: {},
  clientName: null,
  body: async () => '',
  bytes: async () => Buffer.alloc(0),
};
const FILE: PageFile = { type: 'text/html', body: Buffer.from('page'), etag: '"1"', link: null };

test('a page is read at the first request for a file of it, and once', async (t) => {
  let reads = 0;
  const route = pageReadAtFirst(async () => {
    reads += 1;
    return new Map([['/', FILE]]);
  });
  t.equal(route('/metrics'), null, 'not a file of the page');
  t.equal(reads, 0);
  const answers = await Promise.all(['/', '/', '/page/none.js'].map(async (path) => route(path)?.answer(REQUEST)));
  t.same(
    answers.map((answer) => answer?.status),
    [200, 200, 404],
  );
  t.equal(reads, 1);
});

test('a page that could not be read is read again at the next request', async (t) => {
  let reads = 0;
  const route = pageReadAtFirst(async () => {
    reads += 1;
    if (reads === 1) throw new Error('too many open files');
    return new Map([['/', FILE]]);
  });
  await t.rejects(async () => route('/')?.answer(REQUEST), { message: 'too many open files' });
  t.equal((await route('/')?.answer(REQUEST))?.status, 200);
});
