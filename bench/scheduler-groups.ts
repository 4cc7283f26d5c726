import { whyNoCluster } from '../test/e2e/cluster.js';
import { chosenVersion } from '../test/e2e/kubernetes-version.js';
import { measured, type Bench } from './report.js';
import { WaitingPods } from './scheduler/waiting-pods.js';

const NODES = 40;
const PODS = 305;
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
  const p99: number[] = [];
  try {
    await waiting.start();
    for (const extender of [null, { offer: 'best', isProfiled: false }] as const) {
      const how = extender === null ? 'without the extender' : 'with the extender';
      const alone = await waiting.bindOneByOne(extender, null);
      const beside = await waiting.bindOneByOne(extender, MEMBERS);
      for (const [name, part] of [
        ['p50', 0.5],
        ['p99', 0.99],
      ] as const) {
        const [value, baseline] = [quantile(beside, part), quantile(alone, part)];
        report(measured(`a pod beside a group that cannot start, ${how}, ${name}`, value, 'ms', baseline));
        if (name === 'p99') p99.push(value);
      }
    }
    const [without = NaN, beside = NaN] = p99;
    report(measured('p99 beside the group, with the extender', beside, 'ms', without));
    note(
      `Kubernetes ${chosenVersion().name}, ${NODES} nodes, a group of ${MEMBERS} whole nodes, ${PODS} pods one by one.`,
    );
  } finally {
    await waiting.stop();
  }
};

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? NaN;
}
