import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { packageFile } from '../host/package-files.js';

/** What all pages share: elements, formats, charts, views of a node. Browsers run the files without a build step. */
const PARTS_DIRECTORY = packageFile('src/page/parts/');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  readonly etag: string;
}

/**
 * Reads a page and the shared parts into memory, by URL path: `/` is the page's document, and every other file lies
 * below `/page/`. No other file is ever served.
 */
export async function readPageFiles(directory: string): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>();
  for (const folder of [PARTS_DIRECTORY, directory])
    for (const name of await readdir(folder)) {
      const type = TYPES[extname(name)];
      if (type === undefined) continue;
      const body = await readFile(join(folder, name));
      const file = { type, body, etag: `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"` };
      files.set(name === 'index.html' ? '/' : `/page/${name}`, file);
    }
  return files;
}
