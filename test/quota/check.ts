import type { Test } from 'tap';
import { formatAmount, type Decision, type GroupStatus } from '../../src/quota/index.js';
import type { Expected } from './vectors.js';

/** Compares a decision and its effects with a vector. */
export function check(
  t: Test,
  decision: Decision,
  status: (name: string) => GroupStatus | null,
  expected: Expected,
): void {
  t.equal(decision.code, expected.code, decision.message);
  t.equal(decision.allowed, expected.code === 'OK' || expected.code === 'NotManaged');
  if (expected.keys !== undefined)
    t.same(
      decision.violations.map(({ key }) => key),
      expected.keys,
    );
  const [first] = decision.violations;
  if (expected.free !== undefined)
    t.equal(first === undefined ? '' : formatAmount(first.key, first.hard - first.used), expected.free);
  if (expected.maxReplicas !== undefined) t.equal(decision.hints.maxReplicas, expected.maxReplicas);
  if (expected.warns !== undefined)
    t.same(
      decision.warnings.map(({ code }) => code),
      [expected.warns],
    );
  for (const what of ['used', 'selfUsed'] as const) {
    for (const [name, amounts] of Object.entries(expected[what] ?? {})) {
      for (const [key, amount] of Object.entries(amounts))
        t.equal(formatAmount(key, status(name)?.[what].get(key) ?? -1n), amount, `${what} ${key} of ${name}`);
    }
  }
}
