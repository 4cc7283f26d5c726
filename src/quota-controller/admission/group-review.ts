import { isDeepStrictEqual } from 'node:util';
import { type QuotaEngine, unchargeable, type Chargeable, type Hard } from '../../quota/internal.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { readGroup, type GroupObject } from '../../kube/quota/group-object.js';
import { nodeLimitProblem } from '../../kube/quota/node-limit.js';
import { GROUPS_PATH, itemPath } from '../../kube/quota/names.js';
import type { DefaultGroups } from '../policy/default-groups.js';
import { ALLOWED, invalid, type Review, type AdmissionResponse } from '../../kube/admission/review.js';
import type { NamespaceAccess } from '../policy/namespace-access.js';
import { CHANGED_MEANWHILE, admissionResponseOf } from './decision-response.js';

export interface GroupReviewOptions {
  readonly engine: QuotaEngine;
  readonly api: KubeApi;
  /** The informer's state of a group; null where it has none. */
  readonly observed: (name: string) => GroupObject | null;
  /** Called after changed limits of a group were reserved. */
  readonly reserved: (group: string) => void;
  /** Takes over the limits of a group whose changed object was stored. */
  readonly settleLimits: (group: string) => Promise<void>;
  /** Whether groups exist in the API server. */
  readonly access: Pick<NamespaceAccess, 'missing'>;
  /** How long increased limits are reserved until the changed object is observed. */
  readonly reservationMs: number;
  /** The keys that something can be charged to. */
  readonly chargeable: () => Chargeable;
  /** Whether every namespace may use a group if no group on its path to the root has a namespaceSelector. */
  readonly isOpenByDefault: boolean;
  /** Which groups pay for objects that name none. */
  readonly defaultGroups: Pick<DefaultGroups, 'problemOf' | 'othersOf'>;
}

/**
 * Reviews groups. A group's increase is charged to its parent before the object is admitted; a decrease is released
 * when the changed or deleted object is observed.
 */
export class GroupReview {
  readonly #engine: QuotaEngine;
  readonly #api: KubeApi;
  readonly #observed: GroupReviewOptions['observed'];
  readonly #access: GroupReviewOptions['access'];
  readonly #reserved: GroupReviewOptions['reserved'];
  readonly #settleLimits: GroupReviewOptions['settleLimits'];
  readonly #reservationMs: number;
  readonly #chargeable: GroupReviewOptions['chargeable'];
  readonly #isOpenByDefault: boolean;
  readonly #defaultGroups: GroupReviewOptions['defaultGroups'];

  constructor(options: GroupReviewOptions) {
    const { engine, api, observed, access, reservationMs, chargeable, isOpenByDefault, defaultGroups } = options;
    this.#reserved = options.reserved;
    this.#settleLimits = options.settleLimits;
    this.#defaultGroups = defaultGroups;
    this.#isOpenByDefault = isOpenByDefault;
    this.#chargeable = chargeable;
    this.#engine = engine;
    this.#api = api;
    this.#observed = observed;
    this.#access = access;
    this.#reservationMs = reservationMs;
  }

  async decide({ operation, object, oldObject, dryRun, user }: Review): Promise<AdmissionResponse> {
    const actor = user.slice(0, 200);
    if (operation === 'DELETE') return this.#delete(readGroup(oldObject));
    if (object === null) return ALLOWED;
    const ofNodes = nodeLimitProblem(readGroup(object).fromNodes, (object.spec?.['hard'] ?? {}) as Hard);
    if (ofNodes !== null) return invalid({ code: 'InvalidNodeLimit', reason: ofNodes });
    const unknown = this.#unknownKey(readGroup(object), oldObject === null ? null : readGroup(oldObject));
    if (unknown !== null) return invalid({ code: 'UnknownKey', reason: unknown });
    const group = readGroup(object);
    const before = oldObject === null ? null : readGroup(oldObject);
    const taken = this.#takenNamespace(group, before);
    if (taken !== null) return invalid({ code: 'NamespaceTaken', reason: taken });
    const response = await (before === null
      ? this.#create(group, dryRun, actor)
      : this.#update(before, group, dryRun, actor));
    return withWarnings(
      response,
      group.defaultFor === null ? [] : this.#defaultGroups.othersOf(group.spec.name, group.defaultFor),
    );
  }

  /** Why the group cannot pay for the unlabelled objects of a namespace that it lists newly; null if it can. */
  #takenNamespace({ spec, terminating, defaultFor }: GroupObject, before: GroupObject | null): string | null {
    if (terminating || defaultFor === null || isDeepStrictEqual(defaultFor, before?.defaultFor)) return null;
    return this.#defaultGroups.problemOf(spec.name, defaultFor);
  }

