import { whyNoCluster } from '../test/e2e/cluster.js';
import { chosenVersion } from '../test/e2e/kubernetes-version.js';
import { measured, type Bench } from './report.js';
import { WaitingPods } from './scheduler/waiting-pods.js';

const NODES = 40;
const PODS = 308;
/** Each figure has so many samples: every third pod, so what else the machine does meanwhile is in all of them. */
const SAMPLES = 3;
/** More whole nodes than there are. */
const MEMBERS = 45;

/**
 * How long pods wait for their binding beside a pod group that can never start: a real kube-scheduler with pod groups
 * tries it again and again. Pods of a part of a GPU come one after another, with the extender and without it (the
 * baseline of each figure is the same without the group). While the scheduler tries the group it tries no other pod,
 * also without the extender; the last figure is what the extender adds to that.
 *
 *     npm run bench -- scheduler-groups
 *
 * It needs root and a built Kubernetes 1.37 (`npm run kubernetes -- build 1.37`).
 */
export const run: Bench = async ({ report, note }) => {
  const reason = whyNoCluster(chosenVersion);
  if (reason !== null || !chosenVersion().atLeast(37)) {
    note(`skipped: ${reason ?? 'pod groups need Kubernetes 1.37'}.`);
    return;
  }
  const waiting = new WaitingPods(chosenVersion(), { nodes: NODES, pods: PODS, hasOwnCore: false, hasGroups: true });
  try {
    await waiting.start();
    const ways = [
      ['without the extender', null],
      ['with the extender', { offer: 'best', isProfiled: false }],
    ] as const;
    const p99 = new Map<string, readonly number[]>();
    for (const [how, extender] of ways) {
      const alone = await waiting.bindOneByOne(extender, null);
      const beside = await waiting.bindOneByOne(extender, MEMBERS);
      for (const [name, part] of [
        ['p50', 0.5],
        ['p99', 0.99],
      ] as const) {
        const [values, baselines] = [quantiles(beside, part), quantiles(alone, part)];
        for (const [sample, value] of values.entries())
          report(
            measured(`a pod beside a group that cannot start, ${how}, ${name}`, value, 'ms', baselines[sample] ?? NaN),
          );
        if (name === 'p99') p99.set(how, values);
      }
    }
    const without = p99.get('without the extender') ?? [];
    for (const [sample, value] of (p99.get('with the extender') ?? []).entries())
      report(measured('p99 beside the group, with the extender', value, 'ms', without[sample] ?? NaN));
    note(
      `Kubernetes ${chosenVersion().name}, ${NODES} nodes, a group of ${MEMBERS} whole nodes, ${PODS} pods one by one.`,
    );
  } finally {
    await waiting.stop();
  }
};

/** A quantile of each sample. */
function quantiles(values: readonly number[], part: number): number[] {
  return Array.from({ length: SAMPLES }, (_, sample) => {
    const sorted = values.filter((_value, at) => at % SAMPLES === sample).toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? NaN;
  });
}
