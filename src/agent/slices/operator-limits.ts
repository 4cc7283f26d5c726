import { rm } from 'node:fs/promises';
import { z } from 'zod';
import { decodeLimits, type DeviceLimit } from '../../abi/limits-file.js';
import { writeFileAtomically } from '../../host/atomic-file.js';
import type { Log } from '../../host/log.js';
import { readReachableFile } from '../../host/reachable-file.js';
import type { LimitRequest } from './live-limits.js';
import type { SliceDirectories } from './slice-directory.js';

const amount = z.number().int().positive().max(Number.MAX_SAFE_INTEGER).nullable();
const request = z.object({ memoryBytes: amount, share: amount, softLimit: amount });

/** Limits of each GPU that were in force last; `unknown` where these cannot be read either. */
export type KeptLimits = readonly DeviceLimit[] | 'unknown';

/**
 * What an operator asked of single containers, on this node and by hand. Kept beside the limits it changes, so it
 * outlives the agent and the container, and ends with the allocation.
 */
export class OperatorLimits {
  readonly #directories: SliceDirectories;
  readonly #log: Log;
  readonly #requests = new Map<string, LimitRequest>();
  /** Where the file could not be read: the limits that were in force last, which no container exceeds meanwhile. */
  readonly #kept = new Map<string, KeptLimits>();

  constructor(directories: SliceDirectories, log: Log) {
    this.#directories = directories;
    this.#log = log;
  }

  /** Null if no limit was requested, or the request cannot be read. */
  get(allocation: string): LimitRequest | null {
    return this.#requests.get(allocation) ?? null;
  }

  /** What stays in force because it cannot be read what the operator asked for; null where it can. */
  kept(allocation: string): KeptLimits | null {
    return this.#kept.get(allocation) ?? null;
  }

  /** Allocations whose limits could not be read. */
  get unread(): readonly string[] {
    return [...this.#kept.keys()];
  }

  /**
   * Reads what an earlier life of the agent was asked. A file that is damaged, or cannot be read, restricts the
   * container to the limits that it had last; answers why where these cannot be read either, else null.
   */
  async load(allocation: string): Promise<string | null> {
    const path = this.#directories.operatorPathOf(allocation);
    let reason: string;
    try {
      const read = parse((await readReachableFile(path)).toString('utf8'));
      if (read !== null) {
        this.forget(allocation);
        this.#requests.set(allocation, read);
        return null;
      }
      reason = 'it holds no limits';
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') {
        this.forget(allocation);
        return null;
      }
      reason = code ?? message;
    }
    this.#requests.delete(allocation);
    const known = this.#kept.get(allocation) ?? null;
    const kept = known ?? (await this.#lastLimits(allocation));
    this.#kept.set(allocation, kept);
    if (known === null)
      this.#log.error(
        { allocation, file: path, reason },
        'the limits that an operator set cannot be read: the last ones stay; repair the file, or use "gpu-manager limits set" or "release"',
      );
    if (kept !== 'unknown') return null;
    return `${path}: the limits that an operator set cannot be read (${reason}), nor those that were last in force; repair the file, or remove it to give the container its whole allocation`;
  }

  /** Null: nothing any more. */
  async set(allocation: string, limits: LimitRequest | null): Promise<void> {
    const path = this.#directories.operatorPathOf(allocation);
    if (limits === null) {
      await rm(path, { force: true });
      this.forget(allocation);
      return;
    }
    await writeFileAtomically(path, `${JSON.stringify(limits)}\n`, { mode: 0o600 });
    this.forget(allocation);
    this.#requests.set(allocation, limits);
  }

  forget(allocation: string): void {
    this.#requests.delete(allocation);
    this.#kept.delete(allocation);
  }

  async #lastLimits(allocation: string): Promise<KeptLimits> {
    try {
      const decoded = decodeLimits(await readReachableFile(this.#directories.limitsPathOf(allocation)));
      return decoded.ok ? decoded.limits.devices : 'unknown';
    } catch {
      // Whatever the reason: it is not known what held.
      return 'unknown';
    }
  }
}

function parse(text: string): LimitRequest | null {
  try {
    return request.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
