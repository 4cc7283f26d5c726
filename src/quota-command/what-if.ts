import { refKey, type Decision, type Demand, type Quota, type Evaluation } from '../quota/index.js';
import { readEntry, type BundleEntry, type BundleReviewer } from './bundle.js';
import { explainedText, plainKeys } from './explained.js';
import { plainDecision } from './report.js';
import type { Format } from './replay.js';

/** Decisions on manifests, with explanations. */
export interface WhatIf {
  readonly text: string;
  /** Number of manifests that would be refused. */
  readonly refused: number;
}

/**
 * Admits the workloads and groups of a bundle one after the other to a scratch copy of the tree, and explains each
 * decision. Objects that no webhook reviews are listed and count as allowed.
 */
export async function whatIf(
  quota: Quota,
  manifests: readonly unknown[],
  format: Format,
  reviewer: BundleReviewer,
): Promise<WhatIf> {
  let [text, refused] = ['', 0];
  for (const manifest of manifests) {
    const answer = explainEntry(quota, await readEntry(manifest, reviewer), format);
    text += answer.text;
    refused += answer.refused;
  }
  return { text, refused };
}

/** Explains the decision on an evaluated object without changing the quota. */
export async function explainDemand(
  quota: Quota,
  evaluation: Evaluation,
  format: Format,
  reviewer: Pick<BundleReviewer, 'refusal'>,
): Promise<WhatIf> {
  const demand = evaluation.ok ? evaluation.demand : null;
  const refused =
    demand === null || demand.group === ''
      ? null
      : await reviewer.refusal(demand.group, demand.workload.namespace ?? '');
  if (demand !== null && refused !== null)
    return refusedWith(refKey(demand.workload), 'NamespaceNotAllowed', refused, format);
  return explainDecision(quota, '', evaluation, format, (wanted) => quota.admit(wanted, { dryRun: true }));
}

function explainEntry(quota: Quota, entry: BundleEntry, format: Format): WhatIf {
  const { name } = entry;
  switch (entry.is) {
    case 'unreviewed':
      return notManaged(name, entry.reason, format);
    case 'unreadable':
      return refusedWith(name, 'InvalidManifest', entry.reason, format);
    case 'refused':
      return refusedWith(name, entry.code, entry.reason, format);
    case 'group':
      return explainGroup(quota, name, entry.group, format);
    case 'workload':
      return explainDecision(quota, name, entry.evaluation, format, (demand) => quota.admit(demand));
    case 'autoscaler': {
      const title = `${name} with ${entry.maxReplicas} replicas`;
      return explainDecision(
        quota,
        title,
        entry.scaled,
        format,
        (demand) => quota.admit(demand, { dryRun: true }),
        title,
      );
    }
  }
}

function explainGroup(quota: Quota, name: string, group: Parameters<Quota['createGroup']>[0], format: Format): WhatIf {
  const decision = quota.groups().includes(group.name) ? quota.updateGroup(group) : quota.createGroup(group);
  const refused = decision.allowed ? 0 : 1;
  return {
    text:
      format === 'json'
        ? `${JSON.stringify({ object: name, group: group.name, ...plainDecision(decision) })}\n`
        : `${decision.allowed ? 'allowed' : 'REFUSED'}  ${name}${decision.allowed ? '' : `: ${decision.message}`}\n`,
    refused,
  };
}

function explainDecision(
  quota: Quota,
  name: string,
  evaluation: Evaluation,
  format: Format,
  decide: (demand: Demand) => Decision,
  title?: string,
): WhatIf {
  if (!evaluation.ok) return refusedWith(name, evaluation.code, evaluation.reason, format);
  if (evaluation.demand === null) return notManaged(name, evaluation.reason, format);
  const { demand } = evaluation;
  const { keys, otherTypes, maxReplicas } = quota.explain(demand);
  const decision = decide(demand);
  const workload = refKey(demand.workload);
  const refused = decision.allowed ? 0 : 1;
  if (format === 'json') {
    const object = title === undefined ? {} : { object: name };
    return {
      text: `${JSON.stringify({ ...object, workload, group: demand.group, ...plainDecision(decision), maxReplicas, otherTypes, keys: plainKeys(keys) })}\n`,
      refused,
    };
  }
  const head = `${decision.allowed ? 'allowed' : 'REFUSED'}  ${title ?? workload} in ${demand.group || 'no group'}${decision.allowed ? '' : `: ${decision.message}`}\n`;
  const warnings = decision.warnings.map(({ reason }) => `  warning: ${reason}\n`).join('');
  return { text: `${head}${warnings}${explainedText({ keys, otherTypes })}`, refused };
}

/** An object that no webhook reviews, or that is not charged itself. */
function notManaged(name: string, message: string, format: Format): WhatIf {
  return {
    text:
      format === 'json'
        ? `${JSON.stringify({ ...(name === '' ? {} : { object: name }), allowed: true, code: 'NotManaged', message })}\n`
        : `unmanaged  ${name === '' ? '' : `${name}: `}${message}\n`,
    refused: 0,
  };
}

function refusedWith(name: string, code: string, message: string, format: Format): WhatIf {
  return {
    text:
      format === 'json'
        ? `${JSON.stringify({ ...(name === '' ? {} : { object: name }), allowed: false, code, message })}\n`
        : `REFUSED  ${name === '' ? '' : `${name}: `}${code}: ${message}\n`,
    refused: 1,
  };
}
