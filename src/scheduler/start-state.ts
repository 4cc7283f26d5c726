import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import type { ClusterObserver, ClusterSource } from './cluster-source.js';
import { readPod, type Pod } from '../kube/pod.js';
import { readNode, type Node } from '../kube/node.js';
import { PodViews } from './pod-view.js';
import { StartupError } from '../host/startup-error.js';

/** Objects of the API as `kubectl get -o yaml` or `-o json` writes them: single ones, several documents, lists. */
export async function readObjects(file: string): Promise<{ readonly nodes: Node[]; readonly pods: Pod[] }> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartupError(`${file} cannot be read: ${(error as Error).message}`);
  });
  const documents = parseAllDocuments(text);
  const broken = documents.flatMap((document) => document.errors)[0];
  if (broken !== undefined) throw new StartupError(`${file} is no YAML or JSON: ${broken.message}`);
  const objects = documents.flatMap((document) => flatten(document.toJS()));
  const ofKind = (kind: string): unknown[] => objects.filter((object) => object.kind === kind);
  return { nodes: ofKind('Node').flatMap((object) => readNode(object) ?? []), pods: ofKind('Pod').map(readPod) };
}

function flatten(value: unknown): { kind?: unknown }[] {
  if (typeof value !== 'object' || value === null) return [];
  const { items } = value as { items?: unknown };
  return Array.isArray(items) ? items.flatMap(flatten) : [value];
}

/** Nodes and pods that do not change: for explanations without a cluster. */
export class FixedSource implements ClusterSource {
  readonly silentMs = 0;
  readonly #nodes: readonly Node[];
  readonly #pods: readonly Pod[];

  constructor(nodes: readonly Node[], pods: readonly Pod[]) {
    this.#nodes = nodes;
    this.#pods = pods;
  }

  start(observer: ClusterObserver): void {
    const views = new PodViews();
    this.#nodes.forEach((node) => observer.nodeSeen(node));
    this.#pods.forEach((pod) => observer.podSeen(views.view(pod)));
    observer.synced();
  }

  async stop(): Promise<void> {
    // Nothing runs.
  }
}
