/*
 * The quota engine without files: what runs in a browser as well as in Node. The package has it as
 * `gpu-manager-quota/core`; index.ts adds the journal and the audit file, which need Node.
 */

// The engine.
export { QuotaEngine, createEngine, type EngineOptions } from './engine.js';
export { Quota, type Clock, type QuotaOptions, type Timed } from './core/quota.js';
export type { Simulation } from './core/reports/simulation.js';
export { DEFAULT_POLICY, type Policy } from './core/state/policy.js';

// Commands, and what they take.
export type { Command, PodStart, PodStop } from './core/command.js';
export { ShapeError } from './core/command-shape.js';
export type { Demand, PodSet, Resources } from './core/admission/demand.js';
export { DEFAULT_FAMILIES, type TypeFamily, type Types } from './core/amounts/type-family.js';
export type { GroupUpdate } from './core/groups/group-update.js';
export type { GrantSpec } from './core/loans/grants.js';
export type { LoanSpec } from './core/loans/loans.js';
export type { TransferSpec } from './core/loans/transfer.js';
export type { GroupGrant } from './core/state/declared-grant.js';
export type { GroupLoan } from './core/state/declared-loan.js';
export type { GroupSpec, Hard } from './core/state/group-spec.js';
export type { Mode } from './core/state/group.js';
export { refKey, refOfKey, type WorkloadRef } from './core/state/workload.js';
export type { Observation } from './core/workloads/observe.js';

// Answers, events and reports.
export type { Decision, Hints, Violation, Warning } from './core/admission/decision.js';
export type { Code, Refusal } from './core/amounts/refusal.js';
export type { ExplainedKey, Explanation } from './core/explain.js';
export type { EventListener, ListenerFailed } from './core/event-listeners.js';
export type { QuotaEvent } from './core/state/event.js';
export type { Charge, UnchargedGpus } from './core/reports/charges.js';
export type { OpenReservation } from './core/reservations/reserve.js';
export type { Drift, DriftReport } from './core/reports/refresh.js';
export type { Amounts, BudgetStatus, Condition, GroupStatus } from './core/reports/status.js';

// Stores and records.
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
export { latestHead, type StateHead } from './core/records/restore.js';
export { ShapeDictionary } from './core/records/shape-dictionary.js';
export type { Change } from './core/state/change.js';

// Workloads of Kubernetes.
export {
  KNOWN_KINDS,
  evaluate,
  evaluateAlone,
  evaluatorOf,
  type Evaluation,
  type EvaluationOptions,
  type Owner,
} from './evaluators/evaluate.js';
export { declaredKind, type DeclaredKind, type DeclaredPods } from './evaluators/declared-kind.js';
export type { EvaluationContext, Evaluator, TemplatedPods } from './evaluators/evaluator.js';
export { DEFAULT_CATALOG, type CardCatalog } from '../manifests/gpu-resources.js';

// Amounts.
export { amounts } from '../manifests/quantities.js';
export { amount, formatAmount, formatQuantity, parseQuantity, type Quantity } from '../manifests/quantity.js';
export type { Key } from '../manifests/key.js';

// Dominant resource fairness among running pods; also as the namespace `arbitrator`.
export * from './arbitrator/index.js';
export * as arbitrator from './arbitrator/index.js';
