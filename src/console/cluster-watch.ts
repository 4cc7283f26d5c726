import type { Clock } from '../host/clock.js';
import { AGENT_PODS, readAgentPod } from '../kube/agent-pods.js';
import { ALL_EVENTS, ALL_NODES, ALL_PODS, ALL_RESOURCE_CLAIMS, podsPath } from '../kube/api-path.js';
import { AGENT_COMPONENT, QUOTA_COMPONENT } from '../kube/events.js';
import type { Informer } from '../kube/informer.js';
import { readNode } from '../kube/node.js';
import { readPod } from '../kube/pod.js';
import { readAllocation } from '../kube/quota/allocation-object.js';
import { readConsumer } from '../kube/quota/consumer-object.js';
import { readGroup } from '../kube/quota/group-object.js';
import { ALLOCATIONS_PATH, API_VERSION, CONSUMERS_PATH, GROUPS_PATH } from '../kube/quota/names.js';
import type { WatchableApi } from '../kube/watchable-api.js';
import { claimFacts } from './claim-row.js';
import type { ClusterModel, TableName } from './cluster-model.js';
import { eventRow } from './event-row.js';
import { groupRow } from './group-row.js';
import { nodeFacts } from './node-row.js';
import { OptionalWatch, type OptionalWatchOptions } from './optional-watch.js';
import { podRow } from './pod-row.js';

/** Connections that end are made again within a second or two: a collection is late after this. */
const LATE_MS = 10_000;
/** Refusals by webhooks of this project, or of its resources. */
const OURS = /gpu-manager|tencent\.com\/|quota/u;
const NO_QUOTA = `The API server does not serve ${API_VERSION}: the quota of gpu-manager is not installed.`;
const NO_CLAIMS =
  'The API server does not serve resource.k8s.io/v1: resource claims need Kubernetes 1.34 or later with Dynamic Resource Allocation.';

/** Watches the cluster at the API server and keeps the model up to date. */
export class ClusterWatch {
  readonly #informers: Readonly<Record<string, Pick<Informer<unknown>, 'start' | 'stop' | 'synced' | 'silentMs'>>>;
  readonly #optional: readonly {
    readonly table: TableName;
    readonly watch: Pick<OptionalWatch<unknown>, 'start' | 'stop' | 'absence'>;
  }[];

  constructor(api: WatchableApi, clock: Clock, model: ClusterModel, agentNamespace: string) {
    const nodes = api.informer({
      path: ALL_NODES,
      keep: (object) => {
        const node = readNode(object);
        return node === null ? null : nodeFacts(node);
      },
    });
    nodes.onChange(({ before, after }) => {
      const name = (after ?? before)?.name;
      if (name !== undefined) model.setNode(name, after);
    });
    const pods = api.informer({ path: ALL_PODS, keep: (object) => podRow(readPod(object)) });
    pods.onChange(({ before, after }) => {
      const uid = (after ?? before)?.uid;
      if (uid !== undefined) model.setPod(uid, after);
    });
    const agents = api.informer({ path: podsPath(agentNamespace), labelSelector: AGENT_PODS, keep: readAgentPod });
    agents.onChange(({ before, after }) => {
      if (after !== null) model.setAgent(after);
      else if (before !== null) model.setAgent(before, true);
    });
    this.#informers = { nodes, pods, agents };

    const optional = <T>(table: TableName, options: Omit<OptionalWatchOptions<T>, 'api' | 'clock'>) => ({
      table,
      watch: new OptionalWatch({ api, clock, ...options }),
    });
    const byName = ({ name }: { readonly name: string }): string => name;
    this.#optional = [
      optional('groups', {
        path: GROUPS_PATH,
        keep: (object) => groupRow(readGroup(object)),
        keyOf: byName,
        changed: (name, row) => model.set('groups', name, null, row),
        absence: NO_QUOTA,
      }),
      optional('shares', {
        path: CONSUMERS_PATH,
        keep: readConsumer,
        keyOf: byName,
        changed: (name, consumer) => model.setConsumer(name, consumer),
        absence: NO_QUOTA,
      }),
      optional('shares', {
        path: ALLOCATIONS_PATH,
        keep: readAllocation,
        keyOf: byName,
        changed: (name, allocation) => model.setAllocation(name, allocation),
        absence: NO_QUOTA,
      }),
      ...[AGENT_COMPONENT, QUOTA_COMPONENT].map((component) =>
        optional('events', {
          path: ALL_EVENTS,
          // Every pod of the cluster has events: the API server sends only those of this project.
          fieldSelector: `reportingComponent=${component}`,
          keep: eventRow,
          keyOf: ({ uid }) => uid,
          changed: (uid, row) => model.setEvent(uid, row),
          absence: 'The API server does not serve events.',
        }),
      ),
      optional('events', {
        path: ALL_EVENTS,
        // Controllers of Kubernetes report the pods of their workloads that the API server refuses.
        fieldSelector: 'reason=FailedCreate',
        keep: (object) => {
          const row = eventRow(object);
          return row !== null && OURS.test(row.message) ? row : null;
        },
        keyOf: ({ uid }) => uid,
        changed: (uid, row) => model.setEvent(uid, row),
        absence: 'The API server does not serve events.',
      }),
      optional('claims', {
        path: ALL_RESOURCE_CLAIMS,
        keep: claimFacts,
        keyOf: ({ namespace, name }) => `${namespace}/${name}`,
        changed: (key, claim) => {
          const [namespace = '', name = ''] = key.split('/');
          model.setClaim(namespace, name, claim);
        },
        absence: NO_CLAIMS,
      }),
    ];
  }

  /** Whether nodes and pods have been listed. */
  get synced(): boolean {
    return Object.values(this.#informers).every(({ synced }) => synced);
  }

  /** Time without a connection in milliseconds, by required collection that is late. */
  get late(): Readonly<Record<string, number>> {
    const silent = Object.entries(this.#informers).map(([name, { silentMs }]) => [name, silentMs] as const);
    return Object.fromEntries(silent.filter(([, ms]) => ms >= LATE_MS));
  }

  /** Why tables have no rows, as a sentence, by table; empty if all are watched. */
  get absent(): Readonly<Partial<Record<TableName, string>>> {
    return Object.fromEntries(
      this.#optional.flatMap(({ table, watch }) => (watch.absence === null ? [] : [[table, watch.absence]])),
    );
  }

  start(): void {
    for (const informer of Object.values(this.#informers)) informer.start();
    for (const { watch } of this.#optional) watch.start();
  }

  async stop(): Promise<void> {
    const parts = [...Object.values(this.#informers), ...this.#optional.map(({ watch }) => watch)];
    await Promise.all(parts.map((part) => part.stop()));
  }
}
