import type { Log } from '../../../host/log.js';
import { LIMIT_ANNOTATIONS, type SuspendRequest } from '../../../kube/limit-annotations.js';
import { valueFor } from '../../../manifests/container-value.js';
import type { PodLimitAnnotations } from '../ports.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { SuspendNotes } from './suspend-notes.js';
import { Stopped, type Suspended, type Suspender } from './suspender.js';
import type { Suspensions } from './suspensions.js';

export interface PodRequestsOptions {
  readonly slices: Slices;
  readonly suspensions: Suspensions;
  readonly suspender: Pick<Suspender, 'suspend' | 'resume'>;
  readonly limitAnnotations: PodLimitAnnotations;
  readonly usersOf: ProcessOwners['usersOf'];
  readonly notes: SuspendNotes;
  readonly log: Log;
}

/** What the annotation says that was removed. */
const NO_REQUEST = '';

/**
 * Suspends and resumes containers as the annotation `tencent.com/vcuda-suspend` of their pods says. Each value is
 * carried out once: a container that a call resumed stays resumed until its pod asks again.
 */
export class PodRequests {
  readonly #options: PodRequestsOptions;
  readonly #active = new Set<string>();
  #unsubscribe: () => void = () => undefined;

  constructor(options: PodRequestsOptions) {
    this.#options = options;
  }

  start(): void {
    const { limitAnnotations, slices, usersOf } = this.#options;
    this.#unsubscribe = limitAnnotations.onAnnotations((podUid) => {
      for (const slice of slices.started.values())
        if (usersOf(slice.spec).some((user) => user.podUid === podUid)) this.reconsider(slice);
    });
    for (const slice of slices.started.values()) this.reconsider(slice);
  }

  stop(): void {
    this.#unsubscribe();
  }

  /** The container starts: what its pod asked for an earlier one is done. */
  async begin(slice: Slice): Promise<void> {
    const request = this.#requestOf(slice);
    if (request !== null && request !== NO_REQUEST) await this.#options.suspensions.serve(slice.id, request);
  }

  /** Carries out a new request of the pod. */
  reconsider(slice: Slice): void {
    const { suspensions, log } = this.#options;
    const request = this.#requestOf(slice);
    if (request === null || this.#active.has(slice.id) || request === (suspensions.servedOf(slice.id) ?? NO_REQUEST))
      return;
    this.#active.add(slice.id);
    void this.#carryOut(slice, request)
      .then(
        () => true,
        (error: unknown) => {
          if (error instanceof Stopped) return false;
          log.error({ err: error, allocation: slice.id }, 'the request of a pod could not be carried out');
          return false;
        },
      )
      .then((done) => {
        this.#active.delete(slice.id);
        // The pod may request something else by now.
        if (done && this.#options.slices.started.get(slice.id) === slice) this.reconsider(slice);
      });
  }

  /** The last value of those that share the slice; null while its pods are unknown. */
  #requestOf(slice: Slice): string | null {
    const { usersOf, limitAnnotations } = this.#options;
    const requests = usersOf(slice.spec).flatMap(({ podUid, container }) => {
      const annotations = limitAnnotations.annotations(podUid);
      const whole = annotations?.get(LIMIT_ANNOTATIONS.suspend.key);
      return annotations === null
        ? []
        : [whole === undefined ? NO_REQUEST : (valueFor(whole, container) ?? NO_REQUEST)];
    });
    return requests.findLast((request) => request !== NO_REQUEST) ?? requests.at(-1) ?? null;
  }

  async #carryOut(slice: Slice, text: string): Promise<void> {
    const { suspensions, notes } = this.#options;
    const { key, parse, expected } = LIMIT_ANNOTATIONS.suspend;
    const request = text === NO_REQUEST ? null : parse(text);
    if (text !== NO_REQUEST && request === null) {
      const reason = `${key}: ${JSON.stringify(text.slice(0, 64))} is not ${expected}`;
      notes.answer(slice, { ok: false, code: 'impossible', reason });
    } else {
      const done = await this.#do(slice, request);
      if (done?.ok === false) notes.answer(slice, done);
    }
    await suspensions.serve(slice.id, text);
  }

  /** Null: there is nothing to do. */
  async #do(slice: Slice, request: SuspendRequest | null): Promise<Suspended | null> {
    const { suspensions, suspender } = this.#options;
    const present = suspensions.of(slice.id);
    if (request === 'suspended' || request === 'held') {
      const isThere = present?.step === 'suspended' && (present.held || request !== 'held');
      return isThere ? null : suspender.suspend(slice.id, 'pod', request === 'held');
    }
    // Without the annotation, only what it held is resumed.
    const resumes = present !== null && (request === 'running' || (present.by === 'pod' && present.held));
    return resumes ? suspender.resume(slice.id) : null;
  }
}
