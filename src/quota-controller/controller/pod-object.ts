import type { Resources } from '../../quota/core/demand.js';
import { DEFAULT_CATALOG, type CardCatalog } from '../../quota/evaluators/gpu-resources.js';
import { ManifestReader } from '../../quota/evaluators/manifest.js';
import { podNeeds } from '../../quota/evaluators/pod-template.js';
import type { KubeObject } from '../object.js';

/** What is kept of a pod. */
export interface PodObject {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Uid of its controller; its own where it has none. */
  readonly ownerUid: string;
  /** When it was scheduled, milliseconds; null before. */
  readonly startedAt: number | null;
  /** When its last container ended, of a pod that is done; null of one that holds what it asked for. */
  readonly endedAt: number | null;
  /** What it asks for; of a type that its workload declares. */
  readonly needs: (gpuType: string) => { readonly requests: Resources; readonly limits: Resources } | null;
}

interface PodStatus {
  readonly phase?: string;
  readonly startTime?: string;
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly lastTransitionTime?: string;
  }[];
  readonly containerStatuses?: readonly {
    readonly state?: { readonly terminated?: { readonly finishedAt?: string } };
  }[];
}

/** Reads a pod. */
export function readPodObject(object: unknown, catalog: CardCatalog = DEFAULT_CATALOG): PodObject | null {
  const { metadata, spec, status } = object as KubeObject;
  if (metadata?.uid === undefined) return null;
  const { uid, namespace = '', name = '' } = metadata;
  const { phase, startTime, conditions, containerStatuses } = (status ?? {}) as PodStatus;
  const scheduled = conditions?.find(({ type }) => type === 'PodScheduled');
  const isBound = spec?.['nodeName'] !== undefined;
  const startedAt =
    scheduled?.status === 'True'
      ? timeOf(scheduled.lastTransitionTime)
      : isBound
        ? (timeOf(startTime) ?? timeOf(metadata.creationTimestamp))
        : null;
  const ends = (containerStatuses ?? []).flatMap(({ state }) => timeOf(state?.terminated?.finishedAt) ?? []);
  const isDone = phase === 'Succeeded' || phase === 'Failed';
  const { containers, initContainers, overhead, resources } = spec ?? {};
  return {
    uid,
    namespace,
    name,
    ownerUid: metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? uid,
    startedAt,
    endedAt: isDone
      ? ends.length === 0
        ? (timeOf(metadata.deletionTimestamp) ?? startedAt)
        : Math.max(...ends)
      : null,
    needs: (gpuType) => {
      const needs = podNeeds(
        new ManifestReader(),
        { containers, initContainers, overhead, resources },
        'spec',
        gpuType,
        catalog,
      );
      return needs.ok ? { requests: needs.requests, limits: needs.limits } : null;
    },
  };
}

function timeOf(text: string | undefined): number | null {
  const time = text === undefined ? NaN : Date.parse(text);
  return Number.isFinite(time) ? time : null;
}
