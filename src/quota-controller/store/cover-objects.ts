import { METADATA_ONLY, type KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import type { KubeObject } from '../../kube/object.js';
import { API_VERSION, itemPath, LEDGER_KIND, LEDGERS_PATH } from '../../kube/quota/names.js';

/** Label of an object that says what the charges of a group cover. An object without the label of ledgers is none. */
const COVER_LABEL = 'quota.gpu-manager.io/covered-by';

/** A stored text. */
export interface Cover {
  readonly text: string;
  readonly resourceVersion: string;
}

/** Whether an object of the ledgers' kind says what the charges of a group cover. */
export function isCover(object: unknown): boolean {
  return (object as KubeObject).metadata?.labels?.[COVER_LABEL] !== undefined;
}

/** Reads and writes a text for each group, beside the ledgers. Rejects with a KubeError if the API server fails. */
export class CoverObjects {
  readonly #api: KubeApi;

  constructor(api: KubeApi) {
    this.#api = api;
  }

  /** All texts, by group. */
  async list(): Promise<ReadonlyMap<string, Cover>> {
    const answer = await this.#api.request({
      method: 'GET',
      path: LEDGERS_PATH,
      query: { labelSelector: COVER_LABEL },
    });
    if (!answer.ok) throw new KubeError('what the ledgers cover cannot be read', answer);
    const { items } = answer.body as { readonly items: readonly KubeObject[] | null };
    return new Map(
      (items ?? []).flatMap(({ metadata, spec }): readonly [string, Cover][] => {
        const group = metadata?.labels?.[COVER_LABEL];
        const text = (spec as { readonly page?: { readonly records?: string } } | undefined)?.page?.records;
        return group === undefined || text === undefined
          ? []
          : [[group, { text, resourceVersion: metadata?.resourceVersion ?? '' }]];
      }),
    );
  }

  /** Replaces the text of a group, or stores its first one; null if another process has changed it. */
  async put(group: string, text: string, known: Cover | null): Promise<Cover | null> {
    const [name, labels] = [nameOf(group), { [COVER_LABEL]: group }];
    const body = {
      apiVersion: API_VERSION,
      kind: LEDGER_KIND,
      metadata: { name, labels, ...(known === null ? {} : { resourceVersion: known.resourceVersion }) },
      spec: { page: { head: { revision: 0, now: 0, lives: 0 }, children: {}, records: text } },
    };
    const answer = await this.#api.request(
      known === null
        ? { method: 'POST', path: LEDGERS_PATH, body, accept: METADATA_ONLY }
        : { method: 'PUT', path: itemPath(LEDGERS_PATH, name), body, accept: METADATA_ONLY },
    );
    if (answer.ok) return { text, resourceVersion: (answer.body as KubeObject).metadata?.resourceVersion ?? '' };
    if (['conflict', 'not-found', 'already-exists'].includes(answer.code)) return null;
    throw new KubeError(`what the charges of ${group} cover cannot be written`, answer);
  }

  async remove(group: string): Promise<void> {
    const answer = await this.#api.request({ method: 'DELETE', path: itemPath(LEDGERS_PATH, nameOf(group)) });
    if (!answer.ok && answer.code !== 'not-found')
      throw new KubeError(`what the charges of ${group} cover cannot be deleted`, answer);
  }
}

/** No name of a ledger or of a segment begins like this, because `c.` is not hexadecimal. */
function nameOf(group: string): string {
  return `x-c.${Buffer.from(group).toString('hex')}`;
}
