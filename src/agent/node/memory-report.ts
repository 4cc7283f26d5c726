import type { Clock } from '../../host/clock.js';
import type { NodeCondition, NodeConditionState } from '../api-server/index.js';
import type { MemoryEnforcer } from '../slices/index.js';

/** The type of the node's condition. */
export const MEMORY_CONDITION = 'GPUMemoryLimitsByDriver';

export interface EnforcedGpu {
  readonly index: number;
  readonly enforcer: MemoryEnforcer;
}

export interface MemoryReportOptions {
  readonly condition: Pick<NodeCondition, 'set'>;
  readonly gpus: () => readonly EnforcedGpu[];
  /** Whether another program changes limits of this node's slices again and again. */
  readonly hasDispute: () => boolean;
  readonly clock: Clock;
}

const PERIOD_MS = 5_000;

/** Says in a condition of the node whether the driver keeps the memory limits of all GPUs, or why not. */
export class MemoryReport {
  readonly #options: MemoryReportOptions;
  #told: string | null = null;
  #cancel: () => void = () => undefined;

  constructor(options: MemoryReportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#cancel = this.#options.clock.every(PERIOD_MS, () => this.#look());
    this.#look();
  }

  async stop(): Promise<void> {
    this.#cancel();
  }

  #look(): void {
    const { condition, gpus, hasDispute } = this.#options;
    const state = memoryCondition(gpus(), hasDispute());
    const text = JSON.stringify(state);
    if (this.#told === text) return;
    this.#told = text;
    condition.set(state);
  }
}

/** The condition of a node with these GPUs; null for one whose driver has no memory limits. Pure. */
export function memoryCondition(gpus: readonly EnforcedGpu[], hasDispute: boolean): NodeConditionState | null {
  const reasons = gpus.flatMap(({ index, enforcer }) =>
    enforcer.by === 'library' && enforcer.reason !== null ? [`GPU ${index}: ${enforcer.reason}`] : [],
  );
  const backends = new Set(gpus.flatMap(({ enforcer }) => (enforcer.by === 'driver' ? [enforcer.backend] : [])));
  if (reasons.length > 0) {
    const message = `the control library alone enforces memory limits: ${reasons.join('; ')}`;
    return { status: 'False', reason: 'LibraryEnforces', message };
  }
  if (backends.size === 0) return null;
  if (hasDispute) {
    const message = 'another program changes memory limits of containers with slices; let only one program set them';
    return { status: 'False', reason: 'LimitsDisputed', message };
  }
  return {
    status: 'True',
    reason: 'DriverEnforces',
    message: `the driver enforces memory limits (${[...backends].join(', ')})`,
  };
}
