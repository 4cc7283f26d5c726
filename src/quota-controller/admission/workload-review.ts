import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Demand } from '../../quota/core/demand.js';
import type { QuotaEngine } from '../../quota/engine.js';
import { apiGroupOf, evaluateAlone, GROUP_LABEL, type Evaluation } from '../../quota/evaluators/evaluate.js';
import { withReplicas } from '../kinds.js';
import { versionOf, type KubeObject } from '../object.js';
import type { NamespaceAccess } from './namespace-access.js';
import { findSubject } from '../subject.js';
import { unknownScale, type WorkloadReader } from '../workload-reader.js';
import {
  ALLOWED,
  CHANGED_MEANWHILE,
  invalid,
  admissionResponseOf,
  type Review,
  type AdmissionResponse,
} from './review.js';

export interface WorkloadReviewOptions {
  readonly engine: QuotaEngine;
  /** Reads what workloads ask for. */
  readonly reader: WorkloadReader;
  /** Which namespaces may charge which groups. */
  readonly access: NamespaceAccess;
  /** Version of an object that was seen, by its uid; null where none was. */
  readonly seenVersion: (uid: string) => number | null;
  /** Told of objects that this process admitted: it is the first to hear that they came. */
  readonly admitted: (uid: string) => void;
  /** How long what was admitted is held until the object is seen. */
  readonly reservationMs: number;
}

/** What is known of a request that wants room. */
interface Asked extends Pick<Review, 'dryRun' | 'user'> {
  /** Of the object before the change; 0 for none. */
  readonly version: number;
  /** Whether that object is what the API server holds. */
  readonly isCurrent: () => Promise<boolean>;
}

/**
 * Decides on workloads: whether what an object is to be still fits into its group. What grows is reserved before the
 * object is let through; what it gives back is given back when it is seen to be there. Nothing is written for dry
 * runs, nor for what does not grow.
 */
export class WorkloadReview {
  readonly #options: WorkloadReviewOptions;

  constructor(options: WorkloadReviewOptions) {
    this.#options = options;
  }

