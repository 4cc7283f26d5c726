import { test } from 'tap';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';

/** Six pages. */
const WORKLOADS = 600;
/** Far longer than a replica needs until it asks its leader's work to end. */
const PAGE_MS = 1_500;

test('a leader that stops during a refresh reads no further pages', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  // Their group does not exist: they are listed and not charged.
  for (let at = 0; at < WORKLOADS; at++) {
    const { metadata, ...rest } = deployment(`w${at}`, 'nothing', 1, 1);
    on.server.seed('deployments', { metadata: { ...metadata, namespace: 'default', uid: `uid-${at}` }, ...rest });
  }
  const service = await on.join({ refreshMs: 1_000 });
  await eventually(() => service.leading, 'the replica to lead');
  const pages = on.server.inject({ resource: 'deployments', verb: 'list' }, { do: 'delay', ms: PAGE_MS });
  await eventually(() => pages.hits > 0, 'a refresh to list');
  await on.leave(service);
  t.ok(pages.hits < WORKLOADS / 100, `${pages.hits} pages`);
});
