import { refKey } from '../core/workload.js';
import type { Decision } from '../core/decision.js';
import type { Demand } from '../core/demand.js';
import type { Quota } from '../core/quota.js';
import { evaluate, type Evaluation, type EvaluationOptions } from '../evaluators/evaluate.js';
import { explainedText, plainKeys } from './explained.js';
import { plainDecision } from './report.js';
import type { Format } from './replay.js';

/** What would come of some manifests, and why. */
export interface WhatIf {
  readonly text: string;
  /** Manifests that would not be admitted. */
  readonly refused: number;
}

/** Admits manifests, one after the other, to a tree that is there for nothing else, and explains each decision. */
export function whatIf(
  quota: Quota,
  manifests: readonly unknown[],
  format: Format,
  options: EvaluationOptions,
): WhatIf {
  const answers = manifests.map((manifest) =>
    answerTo(quota, evaluate(manifest, options), format, (demand) => quota.admit(demand)),
  );
  return {
    text: answers.map(({ text }) => text).join(''),
    refused: answers.reduce((sum, { refused }) => sum + refused, 0),
  };
}

/** What would come of what an object asks for; the quota stays as it is. */
export function explainDemand(quota: Quota, evaluation: Evaluation, format: Format): WhatIf {
  return answerTo(quota, evaluation, format, (demand) => quota.admit(demand, { dryRun: true }));
}

function answerTo(quota: Quota, evaluation: Evaluation, format: Format, decide: (demand: Demand) => Decision): WhatIf {
  if (!evaluation.ok) {
    const { code, reason } = evaluation;
    return {
      text:
        format === 'json'
          ? `${JSON.stringify({ allowed: false, code, message: reason })}\n`
          : `REFUSED  ${code}: ${reason}\n`,
      refused: 1,
    };
  }
  if (evaluation.demand === null) {
    const { reason } = evaluation;
    return {
      text:
        format === 'json'
          ? `${JSON.stringify({ allowed: true, code: 'NotManaged', message: reason })}\n`
          : `allowed  ${reason}\n`,
      refused: 0,
    };
  }
  const { demand } = evaluation;
  const { keys, otherTypes, maxReplicas } = quota.explain(demand);
  const decision = decide(demand);
  const workload = refKey(demand.workload);
  const refused = decision.allowed ? 0 : 1;
  if (format === 'json') {
    return {
      text: `${JSON.stringify({ workload, group: demand.group, ...plainDecision(decision), maxReplicas, otherTypes, keys: plainKeys(keys) })}\n`,
      refused,
    };
  }
  const head = `${decision.allowed ? 'allowed' : 'REFUSED'}  ${workload} in ${demand.group || 'no group'}${decision.allowed ? '' : `: ${decision.message}`}\n`;
  return { text: `${head}${explainedText({ keys, otherTypes })}`, refused };
}