  /**
   * Why a new key would limit nothing; null if it can. Keys of the parent are always allowed, because a child must
   * limit them.
   */
  #unknownKey({ spec, terminating }: GroupObject, before: GroupObject | null): string | null {
    if (terminating) return null;
    const given = new Set([
      ...Object.keys(before?.spec.hard ?? {}),
      ...(this.#engine.status(spec.parent ?? '')?.hard.keys() ?? []),
    ]);
    for (const key of Object.keys(spec.hard)) {
      const problem = given.has(key) ? null : unchargeable(key, this.#chargeable());
      if (problem !== null) return problem;
    }
    return null;
  }

  async #create(group: GroupObject, dryRun: boolean, actor: string): Promise<AdmissionResponse> {
    const { spec } = group;
    const missing = await this.#access.missing(spec.parent ?? '');
    if (missing !== null) return invalid({ code: 'ParentNotFound', reason: missing });
    if (dryRun) return this.#simulate({ type: 'createGroup', ...spec });
    let created = await this.#engine.execute({ type: 'createGroup', ...spec, actor });
    if (created.code === 'ParentExceeded') {
      await this.#settleLimits(spec.parent ?? '');
      created = await this.#engine.execute({ type: 'createGroup', ...spec, actor });
    }
    if (created.code !== 'AlreadyExists')
      return withWarnings(admissionResponseOf(created), rootWarnings(group, this.#isOpenByDefault));
    const existing = await this.#api.request({ method: 'GET', path: itemPath(GROUPS_PATH, spec.name) });
    if (existing.ok || existing.code !== 'not-found') return admissionResponseOf(created);
    // The ledger has the group, the API server does not: an earlier creation was retried, or failed after its review.
    return admissionResponseOf(await this.#engine.execute({ type: 'updateGroup', ...spec, actor }));
  }

  async #update(before: GroupObject, after: GroupObject, dryRun: boolean, actor: string): Promise<AdmissionResponse> {
    if (after.terminating || JSON.stringify(before.spec) === JSON.stringify(after.spec)) return ALLOWED;
    const wanted = { type: 'updateGroup' as const, ...after.spec, force: after.force, actor };
    let response = await this.#simulate(wanted);
    if (!response.allowed) {
      await this.#settleLimits(after.spec.parent ?? '');
      response = await this.#simulate(wanted);
    }
    if (!response.allowed || dryRun) return response;
    if (!(await this.#isCurrent(before))) return CHANGED_MEANWHILE;
    // Until the changed object is observed, the parent is charged the larger limit of each key, so that no other group
    // can take the difference, and nothing is admitted beyond the smaller one.
    const reserve = { generation: before.generation, ttlMs: this.#reservationMs };
    const reserved = await this.#engine.execute({ ...wanted, reserve });
    if (reserved.allowed) this.#reserved(after.spec.name);
    return reserved.allowed ? response : admissionResponseOf(reserved);
  }

  /** Whether a group equals the one at the API server. A different object comes from an outdated or forged request. */
  async #isCurrent(group: GroupObject): Promise<boolean> {
    const isSame = (live: GroupObject): boolean =>
      live.uid === group.uid && live.generation === group.generation && isDeepStrictEqual(live.spec, group.spec);
    const { name } = group.spec;
    const observed = this.#observed(name);
    if (observed !== null && isSame(observed)) return true;
    const answer = await this.#api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
    if (answer.ok) return isSame(readGroup(answer.body));
    if (answer.code === 'not-found') return false;
    throw new KubeError(`group ${name} cannot be read`, answer);
  }

  async #delete(group: GroupObject): Promise<AdmissionResponse> {
    return this.#simulate({ type: 'deleteGroup', name: group.spec.name, force: group.force });
  }

  /** Simulates a command; on a refusal once more, after reading new changes of the ledger. */
  async #simulate(command: Parameters<QuotaEngine['execute']>[0]): Promise<AdmissionResponse> {
    const first = this.#engine.simulate([{ command }]).decisions[0];
    if (first !== undefined && first.allowed) return admissionResponseOf(first);
    await this.#engine.catchUp();
    const [second] = this.#engine.simulate([{ command }]).decisions;
    // The finalizer of a group that the ledger does not have may be removed.
    if (second === undefined || (command.type === 'deleteGroup' && second.code === 'GroupNotFound')) return ALLOWED;
    return admissionResponseOf(second);
  }
}

/** Warns about a new root that every namespace may use, or none, because that may be unintended. */
function rootWarnings({ spec, namespaceSelector }: GroupObject, isOpenByDefault: boolean): readonly string[] {
  if ((spec.parent ?? '') !== '' || namespaceSelector !== null) return [];
  const what = `group ${spec.name} has no namespaceSelector`;
  if (isOpenByDefault) return [`${what}: workloads of every namespace may be charged to it`];
  return [`${what}: no workload can be charged to it; "namespaceSelector: {}" lets in every namespace`];
}

function withWarnings(response: AdmissionResponse, more: readonly string[]): AdmissionResponse {
  const warnings = [...(response.warnings ?? []), ...more];
  return !response.allowed || warnings.length === 0 ? response : { ...response, warnings };
}
