import { watchableApi } from '../../../src/kube/watchable-api.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import type { KubeClient } from '../../../src/kube/client.js';
import { Events } from '../../../src/kube/events.js';
import { INFORMER_TIMING } from '../../../src/kube/informer.js';
import { WorkQueue } from '../../../src/kube/work-queue.js';
import { DEFAULT_ARBITRATOR_POLICY } from '../../../src/quota/index.js';
import type { AllocationStatus } from '../../../src/kube/quota/allocation-object.js';
import { Metrics } from '../../../src/http/metrics.js';
import { ArbitratorMetrics } from '../../../src/quota-controller/arbitrator/arbitrator-metrics.js';
import { Arbitrator } from '../../../src/quota-controller/arbitrator/arbitrator.js';
import type { ConsumerTemplate } from '../../../src/quota-controller/policy/policy-object.js';
import type { StructuredLog } from '../../../src/host/structured-log.js';
import type { ApiServer, ApiServerOptions, SeenRequest } from '../../harness/api-server/api-server.js';
import type { KubeObject } from '../../harness/api-server/kube-object.js';
import { eventually } from '../../harness/eventually.js';
import { clientTo, quotaServer } from '../setting.js';

const QUICK = { ...INFORMER_TIMING, floorMs: 1, backoffMs: 1, longestBackoffMs: 20 };
const START = Date.UTC(2026, 10, 21, 12);

export type Amounts = Readonly<Record<string, string | number>>;

export interface PodOptions {
  /** Null for a waiting pod. */
  readonly node?: string | null;
  /** Seconds after the start. */
  readonly startedAt?: number;
  readonly priority?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly owner?: string;
  readonly leaving?: boolean;
  readonly limits?: Amounts;
}

/**
 * A programmable API server with nodes and pods, and an arbitrator with a manual clock whose cycles follow each other
 * without pause.
 */
