import { readCondition } from './condition.js';
import { list, record, text, texts, time, type JsonRecord } from './json.js';
import { needsOf, readPodRequest, type NeedsOf } from './pod-request.js';
import type { LabelRequirement } from '../manifests/label-selector.js';
import type { Toleration } from '../manifests/taint.js';

/** A pod from the API server's JSON or from a file. A missing field, or a field of the wrong type, counts as absent. */
export interface Pod {
  /** UID of the API object; see `kubeletUid`. */
  readonly uid: string;
  /** The UID that the kubelet uses, which differs for static pods: their objects are mirror pods. */
  readonly kubeletUid: string;
  /** `default` if missing, as in kubectl. */
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The controller that creates it again; null for a pod without a controller. */
  readonly controller: { readonly kind: string; readonly name: string; readonly uid: string } | null;
  /** Whether it is a static pod: a file on the node defines it, and the API server only has a mirror pod. */
  readonly isMirror: boolean;
  /** Null until a node is chosen. */
  readonly node: string | null;
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  /** Whether it succeeded or failed: it uses no resources, though it may still exist. */
  readonly isDone: boolean;
  /** Whether it is being deleted. */
  readonly isLeaving: boolean;
  /** Reason of the pod's phase, mostly set for failed pods. */
  readonly reason: string;
  readonly message: string;
  readonly priority: number;
  /** The nominated node, on which victims are evicted for it; null without one. */
  readonly nominatedNode: string | null;
  /** Name of its pod group in its namespace (`spec.schedulingGroup`, Kubernetes 1.36); empty without one. */
  readonly podGroup: string;
  /** Whether it has scheduling gates. */
  readonly isGated: boolean;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Alternative terms, at least one must match; null if every node matches. */
  readonly nodeTerms: readonly NodeTerm[] | null;
  readonly tolerations: readonly Toleration[];
  /** Milliseconds since 1970; null if it has not happened. */
  readonly createdAt: number | null;
  /** Time at which the kubelet admitted or refused the pod. */
  readonly admittedAt: number | null;
  readonly scheduledAt: number | null;
  /** Time by which it must be removed. */
  readonly deletedAt: number | null;
  /** Time at which its active deadline ends it; null without one, or before it started. */
  readonly deadlineAt: number | null;
  /** Time at which its last container ended. */
  readonly endedAt: number | null;
  /** Why the scheduler found no node; empty if it found one, or gives no reason. */
  readonly unscheduled: string;
  /** In the order of the pod's spec. */
  readonly initContainers: readonly PodContainer[];
  readonly containers: readonly PodContainer[];
  /** Its resource claims, in the order of its specification. */
  readonly claims: readonly PodClaim[];
  readonly needs: NeedsOf;
}

/** A resource claim that a pod names. */
export interface PodClaim {
  readonly name: string;
  /** Name of a claim that pods may share; empty for one from a template. */
  readonly claimName: string;
  /** Name of a ResourceClaimTemplate; empty for a claim that exists independently of the pod. */
  readonly templateName: string;
  /** The claim that was made of the template; empty before. */
  readonly madeName: string;
}

export interface PodContainer {
  readonly name: string;
  /** Whether it is an init container that keeps running beside the others. */
  readonly isSidecar: boolean;
  /** An extended resource as written, 0 without it. Its limit equals its request; either may be missing. */
  readonly extended: (resource: string) => string | number;
  /** Environment variables with a literal value. */
  readonly env: Readonly<Record<string, string>>;
  readonly running: boolean;
  /** Whether it has run, ended, and not started again. */
  readonly terminated: boolean;
  /** The kubelet's reason why it waits; empty if it does not wait or has no reason. */
  readonly waiting: string;
}

/** All requirements must hold. */
export interface NodeTerm {
  readonly labels: readonly LabelRequirement[];
  /** Nodes have only the field `metadata.name`. */
  readonly fields: readonly LabelRequirement[];
}

/** Annotations of a static pod's object: the kubelet's UID of the pod, and the mark of a mirror. */
const CONFIG_HASH_KEY = 'kubernetes.io/config.hash';
export const CONFIG_MIRROR_KEY = 'kubernetes.io/config.mirror';

