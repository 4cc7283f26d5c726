import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { packageFile } from '../../host/package-files.js';

/** Directory of the page's files, which browsers run without a build step. */
const PAGE_DIRECTORY = packageFile('src/agent/display/page/');

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

/** Reads the page into memory, by URL path; `/` is its document. No other file is ever served. */
export async function readPageFiles(directory: string = PAGE_DIRECTORY): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>();
  for (const name of await readdir(directory)) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const body = await readFile(join(directory, name));
    const file = { type, body, etag: `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"` };
    files.set(name === 'index.html' ? '/' : `/page/${name}`, file);
  }
  return files;
}
