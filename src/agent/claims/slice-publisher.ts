import { DRIVER_NAME } from '../../gpu/claims/names.js';
import { ALL_FEATURES, type KeptFeatures, type PublishedPool } from '../../gpu/claims/published-device.js';
import {
  keptFeatures,
  planSlices,
  sameContent,
  type ObservedSlice,
  type WantedSlice,
} from '../../gpu/claims/slice-plan.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { ALL_RESOURCE_SLICES, nodePath, resourceSlicePath } from '../../kube/api-path.js';
import type { KubeClient } from '../../kube/client.js';
import type { KubeFailure } from '../../kube/failure.js';
import { WatchInformer, type InformerTiming } from '../../kube/informer.js';
import { readSlice, sliceObject } from './slice-object.js';

export interface SlicePublisherOptions {
  readonly client: KubeClient;
  readonly nodeName: string;
  /** What the node offers now, with the features that the API server stores. */
  readonly content: (features: KeptFeatures) => PublishedPool;
  /** Called when the API server begins or ceases to store features. */
  readonly onFeatures?: (features: KeptFeatures) => void;
  /** Called when the API server begins to refuse the slices, for example by a policy. */
  readonly onRefused?: (reason: string) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Partial<InformerTiming>;
}

/** Changes within this time become one write. A change must be published within 2 s, including the write. */
const MIN_PERIOD_MS = 1_000;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

/**
 * Keeps this node's ResourceSlices up to date: after changes of the GPUs, and when another client deletes or changes
 * them, as the kubelet does at its start. Content that the API server did not store is not written again.
 */
export class SlicePublisher {
  readonly #options: SlicePublisherOptions;
  readonly #watch: WatchInformer<ObservedSlice>;
  /** By slice: the last write and the object that the server stored from it. The server may drop fields of a write. */
  readonly #written = new Map<string, { readonly sent: PublishedPool; readonly resourceVersion: string }>();
  #features: KeptFeatures = ALL_FEATURES;
  #nodeUid: string | null = null;
  #errors = 0;
  #failed = 0;
  #notBefore = 0;
  #running: Promise<void> | null = null;
  #wanted = false;
  #cancel: () => void = () => undefined;
  #stopped = false;

