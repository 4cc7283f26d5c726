import { claimUsersOf } from './claim-users.js';
import type { NodePod, PodContainer } from './node-pod.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../gpu/resources.js';
import { readPod, type PodContainer as ContainerInPod } from '../../kube/pod.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { wholeQuantity } from '../../manifests/quantity.js';

const MAX_MESSAGE = 2_048;

/** Reads the needed fields of a pod from the API server's JSON; null for any other object. */
export function readNodePod(object: unknown): NodePod | null {
  const pod = readPod(object);
  if (pod.uid === '' || pod.name === '') return null;
  return {
    uid: pod.kubeletUid,
    objectUid: pod.uid,
    namespace: pod.namespace,
    name: pod.name,
    node: pod.node ?? '',
    resourceVersion: pod.resourceVersion,
    phase: pod.phase,
    failure: { reason: pod.reason, message: pod.message.slice(0, MAX_MESSAGE) },
    createdAt: pod.createdAt ?? 0,
    admittedAt: pod.admittedAt,
    deletedAt: pod.deletedAt,
    controller: pod.controller === null ? null : { kind: pod.controller.kind, name: pod.controller.name },
    mirror: pod.isMirror,
    annotations: new Map(Object.entries(pod.annotations).filter(([key]) => isKept(key))),
    quotaGroup: pod.labels[GROUP_LABEL] || null,
    claimUsers: claimUsersOf(object, pod.kubeletUid),
    submitter: pod.containers[0]?.env.SUBMITTER ?? null,
    initContainers: pod.initContainers.map(containerOf),
    containers: pod.containers.map(containerOf),
  };
}

function isKept(key: string): boolean {
  return key.startsWith('tencent.com/') || key === 'clusterName';
}

function containerOf({ name, running, terminated, waiting, env, extended }: ContainerInPod): PodContainer {
  return {
    name,
    cores: amount(extended(CORE_RESOURCE)),
    memoryBlocks: amount(extended(MEMORY_RESOURCE)),
    running,
    terminated,
    waiting: waiting.slice(0, MAX_MESSAGE),
    compat32: env.compat32 === 'true',
  };
}

function amount(quantity: string | number): number {
  return Math.max(0, wholeQuantity(quantity) ?? 0);
}
