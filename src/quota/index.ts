export * as arbitrator from './arbitrator/index.js';
export type { Amounts, BudgetStatus, Condition, GroupStatus } from './core/status.js';
export type { Change } from './core/change.js';
export type { Charge } from './core/charges.js';
export type { Command } from './core/command.js';
export { ShapeError } from './core/command-shape.js';
export { formatAmount, type Decision, type Hints, type Violation, type Warning } from './core/decision.js';
export type { GroupLoan } from './core/declared-loan.js';
export type { GroupGrant } from './core/declared-grant.js';
export type { Demand, PodSet, Resources } from './core/demand.js';
export type { QuotaEvent } from './core/event.js';
export type { ExplainedKey, Explanation } from './core/explain.js';
export type { GrantSpec } from './core/grants.js';
export type { GroupSpec, Hard } from './core/group-spec.js';
export type { GroupUpdate } from './core/group-update.js';
export type { Mode } from './core/group.js';
export { cashTarget, keyProblem, unitOfKey, type Key } from './core/key.js';
export type { LoanSpec } from './core/loans.js';
export type { TransferSpec } from './core/transfer.js';
export type { Observation } from './core/observe.js';
export { DEFAULT_POLICY, type Policy } from './core/policy.js';
export { formatQuantity, parseQuantity, readQuantity, wholeQuantity, type Quantity } from './core/quantity.js';
export { Quota, type Clock, type Timed } from './core/quota.js';
export type { Simulation } from './core/simulation.js';
export type { Drift, DriftReport } from './core/refresh.js';
export type { Code, Refusal } from './core/refusal.js';
export { DEFAULT_FAMILIES, type TypeFamily, type Types } from './core/type-family.js';
export type { WorkloadRef } from './core/workload.js';
export { QuotaEngine, createEngine, type EngineOptions } from './engine.js';
export { JournalStore, type JournalOptions } from './store/journal/journal-store.js';
export { MemoryStore, SharedMemory } from './store/memory-store.js';
export type { Batch, Committed, GroupImage, Loaded, RecordSink, Revision, Store } from './store/store.js';
export type {
  GroupRecord,
  LoanRecord,
  PodRecord,
  ReservationRecord,
  ShapeRecord,
  StoredRecord,
  WorkloadRecord,
} from './core/record.js';
export { toRecord } from './core/record-format.js';
export { ShapeDictionary } from './core/shape-dictionary.js';
export { latestHead, type StateHead } from './core/restore.js';
export { AuditChain, verifyChain, type VerifiedChain } from './audit/chain.js';
export {
  auditStream,
  openAuditFile,
  verifyAuditFile,
  verifyAuditStream,
  type AuditFailed,
  type AuditFile,
} from './audit/audit-file.js';
export {
  GROUP_LABEL,
  KNOWN_KINDS,
  evaluate,
  type Evaluation,
  type EvaluationOptions,
  type Owner,
} from './evaluators/evaluate.js';
export { declaredKind, type DeclaredKind, type DeclaredPods } from './evaluators/declared-kind.js';
export type { EvaluationContext, Evaluator, TemplatedPods } from './evaluators/evaluator.js';
export { DEFAULT_CATALOG, type CardCatalog } from './evaluators/gpu-resources.js';
export { ManifestReader } from './evaluators/manifest.js';
export type { PlacementRule } from './evaluators/placement-type.js';
