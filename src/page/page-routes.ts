import { plain, type Answer } from '../http/answer.js';
import type { HttpRequest, Route } from '../http/listener.js';
import type { PageFile } from './page-files.js';

/** Routes of a page's files. They contain no data, so they need no token; the page asks for one. */
export function pageRoutes(page: ReadonlyMap<string, PageFile>): [string, Route][] {
  return [...page].map(([path, file]) => [
    path,
    { method: 'GET', isOpen: true, answer: (request) => pageAnswer(request, file) },
  ]);
}

/**
 * The same for a page that is read at the first request for a file of it: a daemon that starts need not wait for what
 * most of its readers never ask for. If that fails, the next request tries again.
 */
export function pageReadAtFirst(read: () => Promise<ReadonlyMap<string, PageFile>>): (path: string) => Route | null {
  let page: Promise<ReadonlyMap<string, PageFile>> | null = null;
  const files = async (): Promise<ReadonlyMap<string, PageFile>> => {
    page ??= read();
    try {
      return await page;
    } catch (error) {
      page = null;
      throw error;
    }
  };
  return (path) => {
    if (path !== '/' && !path.startsWith('/page/')) return null;
    return {
      method: 'GET',
      isOpen: true,
      answer: async (request) => {
        const file = (await files()).get(path);
        return file === undefined ? plain(404, 'not found') : pageAnswer(request, file);
      },
    };
  };
}

function pageAnswer({ headers: asked }: HttpRequest, { type, body, etag, link }: PageFile): Answer {
  const headers = { etag, 'cache-control': 'no-cache', ...(link === null ? {} : { link }) };
  return asked['if-none-match'] === etag
    ? { status: 304, type, body: '', headers }
    : { status: 200, type, body, headers };
}
