import type { KubeApi } from './client.js';
import { KubeError } from './failure.js';
import { list, record, text } from './json.js';

/** Large clusters have a hundred thousand pods, so lists are read in pages. */
const PAGE_SIZE = 500;

/** All objects of a collection; `what` names them in errors. Rejects with a `KubeError`. */
export function listAll(
  api: KubeApi,
  what: string,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly unknown[]> {
  return listKept(api, what, path, (object) => object, query);
}

/** The same, of which only what `keep` returns is held in memory beyond a page. */
export async function listKept<T>(
  api: KubeApi,
  what: string,
  path: string,
  keep: (object: unknown) => T,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly T[]> {
  const found: T[] = [];
  let next = '';
  do {
    const answer = await api.request({
      method: 'GET',
      path,
      query: { ...query, limit: String(PAGE_SIZE), ...(next === '' ? {} : { continue: next }) },
    });
    if (!answer.ok) throw new KubeError(`${what} cannot be listed`, answer);
    const { items, metadata } = record(answer.body);
    for (const item of list(items)) found.push(keep(item));
    next = text(record(metadata).continue);
  } while (next !== '');
  return found;
}
