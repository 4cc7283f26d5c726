export type { Allocator } from './allocator.js';
export { withCdiSpecs } from './cdi-devices.js';
export { ClaimAllocator } from './claim-allocator.js';
export { ledgerNode } from './ledger-node.js';
export type { LedgerReconciler } from './ledger-reconciler.js';
export { type AgentPods, NO_NOTICES, NO_PODS } from './no-pods.js';
export { type Allocation, openAllocator } from './open-allocator.js';
export { openLedger } from './open-ledger.js';
