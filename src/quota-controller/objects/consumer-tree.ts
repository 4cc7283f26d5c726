import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { list, record } from '../../kube/json.js';
import { table } from '../../quota-command/table.js';
import { readAllocation, type AllocationStatus } from '../../kube/quota/allocation-object.js';
import { readConsumer } from '../../kube/quota/consumer-object.js';
import { consumerRow, type ConsumerRow } from '../../kube/quota/consumer-row.js';
import { ALLOCATIONS_PATH, CONSUMERS_PATH } from '../../kube/quota/names.js';

/** Reads the Consumers of a cluster and their shares from the arbitrator; members follow their areas, at any depth. */
export async function readConsumerTree(api: KubeApi): Promise<readonly ConsumerRow[]> {
  const consumers = new Map(
    (await items(api, CONSUMERS_PATH)).flatMap((item) => {
      const consumer = readConsumer(item);
      return consumer === null ? [] : [[consumer.name, consumer.spec] as const];
    }),
  );
  const allocations = new Map<string, AllocationStatus>(
    (await items(api, ALLOCATIONS_PATH)).flatMap((item) => {
      const allocation = readAllocation(item);
      return allocation === null ? [] : [[allocation.name, allocation.status] as const];
    }),
  );
  const rows = [...new Set([...consumers.keys(), ...allocations.keys()])]
    .sort()
    .map((name) => consumerRow(name, consumers.get(name), allocations.get(name)));
  const seen = new Set<ConsumerRow>();
  const withMembers = (row: ConsumerRow): readonly ConsumerRow[] => {
    // Consumers that were stored without the webhook may name each other as parents.
    if (seen.has(row)) return [];
    seen.add(row);
    return [row, ...rows.filter(({ parent }) => parent === row.name).flatMap(withMembers)];
  };
  const tops = rows.filter(({ parent }) => parent === '' || !consumers.has(parent));
  return [...tops, ...rows].flatMap(withMembers);
}

/** The same as a table, a line for each resource. */
export function consumerTreeText(rows: readonly ConsumerRow[]): string {
  const depths = new Map<string, number>();
  for (const { name, parent } of rows) depths.set(name, (depths.get(parent) ?? -1) + 1);
  const lines = rows.flatMap((row) => {
    const columns = [row.hard, row.reserved, row.deserved, row.allocated, row.pending];
    const resources = [...new Set(columns.flatMap((amounts) => Object.keys(amounts)))].sort();
    const title = `${'  '.repeat(depths.get(row.name) ?? 0)}${row.name}`;
    return (resources.length === 0 ? [''] : resources).map((resource, index) => [
      index === 0 ? title : '',
      resource,
      ...columns.map((amounts) => amounts[resource] ?? '-'),
    ]);
  });
  return table([['CONSUMER', 'RESOURCE', 'HARD', 'RESERVED', 'DESERVED', 'ALLOCATED', 'PENDING'], ...lines]);
}

async function items(api: KubeApi, path: string): Promise<readonly unknown[]> {
  const answer = await api.request({ method: 'GET', path });
  if (!answer.ok) throw new KubeError(`${path} cannot be listed`, answer);
  return list(record(answer.body).items);
}
