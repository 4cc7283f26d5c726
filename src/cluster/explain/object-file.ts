import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import { fileReason } from '../../host/file-reason.js';
import { record } from '../../kube/json.js';
import { readPod, type Pod } from '../../kube/pod.js';
import { readNode, type Node } from '../../kube/node.js';
import { StartupError } from '../../host/startup-error.js';
import { knownPods, type KnownPod } from './cluster-state.js';

/** A pod as a workload would create it, or as the file has it. */
export interface PodOfFile {
  readonly pod: Pod;
  /** Kind of the workload; null for a pod. */
  readonly workload: string | null;
}

/** Reads API objects in the form of `kubectl get -o yaml` or `-o json`: single ones, several documents, lists. */
export async function readObjects(file: string): Promise<{
  readonly nodes: Node[];
  readonly pods: KnownPod[];
  /** Pods, and one pod for each workload. */
  readonly wanted: PodOfFile[];
}> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartupError(`${file} cannot be read: ${fileReason(error)}`);
  });
  const documents = parseAllDocuments(text);
  const broken = documents.flatMap((document) => document.errors)[0];
  if (broken !== undefined) throw new StartupError(`${file} is not valid YAML or JSON: ${broken.message}`);
  const objects = documents.flatMap((document) => flatten(document.toJS()));
  const ofKind = (kind: string): unknown[] => objects.filter((object) => object.kind === kind);
  return {
    nodes: ofKind('Node').flatMap((object) => readNode(object) ?? []),
    pods: ofKind('Pod').map(readPod).map(knownPods()),
    wanted: objects.flatMap((object) => podOf(object) ?? []),
  };
}

/** Kinds whose pods come from `spec.template`. */
const WITH_TEMPLATE: ReadonlySet<unknown> = new Set([
  'Deployment',
  'ReplicaSet',
  'StatefulSet',
  'ReplicationController',
  'Job',
]);

/** A pod, or one as a workload would create it; null for an object that creates no pods. */
export function podOf(object: { readonly kind?: unknown }): PodOfFile | null {
  const { kind, spec, metadata } = object as { kind?: unknown; spec?: unknown; metadata?: unknown };
  if (kind === 'Pod') return { pod: readPod(object), workload: null };
  const ofWorkload = kind === 'CronJob' ? record(record(spec).jobTemplate).spec : spec;
  if (typeof kind !== 'string' || (kind !== 'CronJob' && !WITH_TEMPLATE.has(kind))) return null;
  const template = record(record(ofWorkload).template);
  const { name, namespace } = record(metadata);
  const pod = { ...template, metadata: { ...record(template.metadata), name, namespace } };
  return { pod: readPod(pod), workload: kind };
}

function flatten(value: unknown): { kind?: unknown }[] {
  if (typeof value !== 'object' || value === null) return [];
  const { items } = value as { items?: unknown };
  return Array.isArray(items) ? items.flatMap(flatten) : [value];
}
