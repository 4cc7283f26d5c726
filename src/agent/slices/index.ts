export type { AuditPolicy } from './audit/findings.js';
export { GpuEnforcement, type MemoryEnforcement, type MemoryEnforcer } from './driver-memory/gpu-enforcement.js';
export type {
  DeviceObservation,
  GpuObservation,
  SliceObservation,
  SuspensionObservation,
  UseObservation,
} from './observation.js';
export { MPS_CONTROL, openSlices } from './open-slices.js';
export { podEvictor, podNotices } from './pod-events.js';
export { SliceDirectories } from './slice-directory.js';
export type { UsageCounters } from './usage/usage-counters.js';
export type { Vgpu } from './vgpu.js';
