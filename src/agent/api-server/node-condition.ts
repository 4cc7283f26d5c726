import type { Clock } from '../../host/clock.js';
import { nodePath } from '../../kube/api-path.js';
import { STRATEGIC_MERGE_PATCH, type KubeClient } from '../../kube/client.js';
import { readCondition, type ConditionState } from '../../kube/condition.js';
import { record, text, timestamp } from '../../kube/json.js';
import type { WorkQueue, WorkResult } from '../../kube/work-queue.js';

/** A condition of a node without its type and times. */
export type NodeConditionState = Omit<ConditionState, 'type'>;

export interface NodeConditionOptions {
  readonly client: KubeClient;
  readonly queue: WorkQueue;
  readonly nodeName: string;
  /** The type of the condition. */
  readonly type: string;
  readonly clock: Clock;
}

/** One condition of this node. Those of the kubelet and of other programs are not touched. */
export class NodeCondition {
  readonly #options: NodeConditionOptions;

  constructor(options: NodeConditionOptions) {
    this.#options = options;
  }

  /** Writes the condition if the node has another one; null removes it. */
  set(state: NodeConditionState | null): void {
    const { queue, type } = this.#options;
    queue.put(`condition ${type}`, { attempt: () => this.#write(state) });
  }

  async #write(state: NodeConditionState | null): Promise<WorkResult> {
    const { client, nodeName, type, clock } = this.#options;
    const path = nodePath(nodeName);
    const node = await client.request({ method: 'GET', path });
    if (!node.ok) return node;
    const present = readCondition(record(record(node.body).status).conditions, type);
    if (isPresent(present, state)) return 'done';
    const now = timestamp(clock.now());
    const since = present !== null && present.status === state?.status ? text(present.lastTransitionTime) : now;
    const condition =
      state === null
        ? { $patch: 'delete', type }
        : { ...state, type, lastHeartbeatTime: now, lastTransitionTime: since };
    const answer = await client.request({
      method: 'PATCH',
      path: `${path}/status`,
      body: { status: { conditions: [condition] } },
      contentType: STRATEGIC_MERGE_PATCH,
    });
    return answer.ok ? 'done' : answer;
  }
}

function isPresent(present: ReturnType<typeof readCondition>, state: NodeConditionState | null): boolean {
  if (present === null || state === null) return present === state;
  return present.status === state.status && present.reason === state.reason && present.message === state.message;
}
