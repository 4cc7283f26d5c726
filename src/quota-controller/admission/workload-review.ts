import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  type Decision,
  type Demand,
  type QuotaEngine,
  apiGroupOf,
  evaluateAlone,
  refKey,
  type Evaluation,
} from '../../quota/internal.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { withReplicas } from '../workloads/kinds.js';
import { versionOf, type KubeObject } from '../../kube/object.js';
import type { WaitingWorkloads } from '../give-back/waiting-workloads.js';
import type { NamespaceAccess } from '../policy/namespace-access.js';
import { findSubject } from '../workloads/subject.js';
import { unknownScale, type WorkloadReader } from '../workloads/workload-reader.js';
import { ALLOWED, invalid, type Review, type AdmissionResponse } from '../../kube/admission/review.js';
import { CHANGED_MEANWHILE, admissionResponseOf } from './decision-response.js';

export interface WorkloadReviewOptions {
  readonly engine: QuotaEngine;
  /** Evaluates workloads. */
  readonly reader: WorkloadReader;
  /** Which namespaces may charge which groups. */
  readonly access: Pick<NamespaceAccess, 'missing' | 'refusal'>;
  /** The informer's version of an object, by uid; null where it has none. */
  readonly observedVersion: (uid: string) => number | null;
  /** Ends what is charged for an earlier object of the same name, and charges what that left; `uid` is the new one. */
  readonly endEarlier: (key: string, uid: string) => Promise<void>;
  /** Takes over the limits of a group whose changed object was stored. */
  readonly settleLimits: (group: string) => Promise<void>;
  /** A demand together with the pods that run below its object and that it does not cover. */
  readonly withRunning: (demand: Demand) => Demand;
  /** Called with the uid of each admitted object: this process reconciles it first. */
  readonly admitted: (uid: string) => void;
  /** The workloads that wait for quota; null without an arbitrator. */
  readonly waiting: Pick<WaitingWorkloads, 'keptFrom' | 'refused' | 'admitted'> | null;
  /** How long an admission is reserved until the object is observed. */
  readonly reservationMs: number;
}

/** Context of an admission request. */
interface AdmissionContext extends Pick<Review, 'dryRun' | 'user'> {
  /** Version of the object before the change; 0 for a creation. */
  readonly version: number;
  /** Whether a repeated request has the same name: one with a generated name does not. */
  readonly isNamed: boolean;
  /** Whether the object before the change equals the one at the API server. */
  readonly isCurrent: () => Promise<boolean>;
  /** Priority of its pods. */
  readonly priorityOf: () => Promise<number>;
}

/**
 * Reviews workloads: whether the changed object still fits into its group. An increase is reserved before the object is
 * admitted; a decrease is released when the object is observed. Dry runs and changes without an increase write nothing.
 */
export class WorkloadReview {
  readonly #options: WorkloadReviewOptions;

  constructor(options: WorkloadReviewOptions) {
    this.#options = options;
  }

  /** Reviews the creation or change of a workload. */
  async decide({ object, oldObject, dryRun, user }: Review): Promise<AdmissionResponse> {
    if (object === null) return ALLOWED;
    const wanted = await this.#options.reader.evaluate(object);
    if (!wanted.ok) return oldObject !== null && isSafeUnevaluated(oldObject, object) ? ALLOWED : invalid(wanted);
    if (wanted.demand === null) return ALLOWED;
    const before = oldObject === null ? null : await this.#options.reader.evaluate(oldObject);
    const isCurrent = async (): Promise<boolean> => oldObject === null || (await this.#isCurrent(oldObject));
    const isNamed = oldObject !== null || object.metadata?.generateName === undefined;
    const priorityOf = (): Promise<number> => this.#options.reader.priorityOf(object);
    const context = { version: versionOf(oldObject), isNamed, isCurrent, priorityOf, dryRun, user };
    const response = await this.#admit(wanted.demand, before?.ok === true ? before.demand : null, context);
    return response.code === 403 && this.#runsAlready(oldObject, object) ? ALLOWED : response;
  }

  /**
   * Whether an object asks for nothing that it did not have: its owner covered it, and releases it. It runs, and is
   * charged when it is observed; a refusal would only keep it from being released.
   */
  #runsAlready(oldObject: KubeObject | null, object: KubeObject): boolean {
    const aloneOf = (each: KubeObject | null): Demand | null => {
      const alone = each === null ? null : evaluateAlone(each, this.#options.reader.options()).evaluation;
      return alone?.ok === true ? alone.demand : null;
    };
    const [had, has] = [aloneOf(oldObject), aloneOf(object)];
    return had !== null && has !== null && !grows(had, has);
  }

  /** Reviews a workload without a group in a namespace that requires one. */
  async unlabelled({ object }: Review): Promise<AdmissionResponse> {
    const message = object === null ? null : await this.#options.reader.missingGroup(object);
    return message === null ? ALLOWED : forbidden(message);
  }

  /** Reviews the scale subresource, which has only the replicas and the name of the workload. */
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
    const context = {
      version: versionOf(target),
      isNamed: true,
      isCurrent: async () => true,
      priorityOf: () => this.#options.reader.priorityOf(target),
      dryRun: review.dryRun,
      user: review.user,
    };
    return this.#admit(wanted.demand, before.ok ? before.demand : null, context);
  }

