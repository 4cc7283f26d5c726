import { Agent, request } from 'node:https';
import { issue } from '../../src/kube/admission/webhook-identity.js';
import { watchableApi } from '../../src/kube/watchable-api.js';
import { systemClock, type Clock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import type { KubeAnswer, KubeClient } from '../../src/kube/client.js';
import { INFORMER_TIMING } from '../../src/kube/informer.js';
import { GROUP_LABEL, type QuotaEvent } from '../../src/quota/internal.js';
import { QuotaMetrics } from '../../src/quota-controller/quota-metrics.js';
import type { ArbitratorConfig } from '../../src/quota-controller/service-options.js';
import { QuotaService } from '../../src/quota-controller/service.js';
import { GROUPS_PATH } from '../../src/kube/quota/names.js';
import type { ApiServer, ApiServerOptions } from '../harness/api-server/api-server.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import type { Admission } from '../harness/api-server/resources.js';
import { eventually } from '../harness/eventually.js';
import { clientTo, quotaServer } from './setting.js';

const QUICK = { ...INFORMER_TIMING, floorMs: 1, backoffMs: 1, longestBackoffMs: 20 };
const IDENTITY = await issue(['127.0.0.1']);
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

interface ReviewAnswer {
  readonly response: {
    readonly allowed: boolean;
    readonly status?: { readonly code: number; readonly message: string };
  };
}

/** A programmable API server that calls the webhooks of quota services as a real one does. */
export class QuotaCluster {
  readonly server: ApiServer;
  readonly client: KubeClient;
  readonly services: QuotaService[] = [];
  readonly #agent = new Agent({ ca: IDENTITY.authority, keepAlive: true });
  /** Asks the webhooks, as the API server does before every change. */
  readonly guard: Admission;
  #asked = 0;
  /** Namespaces whose objects without the label are reviewed, as the registered webhooks have it. */
  readonly defaultNamespaces = new Set<string>();

  private constructor(server: ApiServer) {
    this.server = server;
    this.client = clientTo(server.url);
    this.guard = async ({ type, subresource, namespace, name, operation, object, oldObject, dryRun }) => {
      const path = this.#pathOf(type.plural, subresource, namespace, [object, oldObject]);
      if (path === null) return null;
      const kind = { group: type.group, version: type.version, kind: type.kind };
      const review = {
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        request: {
          uid: `review-${++this.#asked}`,
          kind,
          resource: { group: type.group, version: type.version, resource: type.plural },
          subResource: subresource,
          name,
          ...(type.namespaced ? { namespace } : {}),
          operation,
          dryRun,
          userInfo: { username: 'tester' },
          object: subresource === 'scale' ? scaleOf(object) : object,
          oldObject: subresource === 'scale' ? scaleOf(oldObject) : oldObject,
        },
      };
      const { allowed, status } = (await this.ask(path, review)).response;
      return allowed ? null : { code: status?.code ?? 500, message: status?.message ?? '' };
    };
    server.admission = this.guard;
  }

  static async start(replicas = 1, options: ApiServerOptions = {}): Promise<QuotaCluster> {
    const cluster = new QuotaCluster(await quotaServer(options));
    for (let index = 0; index < replicas; index++) await cluster.join();
    return cluster;
  }

  /** Starts another replica; resolves when it is ready. */
  async join(
    options: {
      readonly refreshMs?: number;
      readonly othersMs?: number;
      readonly reservationMs?: number;
      readonly kindsMs?: number;
      readonly leaseMs?: number;
      readonly retryMs?: number;
      readonly clock?: Clock;
      readonly audited?: (event: QuotaEvent) => void;
      readonly openGroups?: boolean;
      readonly arbitrator?: ArbitratorConfig;
      readonly kueue?: boolean;
    } = {},
  ): Promise<QuotaService> {
    const service = new QuotaService({
      api: watchableApi(this.client, systemClock, silentLog(), QUICK),
      serverTime: this.client.serverTime,
      log: silentLog(),
      metrics: new QuotaMetrics(),
      address: '127.0.0.1',
      port: 0,
      certificate: IDENTITY,
      target: null,
      webhookName: 'quota',
      unlabelled: 'Ignore',
      namespace: 'kube-system',
      identity: `replica-${this.services.length}`,
      othersMs: 20,
      leaseMs: 400,
      retryMs: 40,
      ...options,
    });
    await service.start();
    await eventually(() => service.notReady === null, 'the replica to be ready');
    this.services.push(service);
    return service;
  }

  async leave(service: QuotaService): Promise<void> {
    this.services.splice(this.services.indexOf(service), 1);
    await service.stop();
  }

  /** Changes objects without calling the webhooks. */
  async unguarded(action: () => Promise<unknown>): Promise<void> {
    this.server.admission = null;
    await action();
    this.server.admission = this.guard;
  }

  async stop(): Promise<void> {
    this.server.admission = null;
    for (const service of this.services) await service.stop();
    this.#agent.destroy();
    this.client.close();
    await this.server.stop();
  }

  /** Calls the replicas in turn. */
  ask(path: string, review: unknown): Promise<ReviewAnswer> {
    const service = this.services[this.#asked % this.services.length];
    if (service === undefined) throw new Error('no replica');
    return this.askOne(service, path, review);
  }

  /** As an API server does, it asks again if the replica had closed the connection that was kept. */
  askOne(service: QuotaService, path: string, review: unknown): Promise<ReviewAnswer> {
    return new Promise((resolve, reject) => {
      const outgoing = request(
        { host: '127.0.0.1', port: service.port, path, method: 'POST', agent: this.#agent },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.on('end', () =>
            response.statusCode === 200
              ? resolve(JSON.parse(text) as ReviewAnswer)
              : reject(new Error(`${response.statusCode ?? 0} ${text}`)),
          );
        },
      );
      outgoing.on('error', (error) => {
        if (outgoing.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET')
          this.askOne(service, path, review).then(resolve, reject);
        else reject(error);
      });
      outgoing.end(JSON.stringify(review));
    });
  }

  /** As in the webhook configuration. */
  #pathOf(
    plural: string,
    subresource: string,
    namespace: string,
    objects: readonly (KubeObject | null)[],
  ): string | null {
    if (plural === 'bizgroupresourcequotas') return subresource === '' ? '/groups' : null;
    if (plural === 'horizontalpodautoscalers') return '/autoscalers';
    if (subresource === 'scale') return '/scale';
    if (subresource !== '' || !['deployments', 'statefulsets', 'replicasets', 'jobs', 'pods'].includes(plural))
      return null;
    const isReviewed =
      this.defaultNamespaces.has(namespace) ||
      objects.some((object) => object?.metadata.labels?.[GROUP_LABEL] !== undefined);
    return isReviewed ? '/workloads' : null;
  }

  // --- what people do -----------------------------------------------------------------------------------------------

  createGroup(name: string, hard: Readonly<Record<string, string | number>>, parent = ''): Promise<KubeAnswer> {
    return this.client.request({
      method: 'POST',
      path: GROUPS_PATH,
      body: { metadata: { name }, spec: { parentBizGroup: parent, hard } },
    });
  }

  updateGroup(name: string, hard: Readonly<Record<string, string | number>>, more: object = {}): Promise<KubeAnswer> {
    const old = this.server.read('bizgroupresourcequotas', '', name)?.spec as { readonly hard: object };
    const removed = Object.fromEntries(
      Object.keys(old.hard)
        .filter((key) => !(key in hard))
        .map((key) => [key, null]),
    );
    return this.client.request({
      method: 'PATCH',
      path: `${GROUPS_PATH}/${name}`,
      contentType: 'application/merge-patch+json',
      body: { spec: { hard: { ...removed, ...hard }, ...more } },
    });
  }

  deleteGroup(name: string): Promise<KubeAnswer> {
    return this.client.request({ method: 'DELETE', path: `${GROUPS_PATH}/${name}` });
  }

  deploy(
    name: string,
    group: string,
    replicas: number,
    cores: number,
    query: Readonly<Record<string, string>> = {},
  ): Promise<KubeAnswer> {
    return this.client.request({
      method: 'POST',
      path: DEPLOYMENTS,
      query,
      body: deployment(name, group, replicas, cores),
    });
  }

  patch(name: string, body: object): Promise<KubeAnswer> {
    return this.client.request({
      method: 'PATCH',
      path: `${DEPLOYMENTS}/${name}`,
      contentType: 'application/merge-patch+json',
      body,
    });
  }

  scale(name: string, replicas: number): Promise<KubeAnswer> {
    return this.client.request({
      method: 'PATCH',
      path: `${DEPLOYMENTS}/${name}/scale`,
      contentType: 'application/merge-patch+json',
      body: { spec: { replicas } },
    });
  }

  remove(name: string): Promise<KubeAnswer> {
    return this.client.request({ method: 'DELETE', path: `${DEPLOYMENTS}/${name}` });
  }

  statusOf(group: string): Readonly<Record<string, unknown>> {
    return (this.server.read('bizgroupresourcequotas', '', group)?.status ?? {}) as Readonly<Record<string, unknown>>;
  }

  /** Usage of a key in the status of a group's object. */
  used(group: string, key = 'limits.cpu'): string | undefined {
    return (this.statusOf(group)['used'] as Readonly<Record<string, string>> | undefined)?.[key];
  }

  condition(group: string, type: string): string | undefined {
    return (
      this.statusOf(group)['conditions'] as readonly { readonly type: string; readonly status: string }[] | undefined
    )?.find((each) => each.type === type)?.status;
  }
}

export function deployment(name: string, group: string, replicas: number, cores: number): KubeObject {
  return {
    metadata: { name, ...(group === '' ? {} : { labels: { [GROUP_LABEL]: group } }) },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: cores } } }] },
      },
    },
  };
}

function scaleOf(object: KubeObject | null): object | null {
  if (object === null) return null;
  const { name, namespace, uid, resourceVersion } = object.metadata;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion },
    spec: { replicas: (object.spec as { readonly replicas?: number }).replicas },
  };
}
