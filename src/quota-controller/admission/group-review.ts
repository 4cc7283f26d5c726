import { isDeepStrictEqual } from 'node:util';
import type { QuotaEngine } from '../../quota/engine.js';
import { unchargeable, type Chargeable } from '../../quota/evaluators/chargeable-key.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { readGroup, type GroupObject } from '../group-object.js';
import { GROUPS_PATH, itemPath } from '../names.js';
import {
  ALLOWED,
  CHANGED_MEANWHILE,
  admissionResponseOf,
  invalid,
  type Review,
  type AdmissionResponse,
} from './review.js';

export interface GroupReviewOptions {
  readonly engine: QuotaEngine;
  readonly api: KubeApi;
  /** A group as it was seen; null where it was not. */
  readonly seen: (name: string) => GroupObject | null;
  /** How long limits that grew are reserved until the object is seen. */
  readonly reservationMs: number;
  /** What there is to be charged. */
  readonly chargeable: () => Chargeable;
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
  readonly #chargeable: GroupReviewOptions['chargeable'];

  constructor({ engine, api, seen, reservationMs, chargeable }: GroupReviewOptions) {
    this.#chargeable = chargeable;
    this.#engine = engine;
    this.#api = api;
    this.#seen = seen;
    this.#reservationMs = reservationMs;
  }

  async decide({ operation, object, oldObject, dryRun, user }: Review): Promise<AdmissionResponse> {
    const actor = user.slice(0, 200);
    if (operation === 'DELETE') return this.#delete(readGroup(oldObject));
    if (object === null) return ALLOWED;
    const pointless = this.#pointless(readGroup(object), oldObject === null ? null : readGroup(oldObject));
    if (pointless !== null) return invalid({ ok: false, code: 'UnknownKey', reason: pointless });
    if (oldObject === null) return this.#create(readGroup(object), dryRun, actor);
    return this.#update(readGroup(oldObject), readGroup(object), dryRun, actor);
  }

  /** Why a new key would limit nothing, or null. Keys of the parent have to be there, whatever they are. */
  #pointless({ spec, terminating }: GroupObject, before: GroupObject | null): string | null {
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
