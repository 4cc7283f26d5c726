import type { AgentConfig } from '../../src/agent/config.js';
import type { Allocation } from '../../src/gpu/ledger/allocation.js';
import type { ClaimUnit } from '../../src/gpu/ledger/claim-unit.js';
import type { LegacyHolding } from '../../src/gpu/ledger/legacy-holding.js';
import type { DiskError } from './named-steps.js';

/** The orders to an agent process about one of its agents. */
export type Order =
  | {
      readonly do: 'start';
      readonly directory: string;
      readonly config: AgentConfig;
      readonly graceMs: number;
      readonly freezeAfter: number | null;
    }
  | { readonly do: 'freeze'; readonly steps: number }
  | { readonly do: 'break-disk'; readonly error: DiskError; readonly skip: number; readonly times: number }
  | { readonly do: 'repair-disk' }
  /** The machine's clock is set, forward or back. */
  | { readonly do: 'jump'; readonly ms: number }
  | { readonly do: 'reconcile' }
  | { readonly do: 'knows-pod'; readonly namespace: string; readonly name: string }
  | { readonly do: 'ledger' }
  | { readonly do: 'stop' };

/** The answer to `ledger`. */
export interface LedgerReport {
  readonly allocations: readonly Allocation[];
  readonly openHalves: number;
  readonly legacy: readonly LegacyHolding[];
  readonly units: readonly ClaimUnit[];
  /** GPUs that the device plugin offers. */
  readonly offered: readonly string[];
}

/** To the agent process. */
export interface Letter {
  readonly id: number;
  /** The number of the agent in its process. */
  readonly agent: string;
  readonly order: Order;
}

/** From the agent process. */
export type Reply =
  | { readonly kind: 'done'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }
  | { readonly kind: 'frozen'; readonly agent: string; readonly step: string };
