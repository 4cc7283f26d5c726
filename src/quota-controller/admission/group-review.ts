import { isDeepStrictEqual } from 'node:util';
import type { QuotaEngine } from '../../quota/engine.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { readGroup, type GroupObject } from '../group-object.js';
import { GROUPS_PATH, itemPath } from '../names.js';
import { ALLOWED, CHANGED_MEANWHILE, admissionResponseOf, type Review, type AdmissionResponse } from './review.js';

export interface GroupReviewOptions {
  readonly engine: QuotaEngine;
  readonly api: KubeApi;
  /** A group as it was seen; null where it was not. */
  readonly seen: (name: string) => GroupObject | null;
  /** How long limits that grew are reserved until the object is seen. */
  readonly reservationMs: number;
}

/**
 * Decides on groups. What a group takes from its parent is taken before its object is let through; what it gives back
 * is given back when the object is seen to have changed or to be gone.
 */
export class GroupReview {
  readonly #engine: QuotaEngine;
  readonly #api: KubeApi;
  readonly #seen: GroupReviewOptions['seen'];
  readonly #reservationMs: number;

  constructor({ engine, api, seen, reservationMs }: GroupReviewOptions) {
    this.#engine = engine;
    this.#api = api;
    this.#seen = seen;
    this.#reservationMs = reservationMs;
  }

  async decide({ operation, object, oldObject, dryRun, user }: Review): Promise<AdmissionResponse> {
    const actor = user.slice(0, 200);
    if (operation === 'DELETE') return this.#delete(readGroup(oldObject));
    if (object === null) return ALLOWED;
    if (oldObject === null) return this.#create(readGroup(object), dryRun, actor);
    return this.#update(readGroup(oldObject), readGroup(object), dryRun, actor);
  }

  async #create(group: GroupObject, dryRun: boolean, actor: string): Promise<AdmissionResponse> {
    const { spec } = group;
    if (dryRun) return this.#tried({ type: 'createGroup', ...spec });
    const made = await this.#engine.execute({ type: 'createGroup', ...spec, actor });
    if (made.code !== 'AlreadyExists') return withWarnings(admissionResponseOf(made), openRoot(group));
    const there = await this.#api.request({ method: 'GET', path: itemPath(GROUPS_PATH, spec.name) });
    if (there.ok || there.code !== 'not-found') return admissionResponseOf(made);
    // In the ledger and not at the server: the same creation was asked before, or one that came to nothing.
    return admissionResponseOf(await this.#engine.execute({ type: 'updateGroup', ...spec, actor }));
  }

  async #update(before: GroupObject, after: GroupObject, dryRun: boolean, actor: string): Promise<AdmissionResponse> {
    if (after.terminating || JSON.stringify(before.spec) === JSON.stringify(after.spec)) return ALLOWED;
    const wanted = { type: 'updateGroup' as const, ...after.spec, force: after.force, actor };
    const response = await this.#tried(wanted);
    if (!response.allowed || dryRun) return response;
    if (!(await this.#isCurrent(before))) return CHANGED_MEANWHILE;
    // Until the object is seen to be changed, the group has of each key the larger limit: nobody else is given the
    // difference.
    const reserve = { generation: before.generation, ttlMs: this.#reservationMs };
    const reserved = await this.#engine.execute({ ...wanted, reserve });
    return reserved.allowed ? response : admissionResponseOf(reserved);
  }

  /**
   * Whether a group is what the API server holds: a caller that shows another one is not that server, or one that is
   * late.
   */
  async #isCurrent(group: GroupObject): Promise<boolean> {
    const isSame = (live: GroupObject): boolean =>
      live.uid === group.uid && live.generation === group.generation && isDeepStrictEqual(live.spec, group.spec);
    const { name } = group.spec;
    const seen = this.#seen(name);
    if (seen !== null && isSame(seen)) return true;
    const answer = await this.#api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
    if (answer.ok) return isSame(readGroup(answer.body));
    if (answer.code === 'not-found') return false;
    throw new KubeError(`group ${name} cannot be read`, answer);
  }

  async #delete(group: GroupObject): Promise<AdmissionResponse> {
    return this.#tried({ type: 'deleteGroup', name: group.spec.name, force: group.force });
  }

  /** What the engine would answer, on what is known now. */
  async #tried(command: Parameters<QuotaEngine['execute']>[0]): Promise<AdmissionResponse> {
    const once = this.#engine.simulate([{ command }]).decisions[0];
    if (once !== undefined && once.allowed) return admissionResponseOf(once);
    await this.#engine.catchUp();
    const [again] = this.#engine.simulate([{ command }]).decisions;
    // A group that the ledger does not have holds nothing back.
    if (again === undefined || (command.type === 'deleteGroup' && again.code === 'GroupNotFound')) return ALLOWED;
    return admissionResponseOf(again);
  }
}

/** What is said of a new root that every namespace may use: nobody may have meant that. */
function openRoot({ spec, namespaceSelector }: GroupObject): readonly string[] {
  return (spec.parent ?? '') !== '' || namespaceSelector !== null
    ? []
    : [`group ${spec.name} has no namespaceSelector: workloads of every namespace may be charged to it`];
}

function withWarnings(response: AdmissionResponse, more: readonly string[]): AdmissionResponse {
  const warnings = [...(response.warnings ?? []), ...more];
  return !response.allowed || warnings.length === 0 ? response : { ...response, warnings };
}
