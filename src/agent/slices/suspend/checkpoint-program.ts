import { execFile } from 'node:child_process';

/** `CUresult` of calls that suspend and resume processes. */
export const RESULT = { success: 0, outOfMemory: 2, notInitialized: 3, notReady: 600 } as const;

/** `CUprocessState`, in the driver's order. */
const STATES = ['running', 'locked', 'checkpointed', 'failed', 'checkpointing', 'restoring'] as const;
export type ProcessState = (typeof STATES)[number];

export interface CheckpointAnswer {
  /** `CUresult` of the call; null if it did not return in time. */
  readonly result: number | null;
  /** The state of the process after the call; null if it is not known. */
  readonly state: ProcessState | null;
}

/** The driver's checkpoint interface for one process, by its pid on the host. */
export interface Checkpoints {
  state(pid: number): Promise<CheckpointAnswer>;
  /** Waits at most `workMs` for submitted work. */
  lock(pid: number, workMs: number): Promise<CheckpointAnswer>;
  /** `bytes` are what the process has on the GPU: the longest time depends on them. */
  checkpoint(pid: number, bytes: number): Promise<CheckpointAnswer>;
  restore(pid: number, bytes: number): Promise<CheckpointAnswer>;
  unlock(pid: number): Promise<CheckpointAnswer>;
  /** Ends the calls that are under way: a lock that is granted later would hold the process for ever. */
  stop(): void;
}

const CALL_MS = 5_000;
/** The slowest known transfer is six times as fast. */
const LEAST_BYTES_PER_MS = 2 ** 20;
const TRANSFER_MS = 30_000;
const ANSWER = /^result (\d+) state (-?\d+)\n$/u;

/**
 * Runs `gpu-checkpoint` for each call. A call for a frozen process never returns: the program is ended after its time.
 * Rejects if the program or the driver's library cannot be used.
 */
export function checkpointProgram(program: string, library: string): Checkpoints {
  const ended = new AbortController();
  const call = (limitMs: number, ...args: readonly (string | number)[]): Promise<CheckpointAnswer> =>
    new Promise((resolve, reject) => {
      const options = { timeout: limitMs, killSignal: 'SIGKILL', signal: ended.signal } as const;
      execFile(program, [library, ...args.map(String)], options, (error, stdout, stderr) => {
        if (error?.killed === true || ended.signal.aborted) {
          resolve({ result: null, state: null });
          return;
        }
        const [, result, state] = ANSWER.exec(stdout) ?? [];
        if (error !== null || result === undefined)
          reject(new Error(`${program}: ${stderr.trim() || error?.message || `unexpected output ${stdout}`}`));
        else resolve({ result: Number(result), state: STATES[Number(state)] ?? null });
      });
    });
  const transferMs = (bytes: number): number => TRANSFER_MS + bytes / LEAST_BYTES_PER_MS;
  return {
    state: (pid) => call(CALL_MS, 'state', pid),
    lock: (pid, workMs) => call(workMs + CALL_MS, 'lock', pid, workMs),
    checkpoint: (pid, bytes) => call(transferMs(bytes), 'checkpoint', pid),
    restore: (pid, bytes) => call(transferMs(bytes), 'restore', pid),
    unlock: (pid) => call(CALL_MS, 'unlock', pid),
    stop: () => ended.abort(),
  };
}
