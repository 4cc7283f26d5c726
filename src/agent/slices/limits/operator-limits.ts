import { rm } from 'node:fs/promises';
import * as z from 'zod';
import { decodeLimits, type DeviceLimit } from '../../../abi/limits-file.js';
import { writeFileAtomically } from '../../../host/atomic-file.js';
import type { Log } from '../../../host/log.js';
import { readReachableFile } from '../../../host/reachable-file.js';
import type { LimitRequest } from './live-limits.js';
import type { SliceDirectories } from '../slice-directory.js';

const amount = z.number().int().positive().max(Number.MAX_SAFE_INTEGER).nullable();
const request = z.object({ memoryBytes: amount, share: amount, softLimit: amount });

/** Limits of each GPU that were last in force; `unknown` if these cannot be read either. */
export type KeptLimits = readonly DeviceLimit[] | 'unknown';

/**
 * Limits that an operator set by hand for single containers of this node. They are stored beside the limits file, so
 * that they outlive the agent and the container, and end with the allocation.
 */
export class OperatorLimits {
  readonly #directories: SliceDirectories;
  readonly #log: Log;
  readonly #requests = new Map<string, LimitRequest>();
  /** For allocations whose file cannot be read: the limits that were last in force, which stay the upper bound. */
  readonly #kept = new Map<string, KeptLimits>();

  constructor(directories: SliceDirectories, log: Log) {
    this.#directories = directories;
    this.#log = log;
  }

  /** Null if no limit was requested, or the request cannot be read. */
  get(allocation: string): LimitRequest | null {
    return this.#requests.get(allocation) ?? null;
  }

  /** The limits that stay in force because the operator's request cannot be read; null if it can. */
  kept(allocation: string): KeptLimits | null {
    return this.#kept.get(allocation) ?? null;
  }

  /** Allocations whose operator limits cannot be read. */
  get unread(): readonly string[] {
    return [...this.#kept.keys()];
  }

  /**
   * Reads the limits that an earlier run of the agent stored. If the file is damaged or unreadable, the container keeps
   * the limits that were last in force. Returns the reason if these cannot be read either, else null.
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
      reason = 'it contains no limits';
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
        'the limits that an operator set cannot be read: the last limits stay in force; repair the file, or use "gpu-manager limits set" or "release"',
      );
    if (kept !== 'unknown') return null;
    return `${path}: the limits that an operator set cannot be read (${reason}), nor those that were last in force; repair the file, or remove it to give the container its whole allocation`;
  }

  /** Null removes the limits. */
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
      // For any error: the last limits are unknown.
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
