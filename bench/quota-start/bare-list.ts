import { clientTo } from '../../test/quota-controller/setting.js';

/** The child's report to its parent. */
export interface BareList {
  readonly ms: number;
  readonly objects: number;
  /** Most resident memory, MiB. */
  readonly mostMib: number;
}

/** Lists all Deployments of the API server whose URL is the argument, in pages, and keeps nothing of them. */
const client = clientTo(process.argv[2] ?? '');
const startedAt = performance.now();
let objects = 0;
for (let next: string | undefined = ''; next !== undefined;) {
  const answer = await client.request({
    method: 'GET',
    path: '/apis/apps/v1/deployments',
    query: { limit: '500', ...(next === '' ? {} : { continue: next }) },
  });
  if (!answer.ok) throw new Error(answer.message);
  const body = answer.body as { readonly items: readonly unknown[]; readonly metadata: { readonly continue?: string } };
  objects += body.items.length;
  next = body.metadata.continue;
}
const ms = performance.now() - startedAt;
const mostMib = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ ms, objects, mostMib } satisfies BareList));
client.close();