export class ArbitratedCluster {
  readonly server: ApiServer;
  readonly client: KubeClient;
  readonly logged: { readonly fields: Readonly<Record<string, unknown>>; readonly message: string }[] = [];
  /** Seconds since the start. */
  seconds = 0;
  readonly #metrics = new ArbitratorMetrics();
  readonly metrics = new Metrics(...this.#metrics.parts);
  #arbitrator: Arbitrator | null = null;
  #eventWrites: WorkQueue | null = null;

  private constructor(server: ApiServer) {
    this.server = server;
    this.client = clientTo(server.url);
  }

  static async start(options: ApiServerOptions = {}): Promise<ArbitratedCluster> {
    return new ArbitratedCluster(await quotaServer(options));
  }

  /** Starts an arbitrator; resolves when it has read everything. */
  async arbitrate(
    mode: 'plan' | 'on' = 'on',
    policy: Partial<typeof DEFAULT_ARBITRATOR_POLICY> = {},
    templates: readonly ConsumerTemplate[] = [],
    limitsPercent: number | null = null,
  ): Promise<Arbitrator> {
    const note = (fields: object, message: string): void =>
      void this.logged.push({ fields: fields as Readonly<Record<string, unknown>>, message });
    const log: StructuredLog = { info: note, warn: note, error: note };
    const clock = { ...systemClock, now: () => START + this.seconds * 1000 };
    const queue = new WorkQueue({ clock, log });
    this.#eventWrites = queue;
    const arbitrator = new Arbitrator({
      api: watchableApi(this.client, systemClock, silentLog(), QUICK),
      events: new Events({
        api: this.client,
        queue,
        reporter: { component: 'gpu-manager-quota', instance: 'test', host: null },
        clock,
      }),
      log,
      metrics: this.#metrics,
      mode,
      clock,
      policy: { ...DEFAULT_ARBITRATOR_POLICY, ...policy },
      periodMs: 2,
      templates: () => templates,
      limitsPercent: () => limitsPercent,
    });
    this.#arbitrator = arbitrator;
    arbitrator.start();
    await eventually(() => arbitrator.cycles > 0, 'the first cycle');
    return arbitrator;
  }

  /** Stops the arbitrator; its state in memory is lost. */
  async end(): Promise<void> {
    await this.#arbitrator?.stop();
    await this.#eventWrites?.stop();
    this.#arbitrator = null;
  }

  async stop(): Promise<void> {
    await this.end();
    this.client.close();
    await this.server.stop();
  }

  /** Resolves after several cycles without a write. */
  async resolvePending(): Promise<void> {
    for (let before = -1; before !== this.server.revision;) {
      before = this.server.revision;
      const from = this.#arbitrator?.cycles ?? 0;
      await eventually(() => (this.#arbitrator?.cycles ?? Infinity) >= from + 12, 'cycles to go by');
    }
  }

  // --- what is there ------------------------------------------------------------------------------------------------

  addNode(name: string, allocatable: Amounts, spec: object = {}): void {
    this.server.seed('nodes', {
      metadata: { name },
      spec,
      status: { allocatable: { pods: '110', ...allocatable }, conditions: [{ type: 'Ready', status: 'True' }] },
    });
  }

  addNamespaces(...names: readonly string[]): void {
    for (const name of names) this.server.seed('namespaces', { metadata: { name } });
  }

  addConsumer(name: string, spec: object): void {
    this.server.seed('consumers', { metadata: { name, generation: 1 }, spec });
  }

  addPod(
    namespace: string,
    name: string,
    requests: Amounts,
    { node = 'node1', startedAt = 0, priority = 0, labels = {}, owner, leaving = false, limits = {} }: PodOptions = {},
  ): KubeObject {
    const at = new Date(START + startedAt * 1000).toISOString();
    return this.server.seed('pods', {
      metadata: {
        name,
        namespace,
        labels,
        ...(leaving ? { deletionTimestamp: at, deletionGracePeriodSeconds: 30 } : {}),
        ...(owner === undefined
          ? {}
          : {
              ownerReferences: [{ apiVersion: 'apps/v1', kind: owner, name: 'owner', uid: 'owner', controller: true }],
            }),
      },
      spec: {
        priority,
        ...(node === null ? {} : { nodeName: node }),
        containers: [{ name: 'main', resources: { requests, limits } }],
      },
      status:
        node === null
          ? { phase: 'Pending' }
          : { phase: 'Running', conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: at }] },
    });
  }

  addBudget(
    namespace: string,
    name: string,
    matchLabels: Readonly<Record<string, string>>,
    disruptionsAllowed: number,
  ): void {
    this.server.seed('poddisruptionbudgets', {
      metadata: { name, namespace },
      spec: { selector: { matchLabels } },
      status: { disruptionsAllowed },
    });
  }

  // --- what came of it ----------------------------------------------------------------------------------------------

  statusOf(name: string): AllocationStatus {
    return this.server.read('allocations', '', name)?.status ?? {};
  }

  condition(
    resource: 'allocations' | 'consumers',
    name: string,
    type: string,
  ): { readonly status: string; readonly reason: string; readonly message: string } | undefined {
    const { conditions = [] } = (this.server.read(resource, '', name)?.status ?? {}) as {
      readonly conditions?: readonly {
        readonly type: string;
        readonly status: string;
        readonly reason: string;
        readonly message: string;
      }[];
    };
    return conditions.find((each) => each.type === type);
  }

  async deserves(name: string, amounts: Amounts): Promise<void> {
    const shown = (written: Amounts | undefined): string => JSON.stringify(Object.entries(written ?? {}).sort());
    await eventually(
      () => shown(this.statusOf(name).deserved) === shown(amounts),
      `${name} to deserve ${JSON.stringify(amounts)}`,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(this.statusOf(name))}`);
    });
  }

  /** Names of evicted pods, one per request. */
  evictions(): readonly string[] {
    return this.#evictionRequests(false);
  }

  /** Names of pods with dry-run evictions. */
  evictionsTried(): readonly string[] {
    return this.#evictionRequests(true);
  }

  #evictionRequests(isDryRun: boolean): readonly string[] {
    return this.server.requests
      .filter(({ subresource, query }) => subresource === 'eviction' && 'dryRun' in query === isDryRun)
      .map(({ name }) => name ?? '');
  }

  /** Requests that write. */
  writes(): readonly SeenRequest[] {
    return this.server.requests.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb));
  }

  events(reason: string): readonly KubeObject[] {
    return this.server.all('events').filter((event) => event['reason'] === reason);
  }
}
