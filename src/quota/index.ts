/*
 * The public interface of the quota engine: everything that code outside of this folder may use, besides the contract
 * of stores (store/contract.ts). `test/house/imports.test.ts` refuses all other imports from outside.
 */

// The engine.
export { QuotaEngine, createEngine, type EngineOptions } from './engine.js';
export { Quota, type Clock, type Timed } from './core/quota.js';
export type { Simulation } from './core/reports/simulation.js';
export { DEFAULT_POLICY, type Policy } from './core/state/policy.js';

// Commands, and what they take.
export type { Command, PodStart, PodStop } from './core/command.js';
export { ShapeError } from './core/command-shape.js';
export { readPodSet, type Demand, type PodSet, type Resources } from './core/admission/demand.js';
export { DEFAULT_FAMILIES, familyOf, typeProblem, type TypeFamily, type Types } from './core/amounts/type-family.js';
export { readDuration, readMoment } from './core/amounts/time.js';
export type { GroupUpdate } from './core/groups/group-update.js';
export { isDeclaredLoan } from './core/loans/declare-loans.js';
export type { GrantSpec } from './core/loans/grants.js';
export type { LoanSpec } from './core/loans/loans.js';
export type { TransferSpec } from './core/loans/transfer.js';
export { declarationOf, declaredId, toGroupGrant, type GroupGrant } from './core/state/declared-grant.js';
export type { DeclaredLoan, GroupLoan } from './core/state/declared-loan.js';
export { readSpec, type GroupSpec, type Hard } from './core/state/group-spec.js';
export type { Mode } from './core/state/group.js';
export { refKey, refOfKey, type WorkloadRef } from './core/state/workload.js';
export type { Observation } from './core/workloads/observe.js';

// Answers and reports.
export type { Decision, Hints, Violation, Warning } from './core/admission/decision.js';
export type { Code, Refusal } from './core/amounts/refusal.js';
export type { ExplainedKey, Explanation } from './core/explain.js';
export type { Charge } from './core/reports/charges.js';
export { MAX_RESERVATIONS, type OpenReservation } from './core/reservations/reserve.js';
export type { Drift, DriftReport } from './core/reports/refresh.js';
export type { Amounts, BudgetStatus, Condition, GroupStatus } from './core/reports/status.js';
export { heldOf } from './core/pods/pods.js';
export { RequestShapeTable } from './core/state/request-shape.js';
export type { QuotaEvent } from './core/state/event.js';
export type { EventListener, ListenerFailed } from './core/event-listeners.js';
export { AuditChain, verifyChain, type VerifiedChain } from './audit/chain.js';
export {
  auditStream,
  openAuditFile,
  verifyAuditFile,
  verifyAuditStream,
  type AuditFailed,
  type AuditFile,
} from './audit/audit-file.js';
export { linesOf } from './lines.js';

// Stores and records.
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
export { Restorer, latestHead, type StateHead } from './core/records/restore.js';
export { ShapeDictionary } from './core/records/shape-dictionary.js';
export type { Change } from './core/state/change.js';

// Workloads of Kubernetes.
export {
  KNOWN_KINDS,
  apiGroupOf,
  evaluate,
  evaluateAlone,
  evaluatorOf,
  type Evaluation,
  type EvaluationOptions,
  type Owner,
} from './evaluators/evaluate.js';
export { unchargeable, type Chargeable } from './evaluators/chargeable-key.js';
export { claimAsPod } from './evaluators/claim-kinds.js';
export type { ContainerDefaults } from './evaluators/completed-pod.js';
export { declaredKind, type DeclaredKind, type DeclaredPods } from './evaluators/declared-kind.js';
export type { EvaluationContext, Evaluator, TemplatedPods } from './evaluators/evaluator.js';
export { knownType, typeOfNode, typesOf, type PlacementRule } from './evaluators/placement-type.js';

// Kubernetes' quantities and manifests.
export { DEFAULT_CATALOG, type CardCatalog } from '../manifests/gpu-resources.js';
export { GROUP_LABEL } from '../manifests/group-label.js';
export { cashTarget, keyProblem, unitOfKey, type Key } from '../manifests/key.js';
export { ManifestReader } from '../manifests/manifest-reader.js';
export { amounts } from '../manifests/quantities.js';
export {
  amount,
  formatAmount,
  formatQuantity,
  parseQuantity,
  readQuantity,
  wholeQuantity,
  type Quantity,
} from '../manifests/quantity.js';

// Dominant resource fairness among running pods; also as the namespace `arbitrator`.
export * from './arbitrator/index.js';
export * as arbitrator from './arbitrator/index.js';
