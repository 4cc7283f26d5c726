import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { packageFile } from '../host/package-files.js';

/**
 * Parts that all pages share: elements, formats, charts, views of a node. Browsers run the files without a build
 * step.
 */
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
  /** Value of the header `link`: the modules of the document, so that browsers load them at once; null for others. */
  readonly link: string | null;
}

/**
 * Reads a page and the shared parts into memory, by URL path: `/` is the page's document, and every other file lies
 * below `/page/`. No other file is ever served.
 */
export async function readPageFiles(directory: string): Promise<ReadonlyMap<string, PageFile>> {
  const folders = await Promise.all([PARTS_DIRECTORY, directory].map(filesOf));
  const bodies = new Map(folders.flat());
  const modules = [...modulesOf('main.js', bodies)].map((name) => `<page/${name}>; rel=modulepreload`).join(', ');
  return new Map(
    [...bodies].map(([name, body]) => {
      const type = TYPES[extname(name)] ?? '';
      const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
      const isDocument = name === 'index.html';
      return [isDocument ? '/' : `/page/${name}`, { type, body, etag, link: isDocument ? modules : null }];
    }),
  );
}

async function filesOf(folder: string): Promise<readonly (readonly [name: string, body: Buffer])[]> {
  const names = (await readdir(folder)).filter((name) => TYPES[extname(name)] !== undefined);
  return Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const));
}

/** A module and all that it imports, directly and indirectly. */
function modulesOf(
  name: string,
  bodies: ReadonlyMap<string, Buffer>,
  found: ReadonlySet<string> = new Set(),
): ReadonlySet<string> {
  if (found.has(name)) return found;
  const imports = [
    ...(bodies.get(name)?.toString('utf8') ?? '').matchAll(/^(?:import|export) .*? from '\.\/(.+?)';$/gmsu),
  ];
  return imports.reduce<ReadonlySet<string>>(
    (all, [, imported = '']) => modulesOf(imported, bodies, all),
    new Set([...found, name]),
  );
}
