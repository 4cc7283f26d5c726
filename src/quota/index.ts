export * as arbitrator from './arbitrator/index.js';
export type { Amounts, BudgetStatus, Condition, GroupStatus } from './core/reports/status.js';
export type { Change } from './core/state/change.js';
export type { Charge } from './core/reports/charges.js';
export type { Command } from './core/command.js';
export { ShapeError } from './core/command-shape.js';
export { formatAmount, type Decision, type Hints, type Violation, type Warning } from './core/admission/decision.js';
export type { GroupLoan } from './core/state/declared-loan.js';
export type { GroupGrant } from './core/state/declared-grant.js';
export type { Demand, PodSet, Resources } from './core/admission/demand.js';
export type { QuotaEvent } from './core/state/event.js';
export type { ExplainedKey, Explanation } from './core/explain.js';
export type { GrantSpec } from './core/loans/grants.js';
export type { GroupSpec, Hard } from './core/state/group-spec.js';
export type { GroupUpdate } from './core/groups/group-update.js';
export type { Mode } from './core/state/group.js';
export { cashTarget, keyProblem, unitOfKey, type Key } from './core/amounts/key.js';
export type { LoanSpec } from './core/loans/loans.js';
export type { TransferSpec } from './core/loans/transfer.js';
export type { Observation } from './core/workloads/observe.js';
export { DEFAULT_POLICY, type Policy } from './core/state/policy.js';
export { formatQuantity, parseQuantity, readQuantity, wholeQuantity, type Quantity } from './core/amounts/quantity.js';
export { Quota, type Clock, type Timed } from './core/quota.js';
export type { Simulation } from './core/reports/simulation.js';
export type { OpenReservation } from './core/reservations/reserve.js';
export type { Drift, DriftReport } from './core/reports/refresh.js';
export type { Code, Refusal } from './core/amounts/refusal.js';
export { DEFAULT_FAMILIES, type TypeFamily, type Types } from './core/amounts/type-family.js';
export type { WorkloadRef } from './core/state/workload.js';
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
} from './core/records/record.js';
export { toRecord } from './core/records/record-format.js';
export { ShapeDictionary } from './core/records/shape-dictionary.js';
export { latestHead, type StateHead } from './core/records/restore.js';
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
