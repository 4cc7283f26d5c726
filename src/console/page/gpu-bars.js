import { h, setWidth } from './dom.js';
import { bytes } from './format.js';

/** One bar for each GPU of a node: a segment for each slice, in the colour of its pod. */
export function gpuBars(rows, node) {
  const slices = new Map();
  for (const pod of rows.podsOn(node.name))
    if (pod.state !== 'refused')
      for (const slice of pod.slices)
        if (slice.gpu !== null) slices.set(slice.gpu, [...(slices.get(slice.gpu) ?? []), { ...slice, pod }]);
  return h(
    'div',
    { class: 'bars' },
    node.gpus.map((gpu) => bar(rows, gpu, node.kinds[gpu.kind], slices.get(gpu.index) ?? [])),
  );
}

function bar(rows, gpu, kind, slices) {
  const track = h('div', {
    class: `track${gpu.problem === undefined ? '' : ' problem'}`,
    title: [
      `GPU ${gpu.index}: ${gpu.allocatedCores} of 100 cores, ${bytes(gpu.allocatedMemoryBytes)} of ${bytes(kind.memoryBytes)} allocated`,
      ...(gpu.byClaims === true ? ['pods get it through resource claims'] : []),
      ...(gpu.problem === undefined ? [] : [gpu.problem]),
      ...slices.map(
        ({ pod, cores, claim }) =>
          `${pod.namespace}/${pod.name}: ${cores} cores${claim === undefined ? '' : `, claim ${claim}`}`,
      ),
    ].join('\n'),
  });
  let shown = 0;
  const sharers = podsByClaim(slices);
  for (const { pod, cores, claim } of slices) {
    const segment = h('span', { class: `segment ${rows.markOf(pod)}` });
    const part = cores / (sharers.get(claimOf(pod, claim))?.size ?? 1);
    setWidth(segment, part);
    shown += part;
    track.append(segment);
  }
  // Slices of namespaces that this reader does not see.
  if (gpu.allocatedCores > shown) {
    const rest = h('span', { class: 'segment other' });
    setWidth(rest, gpu.allocatedCores - shown);
    track.append(rest);
  }
  return track;
}

/** The pods that share a claim: each has its part of what the claim has. */
function podsByClaim(slices) {
  const pods = new Map();
  for (const { pod, claim } of slices)
    if (claim !== undefined) pods.set(claimOf(pod, claim), (pods.get(claimOf(pod, claim)) ?? new Set()).add(pod.uid));
  return pods;
}

function claimOf({ namespace }, claim) {
  return `${namespace}/${claim}`;
}
