/** The result of one check of the node. */
export interface Diagnosis {
  readonly check:
    | 'driver'
    | 'libraries'
    | 'devices'
    | 'native'
    | 'mirror'
    | 'interposition'
    | 'enforcement'
    | 'kubelet'
    | 'runtime'
    | 'claims'
    | 'nri'
    | 'cgroups'
    | 'memory'
    | 'mps'
    | 'agent';
  /** `skipped`: these flags leave nothing to check. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly what: string;
  /** The advised action; null if none. */
  readonly advice: string | null;
}

export type Check = Diagnosis['check'];

export const ok = (check: Check, what: string): Diagnosis => ({ check, state: 'ok', what, advice: null });
export const warning = (check: Check, what: string, advice: string): Diagnosis => ({
  check,
  state: 'warning',
  what,
  advice,
});
export const failed = (check: Check, what: string, advice: string): Diagnosis => ({
  check,
  state: 'failed',
  what,
  advice,
});
export const skipped = (check: Check, what: string): Diagnosis => ({ check, state: 'skipped', what, advice: null });

export const reasonOf = (error: unknown): string => (error as NodeJS.ErrnoException).message;
