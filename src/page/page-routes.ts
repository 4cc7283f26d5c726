import type { Answer } from '../http/answer.js';
import type { HttpRequest, Route } from '../http/listener.js';
import type { PageFile } from './page-files.js';

/** Routes of a page's files. They contain no data, so they need no token; the page asks for one. */
export function pageRoutes(page: ReadonlyMap<string, PageFile>): [string, Route][] {
  return [...page].map(([path, file]) => [
    path,
    { method: 'GET', isOpen: true, answer: (request) => pageAnswer(request, file) },
  ]);
}

function pageAnswer({ headers: asked }: HttpRequest, { type, body, etag, link }: PageFile): Answer {
  const headers = { etag, 'cache-control': 'no-cache', ...(link === null ? {} : { link }) };
  return asked['if-none-match'] === etag
    ? { status: 304, type, body: '', headers }
    : { status: 200, type, body, headers };
}
