import type { KubeApi } from './client.js';
import { KubeError } from './failure.js';
import { list, record, text } from './json.js';

/** Large clusters have a hundred thousand pods, so lists are read in pages. */
const PAGE_SIZE = 500;

/** All objects of a collection; `what` names them in errors. Rejects with a `KubeError`. */
export async function listAll(
  api: KubeApi,
  what: string,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  let next = '';
  do {
    const answer = await api.request({
      method: 'GET',
      path,
      query: { ...query, limit: String(PAGE_SIZE), ...(next === '' ? {} : { continue: next }) },
    });
    if (!answer.ok) throw new KubeError(`${what} cannot be listed`, answer);
    const { items, metadata } = record(answer.body);
    found.push(...list(items));
    next = text(record(metadata).continue);
  } while (next !== '');
  return found;
}
