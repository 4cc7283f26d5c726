export type { CallTimes } from './call-times.js';
export type { Journal, JournalEntry } from './journal.js';
export { NodeRecord } from './node-record.js';
export { openNode } from './open-node.js';
export type { ProcessDocument } from './process-document.js';
export { momentOf } from './use-record.js';
export type { MinuteUse, SliceMinutes, ThrottleReason, UseRecord } from './use-record.js';
export type {
  AllocationSnapshot,
  GpuSnapshot,
  NodeCounts,
  NodeSnapshot,
  NodeView,
  SliceSnapshot,
  SuspensionSnapshot,
  UseMoment,
} from './view.js';