  constructor(options: SlicePublisherOptions) {
    this.#options = options;
    this.#watch = new WatchInformer<ObservedSlice>({
      ...options,
      path: ALL_RESOURCE_SLICES,
      fieldSelector: `spec.driver=${DRIVER_NAME},spec.nodeName=${options.nodeName}`,
      keep: (object) => readSlice(object, options.nodeName),
    });
    this.#watch.onChange(() => this.publish());
  }

  /** Features of devices that the API server stores, as far as known. */
  get features(): KeptFeatures {
    return this.#features;
  }

  /** Number of failed writes since the start. */
  get errors(): number {
    return this.#errors;
  }

  start(): void {
    this.#watch.start();
    // The first list may be empty, and then causes no change event.
    this.publish();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#watch.stop();
    await this.#running;
  }

  /** Compares the devices with the stored slices soon, and writes the differences. */
  publish(): void {
    if (this.#stopped || this.#wanted) return;
    this.#wanted = true;
    const { clock } = this.#options;
    this.#cancel = clock.after(Math.max(0, this.#notBefore - clock.now()), () => {
      this.#running = (this.#running ?? Promise.resolve()).then(() => this.#turn());
    });
  }

  async #turn(): Promise<void> {
    if (this.#stopped) return;
    const { clock, log } = this.#options;
    this.#wanted = false;
    if (!this.#watch.synced) {
      this.#later(200);
      return;
    }
    const failure = await this.#compare();
    this.#notBefore = Math.max(this.#notBefore, clock.now());
    if (failure === null) {
      this.#failed = 0;
      return;
    }
    this.#errors += 1;
    const backoff = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(this.#failed, 16));
    this.#failed += 1;
    // Reported once in a series of failures; the log has all of them.
    if (this.#failed === 1 && (failure.code === 'invalid' || failure.code === 'forbidden'))
      this.#options.onRefused?.(failure.message);
    if (failure.code !== 'conflict' && failure.code !== 'already-exists')
      log.warn(
        { code: failure.code, reason: failure.message },
        'the ResourceSlices of this node cannot be written; retrying',
      );
    this.#later(Math.max(backoff, failure.retryAfterMs ?? 0));
  }

  #later(ms: number): void {
    this.#notBefore = this.#options.clock.now() + ms;
    this.publish();
  }

  async #compare(): Promise<KubeFailure | null> {
    const { nodeName, content, clock } = this.#options;
    const features = this.#features;
    const wanted = content(features);
    const observed = this.#watch.values();
    const plan = planSlices(nodeName, wanted, observed);
    const writes = plan.writes.filter(({ slice, replaces }) => !this.#isWritten(slice, replaces));
    if (writes.length === 0 && plan.removals.length === 0) return null;
    if (this.#nodeUid === null) {
      const failure = await this.#readNode();
      if (failure !== null) return failure;
    }
    this.#notBefore = clock.now() + MIN_PERIOD_MS;
    for (const { slice, replaces } of writes) {
      const failure = await this.#write(slice, replaces);
      if (failure !== null) return failure;
      // The pool stays incomplete until it is written with the features that the server stores.
      if (this.#features !== features) return null;
    }
    for (const slice of plan.removals) {
      const failure = await this.#remove(slice);
      if (failure !== null) return failure;
    }
    return null;
  }

  /** True when `observed` is the object that the server stored from the same write. */
  #isWritten(slice: WantedSlice, observed: ObservedSlice | null): boolean {
    const last = this.#written.get(slice.name);
    return (
      last !== undefined &&
      observed !== null &&
      last.resourceVersion === observed.resourceVersion &&
      sameContent(last.sent, slice)
    );
  }

  async #readNode(): Promise<KubeFailure | null> {
    const answer = await this.#options.client.request({ method: 'GET', path: nodePath(this.#options.nodeName) });
    if (!answer.ok) return answer;
    const uid = (answer.body as { readonly metadata?: { readonly uid?: unknown } } | null)?.metadata?.uid;
    this.#nodeUid = typeof uid === 'string' ? uid : null;
    return null;
  }

  async #write(slice: WantedSlice, replaces: ObservedSlice | null): Promise<KubeFailure | null> {
    const { client, nodeName, log } = this.#options;
    const body = sliceObject(slice, { name: nodeName, uid: this.#nodeUid ?? '' }, replaces?.resourceVersion ?? null);
    const answer = await client.request(
      replaces === null
        ? { method: 'POST', path: ALL_RESOURCE_SLICES, body }
        : { method: 'PUT', path: resourceSlicePath(slice.name), body },
    );
    if (!answer.ok) {
      // The node object was created again meanwhile: its UID must be read again.
      if (answer.code === 'invalid') this.#nodeUid = null;
      // Kubernetes 1.34 keeps counters in the slices of the devices.
      if (answer.code === 'invalid' && this.#features.counters && /counter/iu.test(answer.message)) {
        log.warn({ reason: answer.message }, 'the API server refuses counter sets');
        this.#learn({ ...ALL_FEATURES, counters: false });
        return null;
      }
      return answer;
    }
    const stored = readSlice(answer.body, nodeName);
    if (stored === null) return null;
    this.#written.set(slice.name, { sent: slice, resourceVersion: stored.resourceVersion });
    log.info(
      { slice: slice.name, devices: stored.devices.length, generation: slice.generation },
      'ResourceSlice written',
    );
    this.#learn(keptFeatures(slice, stored));
    return null;
  }

  #learn(kept: KeptFeatures): void {
    const { log, onFeatures } = this.#options;
    const features: KeptFeatures = {
      shares: this.#features.shares && kept.shares,
      taints: this.#features.taints && kept.taints,
      counters: this.#features.counters && kept.counters,
    };
    const isSame = (['shares', 'taints', 'counters'] as const).every((name) => features[name] === this.#features[name]);
    if (isSame) return;
    if (this.#features.shares && !features.shares)
      log.warn(
        'consumable capacity is disabled at this API server: claims get whole GPUs (feature gate DRAConsumableCapacity)',
      );
    if (this.#features.taints && !features.taints)
      log.warn(
        'device taints are disabled at this API server: unhealthy GPUs are left out of the ResourceSlice (feature gate DRADeviceTaints)',
      );
    if (this.#features.counters && !features.counters)
      log.warn(
        'shared counters are disabled at this API server: the GPUs of --mig-strategy=dynamic are left out of the ResourceSlices (Kubernetes 1.36, or the feature gate DRAPartitionableDevices)',
      );
    this.#features = features;
    onFeatures?.(features);
    this.publish();
  }

  async #remove(slice: ObservedSlice): Promise<KubeFailure | null> {
    const { client } = this.#options;
    const answer = await client.request({
      method: 'DELETE',
      path: resourceSlicePath(slice.name),
      body: { preconditions: { uid: slice.uid, resourceVersion: slice.resourceVersion } },
    });
    return answer.ok || answer.code === 'not-found' ? null : answer;
  }
}
