import type { JournalEntry } from '../../agent/node/journal.js';
import { list, record, text, type JsonRecord } from '../../kube/json.js';
import { age, printable, table } from '../terminal-text.js';
import type { GpuCluster } from './gpu-cluster.js';

/** A container of a pod that the API server does not have any more. */
interface GoneContainer {
  readonly node: string;
  readonly podUid: string;
  readonly name: string;
  readonly gpus: readonly number[];
  readonly allocatedGpuHours: number;
  readonly usedGpuHours: number;
}

/** What the agents remember of a pod that is gone. */
export interface GonePod {
  readonly namespace: string;
  readonly name: string;
  readonly containers: readonly GoneContainer[];
  readonly events: readonly (JournalEntry & { readonly node: string })[];
}

/** The agents keep the hours of containers so long. */
const KEPT_MS = 35 * 86_400_000;

/**
 * Asks all agents for a pod by its name: the containers that it had in the last 35 days, and the latest events. Null if
 * no agent remembers it. Rejects with a `KubeError`.
 */
export async function gonePod(cluster: GpuCluster, namespace: string, name: string): Promise<GonePod | null> {
  const [hours, journals] = await Promise.all([
    cluster.askAll('/api/use', { since: String(Date.now() - KEPT_MS) }),
    cluster.askAll('/api/events', { pod: `${namespace}/${name}` }),
  ]);
  const isIts = (one: JsonRecord): boolean => one.namespace === namespace && one.pod === name;
  const containers = [...hours].flatMap(([node, answer]) =>
    list(record(answer).containers)
      .map(record)
      .filter(isIts)
      .map((one) => ({
        ...{ node, podUid: text(one.podUid), name: text(one.container), gpus: list(one.gpus).map(Number) },
        ...{ allocatedGpuHours: hoursOf(one.allocatedSeconds), usedGpuHours: hoursOf(one.usedSeconds) },
      })),
  );
  const events = [...journals].flatMap(([node, answer]) =>
    (list(record(answer).events) as readonly JournalEntry[])
      .filter(({ owner }) => isIts(record(owner)))
      .map((event) => ({ ...event, node })),
  );
  if (containers.length === 0 && events.length === 0) return null;
  return { namespace, name, containers, events: events.sort((a, b) => a.atMs - b.atMs) };
}

export function gonePodText({ namespace, name, containers, events }: GonePod): string {
  return [
    `Name:         ${printable(name)}\nNamespace:    ${printable(namespace)}\nStatus:       gone; this is what the agents remember\n`,
    containers.length === 0
      ? ''
      : `\nContainers, of the last 35 days:\n${table(
          ['NAME', 'NODE', 'GPU', 'GPU-HOURS', 'USED', 'POD UID'],
          containers.map((one) => [
            ...[one.name, one.node, one.gpus.join(',') || '-'],
            ...[String(one.allocatedGpuHours), String(one.usedGpuHours), one.podUid],
          ]),
        )}`,
    events.length === 0
      ? ''
      : `\nEvents of the agents:\n${table(
          ['LAST SEEN', 'NODE', 'KIND', 'MESSAGE'],
          events.map(({ atMs, node, kind, message }) => [age(Date.now() - atMs), node, kind, message]),
        )}`,
  ].join('');
}

function hoursOf(seconds: unknown): number {
  return Math.round(Number(seconds) / 36) / 100;
}
