import type { ConsumerSpec } from '../../quota/index.js';
import { writeAmounts, type WrittenAmounts } from '../amounts.js';
import type { AllocationStatus } from './allocation-object.js';

/** A Consumer or a namespace without one, with its Allocation. */
export interface ConsumerRow {
  readonly name: string;
  /** Its area; empty for none. */
  readonly parent: string;
  readonly hard: WrittenAmounts;
  readonly reserved: WrittenAmounts;
  readonly deserved: WrittenAmounts;
  readonly allocated: WrittenAmounts;
  readonly pending: WrittenAmounts;
}

/** Joins the spec of a Consumer and the status of its Allocation; either may be missing. */
export function consumerRow(
  name: string,
  spec: ConsumerSpec | undefined,
  status: AllocationStatus | undefined,
): ConsumerRow {
  return {
    name,
    parent: spec?.parent ?? '',
    hard: writeAmounts(spec?.hard ?? new Map<string, number>()),
    reserved: writeAmounts(spec?.reserved ?? new Map<string, number>()),
    deserved: status?.deserved ?? {},
    allocated: status?.allocated ?? {},
    pending: status?.pending ?? {},
  };
}
