import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { KubeClient } from '../../kube/client.js';
import { AGENT_COMPONENT, Events, type EventRecorder } from '../../kube/events.js';
import { FailedPods, type RefusalListener } from './failed-pods.js';
import { NodeCondition } from './node-condition.js';
import { NodeLabels } from './node-labels.js';
import { NodePods } from './node-pods.js';
import { Notices } from './notices.js';
import type { InformerTiming } from '../../kube/informer.js';
import { PodWriter, type PodRef } from './pod-writer.js';
import type { TokenReviewer } from '../../http/token-access.js';
import { reviewToken } from '../../kube/token-review.js';
import { WorkQueue, type WorkCounts } from '../../kube/work-queue.js';

export interface NodeKubeOptions {
  /** A separate client, which is closed when the agent stops. */
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Partial<InformerTiming>;
  readonly onRefused?: RefusalListener;
}

/** This node at the API server. Reads answer from memory; writes wait in queues. */
export class NodeKube {
  readonly pods: NodePods;
  readonly notices: Notices;
  readonly events: Events;
  readonly labels: NodeLabels;
  /** The condition of that type of this node. */
  readonly condition: (type: string) => NodeCondition;
  readonly #client: KubeClient;
  readonly #writer: PodWriter;
  readonly #failedPods: FailedPods;
  /** A separate queue: annotations and deletions must not wait behind many events. */
  readonly #writes: WorkQueue;
  readonly #eventWrites: WorkQueue;

  constructor(options: NodeKubeOptions) {
    const { client, nodeName, clock, log } = options;
    this.#client = client;
    this.#writes = new WorkQueue({ clock, log, capacity: 1_024 });
    this.#eventWrites = new WorkQueue({ clock, log, capacity: 512, concurrency: 2 });
    this.pods = new NodePods(options);
    this.events = new Events({
      api: client,
      queue: this.#eventWrites,
      reporter: { component: AGENT_COMPONENT, instance: nodeName, host: nodeName },
      clock,
    });
    this.labels = new NodeLabels({ client, queue: this.#writes, nodeName, clock, log });
    this.condition = (type) => new NodeCondition({ client, queue: this.#writes, nodeName, type, clock });
    const writer = new PodWriter(client, this.#writes);
    this.#writer = writer;
    const record: EventRecorder['record'] = (subject, note) => this.events.record(subject, note);
    this.notices = new Notices({
      pods: this.pods,
      annotate: (pod, annotations) => writer.annotate(pod, annotations),
      record,
      nodeName,
      clock,
    });
    this.#failedPods = new FailedPods({
      pods: this.pods,
      remove: (pod) => writer.delete(pod),
      record,
      onRefused: options.onRefused,
      clock,
      log,
    });
  }

  /** Evicts a pod if disruption budgets allow it now. */
  evict(pod: PodRef): void {
    this.#writer.evict(pod);
  }

  /** Whether the owner of a bearer token may read one of our paths. Never rejects. */
  reviewToken(token: string, path: string): ReturnType<TokenReviewer> {
    return reviewToken(this.#client, token, path);
  }

  /** Returns without waiting for the API server. */
  async start(): Promise<void> {
    this.notices.start();
    this.#failedPods.start();
    this.labels.start();
    this.pods.start();
  }

  async stop(): Promise<void> {
    this.labels.stop();
    this.#failedPods.stop();
    this.notices.stop();
    // Ends open requests, so that the following steps do not wait for a server that does not answer.
    this.#client.close();
    await Promise.all([this.pods.stop(), this.#writes.stop(), this.#eventWrites.stop()]);
  }

  /** Counters for metrics. */
  get counts(): {
    readonly watch: NodePods['counts'];
    readonly writes: WorkCounts;
    readonly events: WorkCounts & { readonly suppressed: number };
  } {
    return {
      watch: this.pods.counts,
      writes: this.#writes.counts,
      events: { ...this.#eventWrites.counts, suppressed: this.events.suppressed },
    };
  }
}
