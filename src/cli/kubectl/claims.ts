import type { Command } from 'commander';
import { claimRow, devicesOf } from '../../console/claim-row.js';
import type { ClaimRow } from '../../console/rows.js';
import { ALL_PODS, podsPath } from '../../kube/api-path.js';
import { listAll } from '../../kube/list-all.js';
import { readPod } from '../../kube/pod.js';
import { age, gib } from '../terminal-text.js';
import { listCommand, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuCluster } from './gpu-cluster.js';
import { printListing, type Listing, type ListingOptions, type ListingRow } from './listing.js';
import { whyNot } from './pods.js';
import { selection } from './selection.js';

/** `kubectl gpu claims`: the resource claims of this driver, and the waiting ones with the reason. */
export function claimsCommand(): Command {
  return listCommand('claims', { hasNames: true })
    .description('list the resource claims for GPUs: what they ask for, what they hold, who uses them; why others wait')
    .argument('[names...]', 'only these claims')
    .action((names: readonly string[], options: NamespaceOptions & ListingOptions) =>
      withCluster(options, ({ cluster, namespace }) =>
        printListing(options, async () => {
          const { rows, problems } = await claimRows(cluster, namespace, options.selector ?? null);
          const place = namespace === null ? 'any namespace' : `namespace ${namespace} (-A for all)`;
          const chosen = selection(
            rows,
            names,
            ({ name }) => name,
            (missing) => `no claim for GPUs is called ${missing} in ${place}`,
          );
          return { ...listing(chosen, namespace), problems };
        }),
      ),
    );
}

/** Claims with where their devices are and why they wait, as far as nodes and pods can be read. */
async function claimRows(cluster: GpuCluster, namespace: string | null, labels: string | null) {
  const problems = new Map<string, string>();
  const orNone = <T>(what: string, none: T) => {
    return (error: unknown): T => {
      problems.set(what, (error as Error).message);
      return none;
    };
  };
  const [claims, locate, pods] = await Promise.all([
    cluster.claims(namespace, labels),
    cluster.locator().catch(orNone('nodes', () => ({ node: null, gpu: null }))),
    listAll(cluster.api, 'the pods', namespace === null ? ALL_PODS : podsPath(namespace)).catch(orNone('pods', [])),
  ]);
  const waiting = new Map<string, string>();
  for (const pod of pods.map(readPod))
    for (const { claimName, madeName } of pod.claims) {
      const why = pod.node === null && !pod.isDone ? whyNot(pod) : '';
      if (why !== '') waiting.set(`${pod.namespace}/${claimName || madeName}`, `pod ${pod.name}: ${why}`);
    }
  const rows = claims.map((claim) =>
    claimRow(claim, devicesOf(claim, locate), waiting.get(`${claim.namespace}/${claim.name}`) ?? null),
  );
  return { rows, problems };
}

function listing(rows: readonly ClaimRow[], namespace: string | null): Omit<Listing, 'problems'> {
  const place = namespace === null ? ['NAMESPACE'] : [];
  return {
    headings: [...place, 'NAME', 'STATE', 'NODE', 'GPU', 'CORES', 'MEMORY', 'PODS', 'AGE'],
    wideHeadings: ['CLASSES', 'DEVICES', 'WHY'],
    rows: rows.map((row) => rowOf(row, namespace === null)),
    kind: 'resourceclaim',
    none:
      namespace === null ? 'no claim asks for GPUs' : `no claim of namespace ${namespace} asks for GPUs (-A for all)`,
  };
}

function rowOf(row: ClaimRow, hasNamespace: boolean): ListingRow {
  const { asks, devices } = row;
  const held = devices.length === 0 ? [asks] : devices;
  const memory = held.map(({ memoryBytes }) => memoryBytes);
  const nodes = [...new Set(devices.map(({ node }) => node ?? '?'))];
  return {
    cells: [
      ...(hasNamespace ? [row.namespace] : []),
      row.name,
      row.state,
      nodes.join(',') || '-',
      [...new Set(devices.map(({ gpu }) => gpu ?? '?'))].join(',') || '-',
      String(held.reduce((sum, { cores }) => sum + cores, 0)),
      memory.includes(0) ? 'all' : `${gib(memory.reduce((sum, bytes) => sum + bytes, 0))} GiB`,
      row.pods.join(',') || '-',
      row.createdAtMs === undefined ? '-' : age(Date.now() - row.createdAtMs),
    ],
    wide: [asks.classes.join(',') || '-', devices.map(({ device }) => device).join(',') || '-', row.why ?? '-'],
    document: row,
  };
}
