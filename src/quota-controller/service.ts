import { systemClock, type Clock } from '../host/clock.js';
import { ANY_CALLER } from '../kube/admission/review-callers.js';
import { WebhookServer } from '../kube/admission/webhook-server.js';
import { Events, QUOTA_COMPONENT } from '../kube/events.js';
import { WorkQueue } from '../kube/work-queue.js';
import { KNOWN_KINDS } from '../quota/internal.js';
import { quotaReviews } from './admission/quota-reviews.js';
import { register } from './admission/quota-webhooks.js';
import { WaitingWorkloads } from './give-back/waiting-workloads.js';
import { Leadership } from './leadership.js';
import { openEngine, type OpenEngine } from './open-engine.js';
import { ClusterFacts, type FactsChange } from './policy/cluster-facts.js';
import { FactsChanges } from './policy/facts-changes.js';
import { KueueObjects } from './workloads/kueue-objects.js';
import { WORKLOAD_KIND, type Workload } from './workloads/kueue-workload.js';
import type { ServedKind } from './workloads/kinds.js';
import type { ObjectChange } from '../kube/informer.js';
import { KnownWorkloads } from './workloads/known-workloads.js';
import { OwnedPods } from './workloads/owned-pods.js';
import { Reconciler, type ReconcilerOptions } from './reconciler/reconciler.js';
import { ServedKinds } from './workloads/served-kinds.js';
import { RESERVATION_MS, type QuotaServiceOptions } from './service-options.js';
import { WorkloadReader } from './workloads/workload-reader.js';

/** Maximum number of queued events while the API server is unreachable; the oldest are dropped first. */
const MAX_EVENTS = 512;

/** Quota on Kubernetes: admission webhooks and reconciler on every replica, controller and arbitrator on the leader. */
export class QuotaService {
  readonly #options: QuotaServiceOptions;
  readonly #clock: Clock;
  readonly #eventWrites: WorkQueue;
  readonly #events: Events;
  #facts: ClusterFacts | null = null;
  #factsChanges: FactsChanges | null = null;
  #kinds: ServedKinds | null = null;
  #kueue: KueueObjects | null = null;
  #opened: OpenEngine | null = null;
  #reconciler: Reconciler | null = null;
  #server: WebhookServer | null = null;
  #leadership: Leadership | null = null;

  constructor(options: QuotaServiceOptions) {
    this.#options = options;
    const { api, log, identity, clock = systemClock } = options;
    this.#clock = clock;
    this.#eventWrites = new WorkQueue({ clock, log, capacity: MAX_EVENTS, concurrency: 2 });
    const reporter = { component: QUOTA_COMPONENT, instance: identity, host: null };
    this.#events = new Events({ api, queue: this.#eventWrites, reporter, clock });
  }

  /** The port that the webhooks listen on. */
  get port(): number {
    return this.#server?.port ?? 0;
  }

  /** The separate port of the probes; null for none. */
  get probePort(): number | null {
    return this.#server?.probePort ?? null;
  }

  get leading(): boolean {
    return this.#leadership?.leading ?? false;
  }

