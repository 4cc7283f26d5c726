import type { NodeKube } from '../api-server/index.js';
import type { NodeCounts } from './view.js';
import type { NodeRecord } from './node-record.js';
import type { Dra } from '../claims/index.js';
import type { Nri } from '../nri/index.js';
import type { Vgpu } from '../slices/index.js';

/** The counters of the parts of the agent since its start. */
export function nodeCounts(
  record: NodeRecord,
  vgpu: Vgpu,
  apiServer: NodeKube | null,
  nri: Nri | null,
  dra: Dra | null,
): NodeCounts {
  const { raised, evictions } = vgpu.auditCounts();
  const sum = (values: Iterable<number> | undefined): number =>
    [...(values ?? [])].reduce((total, value) => total + value, 0);
  const kube = apiServer?.counts;
  const errors = new Map([
    ['kubelet-call', record.failedCalls],
    ['driver-look', sum(vgpu.observeGpus().map(({ failedSamples }) => failedSamples))],
    ['api-watch', sum(kube?.watch.failures.values())],
    ['api-write', sum(kube?.writes.dropped.values())],
    ['event-write', sum(kube?.events.dropped.values()) + (kube?.events.suppressed ?? 0)],
    ['nri-connection', nri?.plugin.losses ?? 0],
  ]);
  return {
    refusals: record.refusals,
    errors,
    findings: new Map(Object.entries(raised)),
    evictions,
    nri: nri === null ? null : { connected: nri.plugin.runtime !== null, corrected: nri.corrected() },
    dra:
      dra === null
        ? null
        : {
            registered: dra.plugin.registered,
            overlaps: record.overlaps,
            publishErrors: dra.publisher.errors,
            features: new Map(Object.entries(dra.publisher.features)),
          },
  };
}
