/*
 * The quota engine for the programs of this repository: the public interface, and what they share with the engine. It
 * is not part of the package `gpu-manager-quota` and may change at any time.
 */
export * from './index.js';

export { readPodSet } from './core/admission/demand.js';
export { familyOf, typeProblem } from './core/amounts/type-family.js';
export { readDuration, readMoment } from './core/amounts/time.js';
export { isDeclaredLoan } from './core/loans/declare-loans.js';
export { declarationOf, declaredId, toGroupGrant } from './core/state/declared-grant.js';
export type { DeclaredLoan } from './core/state/declared-loan.js';
export { readSpec } from './core/state/group-spec.js';
export { MAX_RESERVATIONS } from './core/reservations/reserve.js';
export { heldOf } from './core/pods/pods.js';
export { Restorer } from './core/records/restore.js';
export { RequestShapeTable } from './core/state/request-shape.js';
export { linesOf } from './lines.js';
export { apiGroupOf } from './evaluators/evaluate.js';
export { kindName, resourceOf } from './evaluators/evaluator.js';
export { unchargeable, type Chargeable } from './evaluators/chargeable-key.js';
export { claimAsPod } from './evaluators/claim-kinds.js';
export type { ContainerDefaults } from './evaluators/completed-pod.js';
export { knownType, typeOfNode, typesOf, type PlacementRule } from './evaluators/placement-type.js';
export { GROUP_LABEL } from '../manifests/group-label.js';
export { cashTarget, keyProblem, unitOfKey } from '../manifests/key.js';
export { ManifestReader } from '../manifests/manifest-reader.js';
export { readQuantity, wholeQuantity } from '../manifests/quantity.js';
