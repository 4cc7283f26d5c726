import { openKubeClient } from '../../src/kube/open-client.js';
import { MERGE_PATCH, type KubeClient } from '../../src/kube/client.js';
import { systemClock } from '../../src/host/clock.js';
import { NODE, type TestCluster } from './cluster.js';
import { until } from '../harness/eventually.js';

/** An object as discovery and a list of metadata show it. */
interface Found {
  /** Path of the object below the server's URL. */
  readonly path: string;
  readonly resource: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly finalizers?: readonly string[];
    readonly deletionTimestamp?: string;
  };
}

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly verbs: readonly string[] }[];
}

/** What may stay different: the cluster makes these by itself, again and again. */
const OF_THE_CLUSTER = new Set([
  'events',
  'leases',
  'endpoints',
  'endpointslices',
  'componentstatuses',
  'controllerrevisions',
]);
/** Deleted before all others, which they would refuse to delete. */
const FIRST = ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations', 'validatingadmissionpolicybindings'];
const LIMIT_MS = 60_000;

/**
 * The objects of a cluster that has just started. What a test file leaves beside them is removed, so that the next
 * file finds an empty cluster without the seconds of a start. Nothing is known of processes, devices or containers: for
 * files that change only what the API server keeps.
 */
export class ClusterContents {
  readonly #client: KubeClient;
  readonly #before: ReadonlySet<string>;
  readonly #node: NodeParts;

  private constructor(client: KubeClient, before: ReadonlySet<string>, node: NodeParts) {
    this.#client = client;
    this.#before = before;
    this.#node = node;
  }

  static async of(cluster: TestCluster): Promise<ClusterContents> {
    const client = await openKubeClient(cluster.kubeconfig, systemClock);
    const found = await objects(client);
    return new ClusterContents(client, new Set(found.map(({ path }) => path)), await nodeOf(client));
  }

  /**
   * Removes what was added, and gives the node its labels, annotations, taints and capacity again; rejects after a
   * minute.
   */
  async restore(): Promise<void> {
    await until(
      'the objects of the last file to go',
      async () => {
        const added = (await objects(this.#client)).filter(({ path }) => !this.#before.has(path));
        const first = added.filter(({ resource }) => FIRST.includes(resource));
        for (const object of first.length > 0 ? first : added) await this.#remove(object);
        return added.length === 0;
      },
      LIMIT_MS,
    );
    const { metadata, status } = await nodeOf(this.#client);
    const before = this.#node;
    const path = `/api/v1/nodes/${NODE}`;
    await this.#patch(path, {
      metadata: {
        labels: changeTo(before.metadata.labels, metadata.labels),
        annotations: changeTo(before.metadata.annotations, metadata.annotations),
      },
      spec: { taints: before.spec.taints ?? null, unschedulable: null },
    });
    await this.#patch(`${path}/status`, {
      status: {
        capacity: changeTo(before.status.capacity, status.capacity),
        allocatable: changeTo(before.status.allocatable, status.allocatable),
      },
    });
  }

  close(): void {
    this.#client.close();
  }

  async #remove({ path, metadata }: Found): Promise<void> {
    // The program that would end it has ended.
    if ((metadata.finalizers ?? []).length > 0) await this.#patch(path, { metadata: { finalizers: null } });
    if (metadata.deletionTimestamp === undefined)
      await this.#client.request({
        method: 'DELETE',
        path,
        body: { propagationPolicy: 'Background', gracePeriodSeconds: 0 },
      });
  }

  async #patch(path: string, body: object): Promise<void> {
    await this.#client.request({ method: 'PATCH', path, contentType: MERGE_PATCH, body });
  }
}

type Strings = Readonly<Record<string, string>>;

interface NodeParts {
  readonly metadata: { readonly labels?: Strings; readonly annotations?: Strings };
  readonly spec: { readonly taints?: readonly object[] };
  readonly status: { readonly capacity?: Strings; readonly allocatable?: Strings };
}

async function nodeOf(client: KubeClient): Promise<NodeParts> {
  return await bodyOf<NodeParts>(client, `/api/v1/nodes/${NODE}`);
}

/** A merge patch that turns `now` into `before`. */
function changeTo(before: Strings = {}, now: Strings = {}): Record<string, string | null> {
  const added = Object.keys(now).filter((name) => !(name in before));
  return { ...before, ...Object.fromEntries(added.map((name) => [name, null])) };
}

/** All objects that can be deleted, of every group and kind. */
async function objects(client: KubeClient): Promise<readonly Found[]> {
  const { groups } = await bodyOf<{ groups: readonly { preferredVersion: { groupVersion: string } }[] }>(
    client,
    '/apis',
  );
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const found: Found[] = [];
  for (const root of roots) {
    const { resources = [] } = await bodyOf<ResourceList>(client, root);
    for (const { name: resource, verbs } of resources) {
      if (OF_THE_CLUSTER.has(resource) || !verbs.includes('list') || !verbs.includes('delete')) continue;
      const { items } = await bodyOf<{ items: readonly Pick<Found, 'metadata'>[] }>(client, `${root}/${resource}`);
      for (const { metadata } of items) {
        const { name, namespace } = metadata;
        const within = namespace === undefined ? root : `${root}/namespaces/${namespace}`;
        found.push({ path: `${within}/${resource}/${encodeURIComponent(name)}`, resource, metadata });
      }
    }
  }
  return found;
}

/** The answer's body; that of a kind whose definition has just gone is empty. */
async function bodyOf<T>(client: KubeClient, path: string): Promise<T> {
  const answer = await client.request({ method: 'GET', path });
  return (answer.ok ? answer.body : { items: [], groups: [] }) as T;
}
