import { binpack } from './binpack.js';
import { fragmentation } from './fragmentation.js';
import type { Policy, PolicyName } from './policy.js';
import { spread } from './spread.js';
import { topology } from './topology.js';

const POLICIES: Readonly<Record<PolicyName, Policy>> = { fragmentation, binpack, spread, topology };

/** The policy with this name. */
export function policyOf(name: PolicyName): Policy {
  return POLICIES[name];
}
