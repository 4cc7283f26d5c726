import { labelProblem } from '../../kube/label.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { nodePath } from '../../kube/api-path.js';
import { MERGE_PATCH, type KubeClient } from '../../kube/client.js';
import type { WorkQueue, WorkResult } from '../../kube/work-queue.js';

export interface NodeLabelsOptions {
  readonly client: KubeClient;
  readonly queue: WorkQueue;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** A removed label is written again after this time. A write that changes nothing costs the server almost nothing. */
const REASSERT_MS = 600_000;

/** The agent's labels and annotations of this node. Others are not touched; removed ones are written again. */
export class NodeLabels {
  readonly #options: NodeLabelsOptions;
  #labels: Readonly<Record<string, string | null>> = {};
  #annotations: Readonly<Record<string, string | null>> = {};
  #kubeletVersion: string | null = null;
  #cancel: () => void = () => undefined;

  constructor(options: NodeLabelsOptions) {
    this.#options = options;
  }

  /** Version of the node's kubelet (`v1.31.2`), which is in every answer to a write; null before the first answer. */
  get kubeletVersion(): string | null {
    return this.#kubeletVersion;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(REASSERT_MS, () => this.#write());
    this.#write();
  }

  stop(): void {
    this.#cancel();
  }

  /** Adds labels to be maintained; null removes one. A label that Kubernetes would refuse is skipped and logged. */
  label(labels: ReadonlyMap<string, string | null>): void {
    const valid = [...labels].filter(([key, value]) => {
      const problem = labelProblem(key, value ?? '');
      if (problem !== null)
        this.#options.log.warn({ key, value, problem }, 'a node label is not valid and was left out');
      return problem === null;
    });
    this.#labels = { ...this.#labels, ...Object.fromEntries(valid) };
    this.#write();
  }

  annotate(annotations: ReadonlyMap<string, string | null>): void {
    this.#annotations = { ...this.#annotations, ...Object.fromEntries(annotations) };
    this.#write();
  }

  #write(): void {
    if (Object.keys(this.#labels).length + Object.keys(this.#annotations).length === 0) return;
    const { client, queue, nodeName } = this.#options;
    queue.put('node', {
      attempt: async (): Promise<WorkResult> => {
        // Read at the time of the write, so that it includes everything that was added meanwhile.
        const body = { metadata: { labels: this.#labels, annotations: this.#annotations } };
        const answer = await client.request({
          method: 'PATCH',
          path: nodePath(nodeName),
          body,
          contentType: MERGE_PATCH,
        });
        if (!answer.ok) return answer;
        this.#kubeletVersion = kubeletVersionIn(answer.body) ?? this.#kubeletVersion;
        return 'done';
      },
    });
  }
}

function kubeletVersionIn(node: unknown): string | null {
  const version = (node as { status?: { nodeInfo?: { kubeletVersion?: unknown } } } | null)?.status?.nodeInfo
    ?.kubeletVersion;
  return typeof version === 'string' ? version : null;
}