/** Reads a pod's JSON; no other code knows its shape. UID and name are empty if missing. */
export function readPod(object: unknown): Pod {
  const { metadata: meta, spec: rawSpec, status: rawStatus } = record(object);
  const [metadata, spec, status] = [record(meta), record(rawSpec), record(rawStatus)];
  const annotations = texts(metadata.annotations);
  const uid = text(metadata.uid);
  const isMirror = (annotations[CONFIG_MIRROR_KEY] ?? '') !== '';
  const phase = phaseOf(text(status.phase));
  const isDone = phase === 'Succeeded' || phase === 'Failed';
  const scheduled = readCondition(status.conditions, 'PodScheduled');
  const controller = list(metadata.ownerReferences)
    .map(record)
    .find((owner) => owner.controller === true);
  const { containers, initContainers, priority, resourceClaims } = spec;
  return {
    uid,
    kubeletUid: (isMirror && annotations[CONFIG_HASH_KEY]) || uid,
    namespace: text(metadata.namespace) || 'default',
    name: text(metadata.name),
    resourceVersion: text(metadata.resourceVersion),
    labels: texts(metadata.labels),
    annotations,
    controller:
      controller === undefined
        ? null
        : { kind: text(controller.kind), name: text(controller.name), uid: text(controller.uid) },
    isMirror,
    node: text(spec.nodeName) || null,
    phase,
    isDone,
    isLeaving: (metadata.deletionTimestamp ?? null) !== null,
    reason: text(status.reason),
    message: text(status.message),
    priority: typeof priority === 'number' ? priority : 0,
    nominatedNode: text(status.nominatedNodeName) || null,
    podGroup: text(record(spec.schedulingGroup).podGroupName),
    isGated: list(spec.schedulingGates).length > 0,
    nodeSelector: texts(spec.nodeSelector),
    nodeTerms: nodeTermsOf(spec),
    tolerations: list(spec.tolerations).map((value) => {
      const { key, operator, value: wanted, effect } = record(value);
      return { key: text(key), operator: text(operator), value: text(wanted), effect: text(effect) };
    }),
    createdAt: time(metadata.creationTimestamp),
    admittedAt: time(status.startTime),
    scheduledAt: scheduled?.status === 'True' ? time(scheduled.lastTransitionTime) : null,
    deletedAt: time(metadata.deletionTimestamp),
    deadlineAt: deadlineOf(spec, status),
    endedAt: isDone ? endOf(list(status.containerStatuses)) : null,
    unscheduled: scheduled?.status === 'False' ? text(scheduled.message) : '',
    initContainers: containersOf(list(initContainers), list(status.initContainerStatuses)),
    containers: containersOf(list(containers), list(status.containerStatuses)),
    claims: claimsOf(list(resourceClaims), list(status.resourceClaimStatuses)),
    needs: needsOf(readPodRequest(object)),
  };
}

function phaseOf(phase: string): Pod['phase'] {
  return phase === 'Running' || phase === 'Succeeded' || phase === 'Failed' || phase === 'Unknown' ? phase : 'Pending';
}

function containersOf(specs: readonly unknown[], statuses: readonly unknown[]): PodContainer[] {
  return specs.map((value) => {
    const spec = record(value);
    const name = text(spec.name);
    const { limits, requests } = record(spec.resources);
    const state = record(statuses.map(record).find((entry) => text(entry.name) === name)?.state);
    return {
      name,
      isSidecar: spec.restartPolicy === 'Always',
      extended: (resource) => quantity(record(limits)[resource]) ?? quantity(record(requests)[resource]) ?? 0,
      env: Object.fromEntries(list(spec.env).map((entry) => [text(record(entry).name), text(record(entry).value)])),
      running: isPresent(state.running),
      terminated: isPresent(state.terminated),
      waiting: text(record(state.waiting).message),
    };
  });
}

function claimsOf(specs: readonly unknown[], statuses: readonly unknown[]): readonly PodClaim[] {
  return specs.map((value) => {
    const { name: given, resourceClaimName, resourceClaimTemplateName } = record(value);
    const name = text(given);
    const made = statuses.map(record).find((status) => text(status.name) === name);
    return {
      name,
      claimName: text(resourceClaimName),
      templateName: text(resourceClaimTemplateName),
      madeName: text(made?.resourceClaimName),
    };
  });
}

function deadlineOf({ activeDeadlineSeconds }: JsonRecord, { startTime }: JsonRecord): number | null {
  const startedAt = time(startTime);
  return typeof activeDeadlineSeconds === 'number' && startedAt !== null
    ? startedAt + 1_000 * activeDeadlineSeconds
    : null;
}

function isPresent(state: unknown): boolean {
  return typeof state === 'object' && state !== null;
}

function quantity(value: unknown): string | number | null {
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

function endOf(statuses: readonly unknown[]): number | null {
  const ends = statuses.flatMap((status) => time(record(record(record(status).state).terminated).finishedAt) ?? []);
  return ends.length === 0 ? null : Math.max(...ends);
}

function nodeTermsOf(spec: JsonRecord): NodeTerm[] | null {
  const required = record(record(record(spec.affinity).nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution);
  if (!Array.isArray(required.nodeSelectorTerms)) return null;
  return list(required.nodeSelectorTerms).map((term) => ({
    labels: list(record(term).matchExpressions).map(requirementOf),
    fields: list(record(term).matchFields).map(requirementOf),
  }));
}

function requirementOf(value: unknown): LabelRequirement {
  const { key, operator, values } = record(value);
  return {
    key: text(key),
    operator: text(operator),
    values: list(values).filter((entry): entry is string => typeof entry === 'string'),
  };
}
