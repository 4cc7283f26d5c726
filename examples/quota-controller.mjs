// A controller on quota objects: follows the groups and Allocations of a cluster, and prints which namespaces use more
// than their fair share and how full each group is. It runs until it is interrupted, with the kubeconfig of kubectl.
//
//     node examples/quota-controller.mjs
import { parseQuantity, QuotaClient } from 'gpu-manager/quota-client';

const client = await QuotaClient.open();
const [groups, allocations] = [client.groups.watch(), client.allocations.watch()];

/** Thousandths of a unit; 0 for an amount that is not reported. */
function thousandths(quantity = '0') {
  const parsed = parseQuantity(quantity, 3, 'up');
  return parsed.ok ? Number(parsed.amount) : 0;
}

groups.onChange(({ before, after }) => {
  if (after === null) return console.log(`group ${before.metadata.name}: deleted`);
  for (const [key, limit] of Object.entries(after.status?.hard ?? {})) {
    const used = after.status.used?.[key];
    if (used === before?.status?.used?.[key] && limit === before?.status?.hard?.[key]) continue;
    const percent = Math.round((100 * thousandths(used)) / (thousandths(limit) || 1));
    console.log(`group ${after.metadata.name}: ${used ?? '0'} of ${limit} ${key} (${percent} %)`);
  }
});

allocations.onChange(({ after }) => {
  const { overused = [], reclaimAt } = after?.status ?? {};
  if (overused.length > 0)
    console.log(
      `namespace ${after.metadata.name}: more ${overused.join(', ')} than its share until ${reclaimAt ?? '?'}`,
    );
});

await Promise.all([groups.whenSynced(), allocations.whenSynced()]);
console.log(`${groups.values().length} groups, ${allocations.values().length} Allocations`);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void client.close());
