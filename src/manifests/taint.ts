/** A taint of a node: pods without a matching toleration do not run there. */
export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

/** A toleration of a pod; empty fields match anything. */
export interface Toleration {
  readonly key: string;
  /** `Exists` or `Equal`; empty means `Equal`. */
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
}

const KEEPS_AWAY: ReadonlySet<string> = new Set(['NoSchedule', 'NoExecute']);

/** Whether a pod with these tolerations may run on a node with these taints, by the scheduler's rules. */
export function toleratesAll(tolerations: readonly Toleration[], taints: readonly Taint[]): boolean {
  return taints.every(
    (taint) => !KEEPS_AWAY.has(taint.effect) || tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}

function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return key !== '' && (operator === '' || operator === 'Equal') && value === taint.value;
}
