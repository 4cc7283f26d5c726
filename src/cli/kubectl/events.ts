import type { Command } from 'commander';
import { ALL_EVENTS, ALL_PODS, eventsPath, podsPath } from '../../kube/api-path.js';
import { readEvent, type ClusterEvent } from '../../kube/cluster-event.js';
import { listAll } from '../../kube/list-all.js';
import { readPod } from '../../kube/pod.js';
import { age } from '../terminal-text.js';
import { listCommand, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuCluster } from './gpu-cluster.js';
import { printListing, type ListingOptions } from './listing.js';

/** `kubectl gpu events`: events about GPUs and quota. */
export function eventsCommand(): Command {
  return listCommand('events', { selector: 'only events of pods with these labels' })
    .description('list the events about GPUs and quota, oldest first')
    .option('--warnings', 'only warnings')
    .action((options: NamespaceOptions & ListingOptions & { readonly warnings?: true }) =>
      withCluster(options, ({ cluster, namespace }) =>
        printListing(options, async () => {
          const path = namespace === null ? ALL_EVENTS : eventsPath(namespace);
          const pods = await labelledPods(cluster, namespace, options.selector);
          const events = (await listAll(cluster.api, 'the events', path))
            .map(readEvent)
            .filter(
              (event) =>
                isOurs(event) &&
                (options.warnings !== true || event.type === 'Warning') &&
                (pods === null || pods.has(event.uid)),
            )
            .sort((a, b) => a.atMs - b.atMs);
          return {
            headings: ['LAST SEEN', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'],
            wideHeadings: ['COUNT', 'REPORTER'],
            rows: events.map((event) => rowOf(event, namespace === null)),
            none: `no events about GPUs in ${namespace === null ? 'any namespace' : `namespace ${namespace} (-A for all)`}`,
            problems: new Map(),
          };
        }),
      ),
    );
}

/** UIDs of the pods with labels; null without a selector. */
async function labelledPods(
  { api }: GpuCluster,
  namespace: string | null,
  labelSelector: string | undefined,
): Promise<ReadonlySet<string> | null> {
  if (labelSelector === undefined) return null;
  const path = namespace === null ? ALL_PODS : podsPath(namespace);
  return new Set((await listAll(api, 'the pods', path, { labelSelector })).map((pod) => readPod(pod).uid));
}

/** Whether a program of this project reported the event: their components begin alike. */
function isOurs({ component }: ClusterEvent): boolean {
  return component === 'gpu-manager' || component.startsWith('gpu-manager-');
}

function rowOf(event: ClusterEvent, hasNamespace: boolean) {
  const place = hasNamespace && event.namespace !== '' ? `${event.namespace}/` : '';
  return {
    cells: [
      age(Date.now() - event.atMs),
      event.type,
      event.reason,
      `${event.kind.toLowerCase()}/${place}${event.name}`,
      event.message,
    ],
    wide: [String(event.count), event.component],
    document: event,
  };
}