  /** A workload comes or changes. */
  async decide({ object, oldObject, dryRun, user }: Review): Promise<AdmissionResponse> {
    if (object === null) return ALLOWED;
    const wanted = await this.#options.reader.evaluate(object);
    if (!wanted.ok) return oldObject !== null && mayPassUnread(oldObject, object) ? ALLOWED : invalid(wanted);
    if (wanted.demand === null) return ALLOWED;
    const before = oldObject === null ? null : await this.#options.reader.evaluate(oldObject);
    const isCurrent = async (): Promise<boolean> => oldObject === null || (await this.#isCurrent(oldObject));
    const asked = { version: versionOf(oldObject), isCurrent, dryRun, user };
    return this.#admit(wanted.demand, before?.ok === true ? before.demand : null, asked);
  }

  /** A workload without a group comes to a namespace whose workloads have to name one. */
  async unlabelled({ object }: Review): Promise<AdmissionResponse> {
    const message = object === null ? null : await this.#options.reader.missingGroup(object);
    return message === null ? ALLOWED : forbidden(message);
  }

  /** A workload is scaled through its subresource, which says nothing but how many and whose. */
  async scale(review: Review): Promise<AdmissionResponse> {
    const replicas = replicasOf(review.object);
    const { apiGroup, resource, namespace, name } = review;
    const found =
      replicas === null
        ? null
        : await this.#options.reader.live(apiGroup, (kind) => kind.resource === resource, namespace, name);
    if (replicas === null || found === null) return ALLOWED;
    const { kind, object: target } = found;
    const scaled = withReplicas(target, kind, replicas);
    const before = await this.#options.reader.evaluate(target);
    if (scaled === null) return before.ok && isUnmanaged(before) ? ALLOWED : forbidden(unknownScale(kind));
    const wanted = await this.#options.reader.evaluate(scaled);
    if (!wanted.ok) return replicas <= (replicasOf(review.oldObject) ?? -1) ? ALLOWED : invalid(wanted);
    if (isUnmanaged(wanted) || wanted.demand === null) return ALLOWED;
    // The target was read from the API server itself.
    const asked = { version: versionOf(target), isCurrent: async () => true, dryRun: review.dryRun, user: review.user };
    return this.#admit(wanted.demand, before.ok ? before.demand : null, asked);
  }

  /**
   * A pod is to hold more while it runs. Its workload is charged by its template: beyond that only a pod of its own may
   * grow.
   */
  async resize(review: Review): Promise<AdmissionResponse> {
    const { object, oldObject } = review;
    if (object === null || oldObject === null) return ALLOWED;
    const { reader } = this.#options;
    const [alone, before] = [evaluateAlone(object, reader.options()), await reader.evaluate(oldObject)];
    if (before.ok && before.demand !== null && before.demand.group !== '') return this.decide(review);
    if (alone.owner === null) return ALLOWED;
    const pods = reader.kindOf('', ({ resource }) => resource === 'pods');
    const { namespace, name } = review;
    const found = pods === null ? null : await findSubject(reader, pods, namespace, name, null);
    const charged = found?.ok === true && found.subject.evaluation.ok ? found.subject.evaluation.demand : null;
    if (found?.ok !== true || charged === null || charged.group === '') return ALLOWED;
    const had = evaluateAlone(oldObject, reader.options()).evaluation;
    const { evaluation: has } = alone;
    if (had.ok && has.ok && had.demand !== null && has.demand !== null && !asksForMore(had.demand, has.demand))
      return ALLOWED;
    return forbidden(
      `${found.subject.owners.at(-1) ?? 'its workload'} is charged to group ${charged.group} by its template: change the resources there`,
    );
  }

  /** A CronJob comes or changes: its Jobs are charged, so they get its group and types. */
  async inherit({ object }: Review): Promise<AdmissionResponse> {
    const { groupLabel = GROUP_LABEL } = this.#options.reader.options();
    const labels = Object.entries(object?.metadata?.labels ?? {}).filter(
      ([name]) => name === groupLabel || name.startsWith(`${groupLabel}/`),
    );
    const { metadata } = (object?.spec?.['jobTemplate'] ?? {}) as {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
    };
    const missing = labels.filter(([name, value]) => metadata?.labels?.[name] !== value);
    if (missing.length === 0) return ALLOWED;
    const path = '/spec/jobTemplate/metadata';
    return {
      allowed: true,
      patch: [
        ...(metadata === undefined ? [{ op: 'add', path, value: {} }] : []),
        { op: 'add', path: `${path}/labels`, value: { ...metadata?.labels, ...Object.fromEntries(labels) } },
      ],
    };
  }

  /** An autoscaler is to be allowed as many replicas as fit. Charges nothing: they are charged when it scales. */
  async autoscaler({ object, namespace }: Review): Promise<AdmissionResponse> {
    const { scaleTargetRef: ref, maxReplicas } = (object?.spec ?? {}) as {
      readonly scaleTargetRef?: { apiVersion?: string; kind?: string; name?: string };
      readonly maxReplicas?: unknown;
    };
    if (ref?.kind === undefined || ref.name === undefined || typeof maxReplicas !== 'number') return ALLOWED;
    const apiGroup = apiGroupOf(ref.apiVersion ?? '');
    const found = await this.#options.reader.live(
      apiGroup,
      (kind) => kind.evaluator.kind === ref.kind,
      namespace,
      ref.name,
    );
    if (found === null) return ALLOWED;
    const scaled = withReplicas(found.object, found.kind, maxReplicas);
    const wanted = await this.#options.reader.evaluate(scaled ?? found.object);
    if (!wanted.ok || isUnmanaged(wanted) || wanted.demand === null) return ALLOWED;
    if (scaled === null) return forbidden(unknownScale(found.kind));
    return admissionResponseOf(await this.#options.engine.admit(wanted.demand, { dryRun: true }));
  }

  async #admit(
    demand: Demand,
    before: Demand | null,
    { version, isCurrent, dryRun, user }: Asked,
  ): Promise<AdmissionResponse> {
    const { engine, reservationMs } = this.#options;
    // What does not grow is covered by what the object before it was charged.
    if (before !== null && !grows(before, demand)) return ALLOWED;
    if (demand.group === '') return admissionResponseOf(await engine.admit(demand, { dryRun: true }));
    const refused = await this.#options.access.refusal(demand.group, demand.workload.namespace ?? '');
    if (refused !== null) return forbidden(`NamespaceNotAllowed: ${refused}`);
    const uid = demand.workload.uid ?? '';
    if (dryRun) return admissionResponseOf(await engine.admit(demand, { dryRun: true }));
    if (!(await isCurrent())) return CHANGED_MEANWHILE;
    const decision = await engine.execute({
      type: 'reserve',
      ...demand,
      workload: { ...demand.workload, version },
      ttlMs: reservationMs,
      operation: operationOf(demand, version),
      actor: user.slice(0, 200),
    });
    if (decision.allowed) this.#options.admitted(uid);
    return admissionResponseOf(decision);
  }

