import type { Clock } from '../host/clock.js';
import type { AgentPod } from '../kube/agent-pods.js';
import type { AgentReader } from '../kube/agent-reader.js';
import { record } from '../kube/json.js';
import type { ClusterModel } from './cluster-model.js';
import { useOf } from './node-use.js';

export interface ClusterUseOptions {
  readonly reader: Pick<AgentReader, 'read'>;
  readonly model: Pick<ClusterModel, 'nodeNames' | 'agentOf' | 'setUse'>;
  /** Whether somebody looks: else no agent is asked. */
  readonly isWatched: () => boolean;
  readonly clock: Clock;
}

const TICK_MS = 1_000;
/** A node is asked again after this time at the earliest. */
const PERIOD_MS = 15_000;
/** Agents that are asked at once; the API server forwards each request. */
const AT_ONCE = 8;

/** Asks the agents for the use of their GPUs, one after the other, while somebody looks at the console. */
export class ClusterUse {
  readonly #options: ClusterUseOptions;
  /** By node: when it was asked last. */
  readonly #askedMs = new Map<string, number>();
  #running = 0;
  #cancel: () => void = () => undefined;

  constructor(options: ClusterUseOptions) {
    this.#options = options;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(TICK_MS, () => this.#tick());
  }

  stop(): void {
    this.#cancel();
  }

  #tick(): void {
    const { model, isWatched, clock } = this.#options;
    if (!isWatched()) return;
    const now = clock.now();
    const names = model.nodeNames();
    for (const name of this.#askedMs.keys()) if (!names.includes(name)) this.#askedMs.delete(name);
    const due = names
      .filter((name) => now - (this.#askedMs.get(name) ?? 0) >= PERIOD_MS)
      .sort((a, b) => (this.#askedMs.get(a) ?? 0) - (this.#askedMs.get(b) ?? 0));
    for (const name of due.slice(0, AT_ONCE - this.#running)) void this.#ask(name, now);
  }

  async #ask(name: string, now: number): Promise<void> {
    const { model, reader } = this.#options;
    this.#askedMs.set(name, now);
    const agent: AgentPod | null = model.agentOf(name);
    if (agent === null) return model.setUse(name, null);
    this.#running += 1;
    const answer = await reader.read(agent, '/api/node');
    this.#running -= 1;
    model.setUse(name, answer.ok ? useOf(record(answer.body)) : null);
  }
}