  /**
   * Reviews the in-place resize of a pod, and of its share of a GPU by annotations. Only a pod that is charged itself
   * may grow: otherwise its workload is charged by the pod template.
   */
  async resize(review: Review): Promise<AdmissionResponse> {
    const { object, oldObject } = review;
    if (object === null || oldObject === null) return ALLOWED;
    const [after, earlier] = [object, oldObject].map(({ spec, metadata }) => [spec, metadata?.annotations ?? {}]);
    if (isDeepStrictEqual(after, earlier)) return ALLOWED;
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
      `${found.subject.owners.at(-1) ?? 'its workload'} is charged to group ${charged.group} by its pod template: change the resources in that template`,
    );
  }

  /** Adds a CronJob's group and types to its job template, because its Jobs are charged. */
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

  /** Reviews the maximum of an autoscaler. Nothing is charged until the workload is scaled. */
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
    asked: Demand,
    before: Demand | null,
    { version, isNamed, isCurrent, priorityOf, dryRun, user }: AdmissionContext,
  ): Promise<AdmissionResponse> {
    const { engine, reservationMs, waiting } = this.#options;
    // A demand that does not grow is covered by the charge of the previous object.
    if (before !== null && !grows(before, asked)) return ALLOWED;
    const { uid = '' } = asked.workload;
    if (before === null) await this.#options.endEarlier(refKey(asked.workload), uid);
    const demand = this.#options.withRunning(asked);
    if (demand.group === '') return admissionResponseOf(await engine.admit(demand, { dryRun: true }));
    const missing = await this.#options.access.missing(demand.group);
    if (missing !== null) return forbidden(`GroupNotFound: ${missing}`);
    const refused = await this.#options.access.refusal(demand.group, demand.workload.namespace ?? '');
    if (refused !== null) return forbidden(`NamespaceNotAllowed: ${refused}`);
    if (dryRun) return admissionResponseOf(await engine.admit(demand, { dryRun: true }));
    if (!(await isCurrent())) return CHANGED_MEANWHILE;
    const kept = (await waiting?.keptFrom(demand)) ?? null;
    if (kept !== null) {
      if (isNamed) waiting?.refused(demand, priorityOf);
      return forbidden(kept);
    }
    const reserve = (): Promise<Decision> =>
      engine.execute({
        type: 'reserve',
        ...demand,
        workload: { ...demand.workload, version },
        ttlMs: reservationMs,
        operation: operationOf(demand, version),
        actor: user.slice(0, 200),
      });
    let decision = await reserve();
    // A raised limit counts once its object was stored, which the watch may not have shown yet.
    if (!decision.allowed && (engine.status(demand.group)?.limitsReservedUntil ?? null) !== null) {
      await this.#options.settleLimits(demand.group);
      decision = await reserve();
    }
    if (decision.allowed) {
      this.#options.admitted(uid);
      waiting?.admitted(demand);
    } else if (decision.code === 'QuotaExceeded' && isNamed) waiting?.refused(demand, priorityOf);
    return admissionResponseOf(decision);
  }

  /**
   * Whether an object equals the one at the API server. A different object comes from an outdated or forged request.
   */
  async #isCurrent(object: KubeObject): Promise<boolean> {
    const { namespace = '', name = '', uid = '', generation } = object.metadata ?? {};
    if (this.#options.observedVersion(uid) === versionOf(object)) return true;
    const apiGroup = apiGroupOf(object.apiVersion ?? '');
    const found = await this.#options.reader.live(
      apiGroup,
      ({ evaluator }) => evaluator.kind === object.kind,
      namespace,
      name,
    );
    const live = found?.object ?? null;
    if (live?.metadata?.uid !== uid) return false;
    // Status updates change the resourceVersion but not the generation. Kinds without generations are compared by
    // version.
    const isCounted = generation !== undefined && live.metadata.generation !== undefined;
    return isCounted ? generation === live.metadata.generation : versionOf(object) === versionOf(live);
  }
}

/**
 * Whether to admit a change of an object that cannot be evaluated. It must not increase requests: the object is being
 * deleted, or only metadata changed, or only replicas were reduced; the group label must stay.
 */
function isSafeUnevaluated(before: KubeObject, after: KubeObject): boolean {
  if (after.metadata?.deletionTimestamp !== undefined) return true;
  if (!isDeepStrictEqual(before.metadata?.labels ?? {}, after.metadata?.labels ?? {})) return false;
  const [had, has] = [before.spec?.['replicas'], after.spec?.['replicas']];
  const isMore = had !== has && !(typeof had === 'number' && typeof has === 'number' && has <= had);
  return !isMore && isDeepStrictEqual({ ...before.spec, replicas: 0 }, { ...after.spec, replicas: 0 });
}

function isUnmanaged(evaluation: Evaluation): boolean {
  return evaluation.ok && (evaluation.demand === null || evaluation.demand.group === '');
}

function forbidden(message: string): AdmissionResponse {
  return { allowed: false, code: 403, reason: 'Forbidden', message };
}

/** Names the operation by workload, version and demand, so that a repeated review charges once. */
function operationOf(demand: Demand, version: number): string {
  const {
    workload: { uid, namespace, name, kind },
  } = demand;
  return `${uid ?? ''}@${version}:${createHash('sha256')
    .update(plain([kind, namespace, name, contentOf(demand)]))
    .digest('hex')
    .slice(0, 24)}`;
}

/** False if a demand requests the same as the previous demand, or fewer of the same pods. */
function grows(before: Demand, after: Demand): boolean {
  const counts = (demand: Demand): readonly number[] => demand.podSets.map(({ count }) => count);
  const without = (demand: Demand): string =>
    plain(contentOf({ ...demand, podSets: demand.podSets.map((podSet) => ({ ...podSet, count: 0 })) }));
  if (before.workload.uid !== after.workload.uid || without(before) !== without(after)) return true;
  const had = counts(before);
  return counts(after).some((count, index) => count > (had[index] ?? 0));
}

/** Whether a pod requests more of any resource. */
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
