import { formatAmount } from '../core/decision.js';
import { refKey } from '../core/workload.js';
import type { Quota } from '../core/quota.js';
import { evaluate, type EvaluationOptions } from '../evaluators/evaluate.js';
import { plainDecision, table } from './report.js';
import type { Format } from './replay.js';

/** What would come of some manifests, one after the other, and why. */
export interface WhatIf {
  readonly text: string;
  /** Manifests that would not be admitted. */
  readonly refused: number;
}

/** Admits manifests to a tree that is there for nothing else, and explains each decision. */
export function whatIf(quota: Quota, manifests: readonly unknown[], format: Format, options: EvaluationOptions): WhatIf {
  const parts: string[] = [];
  let refused = 0;
  for (const manifest of manifests) {
    const evaluation = evaluate(manifest, options);
    if (!evaluation.ok) {
      refused++;
      parts.push(format === 'json' ? `${JSON.stringify({ allowed: false, code: evaluation.code, message: evaluation.reason })}\n` : `REFUSED  ${evaluation.code}: ${evaluation.reason}\n`);
      continue;
    }
    if (evaluation.demand === null) {
      parts.push(format === 'json' ? `${JSON.stringify({ allowed: true, code: 'NotManaged', message: evaluation.reason })}\n` : `allowed  ${evaluation.reason}\n`);
      continue;
    }
    const { demand } = evaluation;
    const { keys, otherTypes, maxReplicas } = quota.explain(demand);
    const decision = quota.admit(demand);
    if (!decision.allowed) refused++;
    const workload = refKey(demand.workload);
    const rows = keys.map(({ group, key, hard, used, requested, room, fits }) => [
      group, key, formatAmount(key, hard), formatAmount(key, used), formatAmount(key.replace(/^cash\//, ''), requested), formatAmount(key, room), fits ? '' : 'no room',
    ]);
    if (format === 'json') {
      const explained = rows.map(([group, key, hard, used, requested, room, fits]) => ({ group, key, hard, used, requested, room, fits: fits === '' }));
      parts.push(`${JSON.stringify({ workload, group: demand.group, ...plainDecision(decision), maxReplicas, otherTypes, keys: explained })}\n`);
      continue;
    }
    const others = Object.entries(otherTypes).map(([family, types]) => `  fits as ${family}-type ${types.join(', ')}\n`);
    parts.push([
      `${decision.allowed ? 'allowed' : 'REFUSED'}  ${workload} in ${demand.group || 'no group'}${decision.allowed ? '' : `: ${decision.message}`}\n`,
      rows.length === 0 ? '' : indented(table([['GROUP', 'KEY', 'HARD', 'USED', 'ASKED', 'ROOM', ''], ...rows])),
      ...others,
    ].join(''));
  }
  return { text: parts.join(''), refused };
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