  /**
   * Whether an object is what the API server holds: a caller that shows another one is not that server, or one that is
   * late.
   */
  async #isCurrent(object: KubeObject): Promise<boolean> {
    const { namespace = '', name = '', uid = '', generation } = object.metadata ?? {};
    if (this.#options.seenVersion(uid) === versionOf(object)) return true;
    const apiGroup = apiGroupOf(object.apiVersion ?? '');
    const found = await this.#options.reader.live(
      apiGroup,
      ({ evaluator }) => evaluator.kind === object.kind,
      namespace,
      name,
    );
    const live = found?.object ?? null;
    if (live?.metadata?.uid !== uid) return false;
    // The status may change meanwhile. Kinds without generations have no other measure than the version.
    const isCounted = generation !== undefined && live.metadata.generation !== undefined;
    return isCounted ? generation === live.metadata.generation : versionOf(object) === versionOf(live);
  }
}

/**
 * Whether a change of an object that cannot be read is let through: one that cannot make it ask for more. It is being
 * deleted, or nothing but its metadata changed, or only its replicas, and these fell; the label stays as it is.
 */
function mayPassUnread(before: KubeObject, after: KubeObject): boolean {
  if (after.metadata?.deletionTimestamp !== undefined) return true;
  if (!isDeepStrictEqual(before.metadata?.labels ?? {}, after.metadata?.labels ?? {})) return false;
  const [had, has] = [before.spec?.['replicas'], after.spec?.['replicas']];
  const isSameBeside = isDeepStrictEqual({ ...before.spec, replicas: 0 }, { ...after.spec, replicas: 0 });
  return isSameBeside && (had === has || (typeof had === 'number' && typeof has === 'number' && has <= had));
}

function isUnmanaged(evaluation: Evaluation): boolean {
  return evaluation.ok && (evaluation.demand === null || evaluation.demand.group === '');
}

function forbidden(message: string): AdmissionResponse {
  return { allowed: false, code: 403, reason: 'Forbidden', message };
}

/** The same object on the same version asking for the same is one operation, however often it is asked. */
function operationOf(demand: Demand, version: number): string {
  const {
    workload: { uid, namespace, name, kind },
  } = demand;
  return `${uid ?? ''}@${version}:${createHash('sha256')
    .update(plain([kind, namespace, name, contentOf(demand)]))
    .digest('hex')
    .slice(0, 24)}`;
}

/** False where a demand asks for no more than the one before: the same, or fewer of the same pods. */
function grows(before: Demand, after: Demand): boolean {
  const counts = (demand: Demand): readonly number[] => demand.podSets.map(({ count }) => count);
  const without = (demand: Demand): string =>
    plain(contentOf({ ...demand, podSets: demand.podSets.map((podSet) => ({ ...podSet, count: 0 })) }));
  if (before.workload.uid !== after.workload.uid || without(before) !== without(after)) return true;
  const had = counts(before);
  return counts(after).some((count, index) => count > (had[index] ?? 0));
}

/** Whether a pod asks for more of some resource. */
function asksForMore(before: Demand, after: Demand): boolean {
  return (['requests', 'limits'] as const).some((side) => {
    const had = before.podSets[0]?.[side] ?? {};
    return Object.entries(after.podSets[0]?.[side] ?? {}).some(
      ([resource, amount]) => BigInt(amount) > BigInt(had[resource] ?? 0),
    );
  });
}

function contentOf({ group, types, podSets, objects }: Demand): unknown {
  return [group, types, podSets, objects];
}

function plain(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner));
}

function replicasOf(scale: KubeObject | null): number | null {
  if (scale === null) return null;
  const replicas = scale.spec?.['replicas'] ?? 0;
  return typeof replicas === 'number' ? replicas : null;
}