  /** Why the service cannot decide yet; null once it can. */
  get notReady(): string | null {
    if (this.#reconciler?.synced !== true) return 'the ledger is not in sync with the API server yet';
    return this.#opened?.engineClock.notReady ?? null;
  }

  /** Rejects if the API server does not answer or the address cannot be listened on. */
  async start(): Promise<void> {
    const { api, log, metrics, audited } = this.#options;
    const [clock, events] = [this.#clock, this.#events];
    const facts = this.#openFacts();
    this.#facts = facts;
    await facts.start();
    const started = facts.policy;
    const served = await this.#readKinds(facts);
    const opened = await openEngine({ ...this.#options, policy: started, events, clock });
    this.#opened = opened;
    if (audited !== undefined) opened.engine.on(audited);
    const kinds = (): readonly ServedKind[] => served.kinds;
    const kueue =
      this.#options.kueue === true ? new KueueObjects({ api, evaluation: () => facts.admission(), kinds }) : null;
    this.#kueue = kueue;
    const known = new KnownWorkloads();
    const owned = new OwnedPods(known);
    const reader = new WorkloadReader({ api, evaluation: () => facts.admission(), kinds, kueue, owned });
    const reconciler = this.#newReconciler(opened, facts, served, { ownership: reader.ownership, known, owned });
    kueue?.onChange((change) => reconsiderOwners(reconciler, change));
    await kueue?.serve(served.kinds);
    this.#reconciler = reconciler;
    metrics.watch(opened.engine, reconciler, opened.engineClock, opened.store);
    reconciler.start();
    const waiting = this.#newWaiting(opened, reconciler);
    const server = this.#newServer(opened, facts, reconciler, reader, waiting);
    this.#server = server;
    await server.start();
    this.#kinds = served;
    await this.#register();
    const leadership = new Leadership({
      ...this.#options,
      ...opened,
      reconciler,
      owned,
      reader,
      kueue,
      facts,
      waiting,
      started,
      events,
      clock,
    });
    this.#leadership = leadership;
    leadership.start();
    served.onChange(async (found) => {
      await kueue?.serve(found);
      reconciler.serve(found);
      await this.#register();
    });
    served.start();
    const apply = async (changes: ReadonlySet<FactsChange>): Promise<void> => {
      await this.#applyFacts(changes, served, reconciler);
      leadership.factsChanged();
    };
    this.#factsChanges = new FactsChanges({ facts, apply, clock, log });
    this.#factsChanges.start();
    reconciler.onChange((name) => facts.groupChanged(name, reconciler.group(name)));
    server.keepCertificate();
  }

  /** The order matters: first no new decisions, then pending writes, then another replica may lead. */
  async stop(): Promise<void> {
    this.#factsChanges?.stop();
    await Promise.all([this.#kinds?.stop(), this.#facts?.stop()]);
    await this.#server?.stop();
    await this.#leadership?.stop();
    await this.#eventWrites.stop();
    await Promise.all([this.#reconciler?.stop(), this.#kueue?.stop()]);
    await this.#factsChanges?.idle();
    await this.#opened?.engine.close();
  }

  #openFacts(): ClusterFacts {
    const { api, log, evaluation = {}, kueue = false, kindsMs, namespace } = this.#options;
    return new ClusterFacts({
      api,
      evaluation: kueue ? { ...evaluation, kinds: [WORKLOAD_KIND, ...(evaluation.kinds ?? [])] } : evaluation,
      ownNamespace: namespace,
      log,
      clock: this.#clock,
      everyMs: kindsMs,
    });
  }

  #readKinds(facts: ClusterFacts): Promise<ServedKinds> {
    const { api, log, kindsMs } = this.#options;
    return ServedKinds.read({
      api,
      log,
      clock: this.#clock,
      evaluators: () => [...(facts.admission().kinds ?? []), ...KNOWN_KINDS],
      everyMs: kindsMs,
    });
  }

  #newReconciler(
    { engine, clusterClock }: OpenEngine,
    facts: ClusterFacts,
    served: ServedKinds,
    charging: Pick<ReconcilerOptions, 'ownership' | 'known' | 'owned'>,
  ): Reconciler {
    const { api, log, reservationMs = RESERVATION_MS, othersMs } = this.#options;
    return new Reconciler({
      api,
      engine,
      kinds: served.kinds,
      evaluation: () => facts.observation(),
      log,
      clock: clusterClock,
      reservationMs,
      ...charging,
      othersMs,
    });
  }

  #newWaiting({ engine }: OpenEngine, reconciler: Reconciler): WaitingWorkloads | null {
    const { api, log, arbitrator = null } = this.#options;
    if (arbitrator === null) return null;
    const waiting = new WaitingWorkloads({
      ...{ api, engine, log, clock: this.#clock },
      group: (name) => reconciler.group(name),
    });
    for (const { spec } of reconciler.groups()) waiting.groupChanged(spec.name);
    reconciler.onChange((name) => waiting.groupChanged(name));
    return waiting;
  }

  #newServer(
    { engine }: OpenEngine,
    facts: ClusterFacts,
    reconciler: Reconciler,
    reader: WorkloadReader,
    waiting: WaitingWorkloads | null,
  ): WebhookServer {
    const { api, log, metrics, address, port, probePort = null, certificate, currentCertificate } = this.#options;
    const { callers = ANY_CALLER, openGroups = true, reservationMs = RESERVATION_MS } = this.#options;
    return new WebhookServer({
      address,
      port,
      probePort,
      certificate,
      currentCertificate,
      overlapMs: this.#options.overlapMs,
      callers,
      readers: this.#options.readers ?? null,
      reviews: quotaReviews({
        api,
        engine,
        reader,
        reconciler,
        waiting,
        facts,
        isOpenByDefault: openGroups,
        reservationMs,
      }),
      notReady: () => this.notReady,
      decided: (path, response, seconds) => metrics.decided(path, response, seconds),
      metrics: metrics.page,
      register: () => this.#register(),
      log,
      clock: this.#clock,
    });
  }

  /** Applies changed facts: discovers kinds, updates webhooks, and evaluates workloads again. */
  async #applyFacts(changes: ReadonlySet<FactsChange>, served: ServedKinds, reconciler: Reconciler): Promise<void> {
    const all = changes.has('policy');
    if (all) await served.rediscover();
    if (all || changes.has('namespaces')) await this.#register();
    if (changes.has('namespaces')) await reconciler.defaultGroupsChanged();
    // Only the demand of a DaemonSet, its number of pods, depends on the nodes.
    if (all || changes.has('nodes')) await reconciler.reread(({ evaluator }) => all || evaluator.kind === 'DaemonSet');
  }

  async #register(): Promise<void> {
    const { api, target, webhookName: name, unlabelled, certificate, currentCertificate, evaluation } = this.#options;
    const { callers = ANY_CALLER } = this.#options;
    if (target === null) return;
    const { groupLabel } = evaluation ?? {};
    await register(api, {
      name,
      announced: async () => ({
        target: target(this.port),
        prefix: callers.prefix,
        authority: (currentCertificate === undefined ? certificate : await currentCertificate()).authority,
      }),
      unlabelled,
      // Kueue's Workloads are charged by the AdmissionCheck.
      kinds: (this.#kinds?.kinds ?? []).filter(({ evaluator }) => evaluator !== WORKLOAD_KIND),
      requireLabel: this.#facts?.policy.requireLabel ?? null,
      defaultFor: [...(this.#facts?.defaultGroups.claims().values() ?? [])],
      ownNamespace: this.#options.namespace,
      groupLabel,
    });
  }
}

/** Charges the objects of a Workload again if it stands for them no longer, or only now. */
function reconsiderOwners(reconciler: Reconciler, { before, after }: ObjectChange<Workload>): void {
  const standing = (workload: Workload | null): string =>
    workload === null ? '' : JSON.stringify([workload.chargedTo, workload.isReserved && workload.isEvicted]);
  if (standing(before) === standing(after)) return;
  for (const { uid } of (after ?? before)?.owners ?? []) reconciler.reconsider(uid);
}
