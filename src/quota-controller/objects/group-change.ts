import { MERGE_PATCH, type KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import { formatAmount } from '../../manifests/quantity.js';
import { type GroupGrant, type GroupLoan, type GroupSpec, type Hard, Quota } from '../../quota/index.js';
import { GROUPS_PATH, itemPath } from '../../kube/quota/names.js';
import { readGroup } from '../../kube/quota/group-object.js';

/** Result of a change of a group's object, which the quota webhook decides. */
export type Changed = { readonly ok: true } | { readonly ok: false; readonly reason: string };

interface Read {
  readonly spec: GroupSpec;
  readonly resourceVersion: string;
}

/** Maximum number of attempts on conflicts with other writers. */
const ATTEMPTS = 5;
/** Maximum wait until the ledger has released the quota of the group that gives it. */
const RELEASE_TIMEOUT_MS = 30_000;
const POLL_MS = 500;

/** Adds a grant to the spec of a group. */
export async function addGrant(api: KubeApi, group: string, grant: GroupGrant): Promise<Changed> {
  return change(api, group, ({ grants = [] }) =>
    grants.some(({ name }) => name === grant.name)
      ? `group ${group} already has a grant named ${grant.name}: edit it with kubectl edit bizrq/${group}, or choose another name`
      : { grants: [...grants, grant] },
  );
}

/** Adds a loan to the spec of the lending group. */
export async function addLoan(api: KubeApi, group: string, loan: GroupLoan): Promise<Changed> {
  return change(api, group, ({ loans = [] }) =>
    loans.some(({ name }) => name === loan.name)
      ? `group ${group} already has a loan named ${loan.name}: edit it with kubectl edit bizrq/${group}, or choose another name`
      : { loans: [...loans, loan] },
  );
}

/**
 * Moves quota from one group to its sibling: lowers the first, then raises the second. If the second change is refused,
 * the first is undone.
 */
export async function moveQuota(api: KubeApi, clock: Clock, from: string, to: string, amounts: Hard): Promise<Changed> {
  const [giver, taker] = [await read(api, from), await read(api, to)];
  // The engine checks the arithmetic; the webhook checks usage.
  const simulated = simulateTransfer(giver.spec, taker.spec, amounts);
  if (!simulated.ok) return simulated;
  const lowered = await change(api, from, () => ({ hard: simulated.from }));
  if (!lowered.ok) return lowered;
  const deadline = clock.now() + RELEASE_TIMEOUT_MS;
  let raised = await change(api, to, () => ({ hard: simulated.to }));
  while (!raised.ok && /ParentExceeded/.test(raised.reason) && clock.now() < deadline) {
    await wait(clock, POLL_MS);
    raised = await change(api, to, () => ({ hard: simulated.to }));
  }
  if (raised.ok) return raised;
  const undone = await change(api, from, () => ({ hard: giver.spec.hard }));
  return undone.ok
    ? raised
    : { ok: false, reason: `${raised.reason}; ${from} was lowered and could not be raised again: ${undone.reason}` };
}

function simulateTransfer(
  giver: GroupSpec,
  taker: GroupSpec,
  amounts: Hard,
): { readonly ok: true; readonly from: Hard; readonly to: Hard } | Extract<Changed, { ok: false }> {
  if (giver.parent !== taker.parent) return { ok: false, reason: `${giver.name} and ${taker.name} are not siblings` };
  const quota = new Quota();
  for (const { name, hard } of [giver, taker]) {
    const created = quota.createGroup({ name, hard });
    if (!created.allowed) return { ok: false, reason: created.message };
  }
  const decision = quota.transfer({ from: giver.name, to: taker.name, amounts });
  if (!decision.allowed) return { ok: false, reason: decision.message };
  const hardOf = ({ name }: GroupSpec): Hard => {
    const after = quota.status(name)?.hard;
    return Object.fromEntries(Object.keys(amounts).map((key) => [key, formatAmount(key, after?.get(key) ?? 0n)]));
  };
  return { ok: true, from: hardOf(giver), to: hardOf(taker) };
}

/** Changes a group's object. `edit` returns the changed fields of the spec, or the reason of a refusal. */
async function change(api: KubeApi, group: string, edit: (spec: GroupSpec) => object | string): Promise<Changed> {
  for (let attempt = 1; ; attempt++) {
    const { spec, resourceVersion } = await read(api, group);
    const edited = edit(spec);
    if (typeof edited === 'string') return { ok: false, reason: edited };
    const body = { metadata: { resourceVersion }, spec: edited };
    const path = itemPath(GROUPS_PATH, group);
    const answer = await api.request({ method: 'PATCH', path, body, contentType: MERGE_PATCH });
    if (answer.ok) return { ok: true };
    if (answer.code !== 'conflict' || attempt === ATTEMPTS) return { ok: false, reason: answer.message };
  }
}

async function read(api: KubeApi, name: string): Promise<Read> {
  const answer = await api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
  if (!answer.ok) throw new KubeError(`group ${name} cannot be read`, answer);
  const { spec, resourceVersion } = readGroup(answer.body);
  return { spec, resourceVersion };
}
