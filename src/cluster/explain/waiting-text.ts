import type { ContainerGpus } from '../../gpu/pods/pod-placement.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../gpu/resources.js';
import { needsGpu } from '../placement/demand.js';
import type { NodeExplanation } from './node-explanation.js';
import { asksForGpus, type GangFit, type NearestFit, type WaitingAnswer } from './why-waiting.js';

/** Why a pod waits: a sentence for each fact, then the nodes. `workload` is the kind that creates the pod. */
export function waitingText(answer: WaitingAnswer, workload: string | null, nowMs: number): string {
  const { pod, foreign, nodes, nearest, gang } = answer;
  const subject = `${workload === null ? 'pod' : `a pod of ${workload}`} ${pod.namespace}/${pod.name}`;
  if (!asksForGpus(answer)) return `${subject}: ${noGpuText(foreign)}`;
  const fits = nodes.filter((row) => row.fits).length;
  const asked = [...pod.demand.init, ...pod.demand.containers].length;
  return [
    `${subject}: ${asked} ${asked === 1 ? 'container needs' : 'containers need'} a GPU, ${fits} of ${nodes.length} nodes fit`,
    ...(gang === null ? [] : [gangText(gang)]),
    ...(nearest === null ? [] : [nearestText(nearest, nowMs)]),
    ...nodeLines(nodes),
  ].join('\n');
}

/** What a pod that asks for none of our resources asks for, and how to give it a share. */
export function noGpuText(foreign: readonly string[]): string {
  const ours = `${CORE_RESOURCE} and ${MEMORY_RESOURCE}`;
  return foreign.length === 0
    ? `asks for no GPU, so GPUs do not hold it back; to give it a share, request ${ours}, or use a resource claim`
    : `asks for ${foreign.join(', ')}, which gpu-manager does not serve; gpu-manager convert FILE writes the request as ${ours}`;
}

/** The same as values for JSON. */
export function waitingDocument({ pod, foreign, nodes, nearest, gang }: WaitingAnswer): object {
  return { namespace: pod.namespace, name: pod.name, asksForGpus: needsGpu(pod.demand), foreign, nearest, gang, nodes };
}

export function gangText({ name, minimum, placed, waiting, fitTogether }: GangFit): string {
  const needed = minimum === null ? 'they start together' : `it needs ${minimum} together`;
  return `pod group ${name}: ${placed} of ${placed + waiting} pods have a node, ${needed}; ${fitTogether} of the ${waiting} waiting fit at the same time`;
}

/** The nearest fit: which pods must end, when they do, and whether the scheduler may evict them. */
function nearestText({ node, pods, endsAtMs, mayPreempt }: NearestFit, nowMs: number): string {
  const named = pods.slice(0, MOST_NAMED).map(({ namespace, name }) => `${namespace}/${name}`);
  const more = pods.length - named.length;
  const who = `${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`;
  const known = pods.slice(0, MOST_NAMED).filter((pod) => pod.endsAtMs !== null);
  const ends = known.map((pod) => `${pod.name} by ${endText(pod.endsAtMs ?? 0, nowMs)}`);
  const when =
    endsAtMs !== null
      ? `by ${endText(endsAtMs, nowMs)}`
      : known.length === 0
        ? 'no end of them is known'
        : `${ends.join(', ')}; the other ends are not known`;
  const eviction = mayPreempt ? '; their priority is lower, so the scheduler may evict them' : '';
  return `nearest fit: node ${node}, when ${who} ${pods.length === 1 ? 'ends' : 'end'} (${when}${eviction})`;
}

/** More pods are only counted. */
const MOST_NAMED = 4;

function endText(ms: number, nowMs: number): string {
  const left = ms - nowMs;
  return `${new Date(ms).toISOString()}${left <= 0 ? ', which is over' : `, in ${Math.ceil(left / 60_000)} min`}`;
}

function nodeLines(nodes: readonly NodeExplanation[]): readonly string[] {
  const cells = nodes.map(({ node, fits, score, gpus, reason }) => [
    ...[node, fits ? 'yes' : 'no', fits ? String(score) : '', gpuText(gpus), reason],
  ]);
  const all = [['NODE', 'FITS', 'SCORE', 'GPUS', 'WHY'], ...cells];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function gpuText(gpus: readonly ContainerGpus[]): string {
  return gpus.map(({ container, indexes }) => `container ${container}: GPU ${indexes.join(',')}`).join('; ');
}
