/*
 * The public interface of the quota engine, and the main module of the package `gpu-manager-quota`: what a program of
 * somebody else needs. What our own programs need besides stands in internal.ts, and the contract of stores in
 * store/contract.ts. `test/house/imports.test.ts` refuses all other imports from outside.
 */
export * from './core.js';

// Files: a journal for the state, and a log of events in which every line confirms the one before.
export { JournalStore, type JournalOptions } from './store/journal/journal-store.js';
export { AuditChain, verifyChain, type VerifiedChain } from './audit/chain.js';
export {
  auditStream,
  openAuditFile,
  verifyAuditFile,
  verifyAuditStream,
  type AuditFailed,
  type AuditFile,
  type TextStream,
} from './audit/audit-file.js';
