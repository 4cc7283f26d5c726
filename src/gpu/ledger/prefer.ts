import { dividedRequest } from '../division.js';
import { allows } from '../gpu-selection.js';
import type { Gpu } from '../gpu.js';
import { place } from '../placement/place.js';
import { roomiest } from '../placement/slot.js';
import { refuse, type RequestRefusal } from '../request.js';
import { MEMORY_BLOCK_BYTES, RESOURCE_NAME } from '../resources.js';
import type { BrokenRule } from './pending.js';
import { pickIds } from './pick-ids.js';
import { questionOf, type PreferenceRequest, type Question } from './question.js';
import type { LedgerState } from './state.js';

export type Preference =
  { readonly ok: true; readonly ids: readonly string[]; readonly gpus: readonly Gpu[] } | RequestRefusal | BrokenRule;

/**
 * Chooses the ids for a container. The state does not change: the kubelet confirms the ids with Allocate, or never
 * calls again.
 */
export function prefer(state: LedgerState, request: PreferenceRequest): Preference {
  const question = questionOf(state, request);
  const chosen = question.ok ? choose(state, question, request.size) : question;
  if (!chosen.ok) return chosen;
  const ids = pickIds(state, request, chosen.gpus);
  if (ids !== null) return { ok: true, ids, gpus: chosen.gpus };
  return refuse(
    'nothing-fits',
    `${RESOURCE_NAME[request.kind]}: ${request.size} asked for, but the kubelet offers ${request.available.length}`,
  );
}

function choose(
  { node }: LedgerState,
  { wanted, selection, free, scopes, lastScopes, tooLarge }: Question,
  size: number,
): { readonly ok: true; readonly gpus: readonly Gpu[] } | RequestRefusal {
  let reason = `no GPU with ${size} free blocks of 256 MiB`;
  for (const scope of scopes) {
    for (const request of wanted) {
      const placed = place(node.topology, free, { ...dividedRequest(request, selection), selection }, scope);
      if (placed.ok) return placed;
      reason = placed.reason;
    }
  }
  const allowed = free.filter(({ gpu }) => allows(selection, gpu));
  for (const among of lastScopes) {
    const gpu = roomiest(allowed, size * MEMORY_BLOCK_BYTES, among);
    if (gpu !== null) return { ok: true, gpus: [gpu] };
  }
  return tooLarge ?? refuse('nothing-fits', reason);
}
