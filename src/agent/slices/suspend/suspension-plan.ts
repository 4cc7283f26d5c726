/** What to do next with the processes of a container that is suspended or resumed. Pure. */
import type { ProcessState } from './checkpoint-program.js';

export interface PlannedProcess {
  readonly pid: number;
  /** What it had on the GPU. */
  readonly bytes: number;
  /** `none`: it has not begun CUDA; null: unknown, the driver has to be asked. */
  readonly state: ProcessState | 'none' | null;
  /** A call for it failed on the way back: nothing more is tried with it. */
  readonly isStuck?: boolean;
}

/** The calls of the driver, each for one process. */
export type ProcessCall = 'state' | 'lock' | 'checkpoint' | 'restore' | 'unlock';

export type Action<P extends PlannedProcess = PlannedProcess> =
  | { readonly kind: ProcessCall; readonly process: P }
  /** Look for processes that began meanwhile, and for obstacles. */
  | { readonly kind: 'look' }
  /** Wait until the GPU has room for `bytes`. */
  | { readonly kind: 'room'; readonly bytes: number }
  | { readonly kind: 'done' };

/**
 * The way to the host. All processes are locked before any is checkpointed: processes that exchange data wait for each
 * other otherwise. `hasLooked`: since the last lock.
 */
export function nextToSuspend<P extends PlannedProcess>(processes: readonly P[], hasLooked: boolean): Action<P> {
  const running = processes.find(({ state }) => state === 'running');
  if (running !== undefined) return { kind: 'lock', process: running };
  if (!hasLooked) return { kind: 'look' };
  const locked = processes.find(({ state }) => state === 'locked');
  return locked === undefined ? { kind: 'done' } : { kind: 'checkpoint', process: locked };
}

/**
 * The way back, from wherever the processes are. Nothing is restored before the GPU has room for all of it: a restore
 * that fails for lack of memory can never be repeated. All are restored before any is unlocked.
 */
export function nextToResume<P extends PlannedProcess>(processes: readonly P[], hasRoom: boolean): Action<P> {
  const here = processes.filter(({ isStuck }) => isStuck !== true);
  const unknown = here.find(({ state }) => state === null);
  if (unknown !== undefined) return { kind: 'state', process: unknown };
  const away = here.filter(({ state }) => state === 'checkpointed');
  const [first] = away;
  if (first !== undefined && !hasRoom) return { kind: 'room', bytes: away.reduce((sum, { bytes }) => sum + bytes, 0) };
  if (first !== undefined) return { kind: 'restore', process: first };
  const locked = here.find(({ state }) => state === 'locked');
  return locked === undefined ? { kind: 'done' } : { kind: 'unlock', process: locked };
}
