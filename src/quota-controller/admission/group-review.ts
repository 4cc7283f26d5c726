import type { Hard } from '../../quota/core/group-spec.js';
import { readQuantity, type Quantity } from '../../quota/core/quantity.js';
import type { QuotaEngine } from '../../quota/engine.js';
import type { KubeApi } from '../../kube/client.js';
import { readGroup, type GroupObject } from '../group-object.js';
import { GROUPS_PATH, itemPath } from '../names.js';
import { ALLOWED, admissionResponseOf, type Review, type AdmissionResponse } from './review.js';

export interface GroupReviewOptions {
  readonly engine: QuotaEngine;
  readonly api: KubeApi;
}

/**
 * Decides on groups. What a group takes from its parent is taken before its object is let through; what it gives back is given back
 * when the object is seen to have changed or to be gone.
 */
export class GroupReview {
  readonly #engine: QuotaEngine;
  readonly #api: KubeApi;

  constructor({ engine, api }: GroupReviewOptions) {
    this.#engine = engine;
    this.#api = api;
  }

  async decide({ operation, object, oldObject, dryRun, user }: Review): Promise<AdmissionResponse> {
    const actor = user.slice(0, 200);
    if (operation === 'DELETE') return this.#delete(readGroup(oldObject));
    if (object === null) return ALLOWED;
    if (oldObject === null) return this.#create(readGroup(object), dryRun, actor);
    return this.#update(readGroup(oldObject), readGroup(object), dryRun, actor);
  }

  async #create({ spec }: GroupObject, dryRun: boolean, actor: string): Promise<AdmissionResponse> {
    if (dryRun) return this.#tried({ type: 'createGroup', ...spec });
    const made = await this.#engine.execute({ type: 'createGroup', ...spec, actor });
    if (made.code !== 'AlreadyExists') return admissionResponseOf(made);
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
    // Until the object is seen to be changed, the group has of each key the more of both.
    const most = await this.#engine.execute({ ...wanted, hard: mostOf(before.spec.hard, after.spec.hard) });
    return most.allowed ? response : admissionResponseOf(most);
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

/** Key by key the larger of two limits; a key of one of them is kept. Quantities that can not be read are the newer ones, to be refused. */
export function mostOf(before: Hard, after: Hard): Hard {
  const most: Record<string, Quantity> = { ...before, ...after };
  for (const [key, quantity] of Object.entries(before)) {
    const [old, next] = [readQuantity(key, quantity, 'down'), readQuantity(key, most[key] as Quantity, 'down')];
    if (old.ok && next.ok && old.amount > next.amount) most[key] = quantity;
  }
  return most;
}
