import type { Clock } from '../host/clock.js';
import type { Allocator, AgentPods } from './allocator/index.js';
import type { Notices, PodEvidence } from './allocator/ports.js';
import type { Patience, Dra } from './claims/index.js';
import type { DevicePlugin } from './device-plugin/index.js';
import type { Diagnosis } from './doctor/index.js';
import type { Driver } from './gpus/index.js';
import type { Nri } from './nri/index.js';
import type { ContainerKnowledge, ControlGroups } from './runtimes/index.js';
import type { Evictor, SliceNotices } from './slices/ports.js';
import type { Vgpu } from './slices/index.js';

/** Objects that a test or the demo may replace. */
export interface AgentSeams {
  readonly driver?: Driver;
  readonly clock?: Clock;
  readonly graceMs?: number;
  readonly pods?: AgentPods;
  readonly notices?: Notices;
  readonly containers?: ContainerKnowledge;
  readonly groups?: ControlGroups;
  readonly evidence?: PodEvidence;
  readonly sliceNotices?: SliceNotices;
  readonly evictor?: Evictor;
  /** Time limits of the preparation of claims. */
  readonly claimPatience?: Partial<Patience>;
  /** Directory that describes CPUs and NUMA nodes, usually /sys. */
  readonly systemDirectory?: string;
  /** Checks the node for readers of the agent; only the program itself can start one. */
  readonly doctor?: () => Promise<readonly Diagnosis[]>;
}

/** The running agent. */
export interface Agent {
  readonly allocator: Allocator;
  readonly plugin: DevicePlugin;
  readonly pods: AgentPods;
  readonly vgpu: Vgpu;
  /** Null if the device plugin provides all GPUs. */
  readonly dra: Dra | null;
  /** Null without `--nri`. */
  readonly nri: Nri | null;
  readonly httpPort: () => number;
  /** Null if probes have no separate port. */
  readonly probePort: () => number | null;
  start(): Promise<void>;
  /** Stops all parts in reverse order and removes the agent's sockets. */
  stop(): Promise<void>;
}
