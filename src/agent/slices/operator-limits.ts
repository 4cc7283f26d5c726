import { rm } from 'node:fs/promises';
import type { LimitRequest } from './live-limits.js';
import { writeFileAtomically } from '../../host/atomic-file.js';
import { readReachableFile } from '../../host/reachable-file.js';
import type { SliceDirectories } from './slice-directory.js';

/**
 * What an operator asked of single containers, on this node and by hand. Kept beside the limits it changes, so it
 * outlives the agent and the container, and ends with the allocation.
 */
export class OperatorLimits {
  readonly #directories: SliceDirectories;
  readonly #requests = new Map<string, LimitRequest>();

  constructor(directories: SliceDirectories) {
    this.#directories = directories;
  }

  /** Null if no limit was requested. */
  get(allocation: string): LimitRequest | null {
    return this.#requests.get(allocation) ?? null;
  }

  /** Reads what an earlier life of the agent was asked. A file that cannot be read counts as none. */
  async load(allocation: string): Promise<void> {
    const content = await readReachableFile(this.#directories.operatorPathOf(allocation)).catch(() => null);
    const request = content === null ? null : parse(content.toString('utf8'));
    if (request === null) this.#requests.delete(allocation);
    else this.#requests.set(allocation, request);
  }

  /** Null: nothing any more. */
  async set(allocation: string, request: LimitRequest | null): Promise<void> {
    const path = this.#directories.operatorPathOf(allocation);
    if (request === null) {
      await rm(path, { force: true });
      this.#requests.delete(allocation);
      return;
    }
    await writeFileAtomically(path, `${JSON.stringify(request)}\n`, { mode: 0o600 });
    this.#requests.set(allocation, request);
  }

  forget(allocation: string): void {
    this.#requests.delete(allocation);
  }
}

function parse(text: string): LimitRequest | null {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof document !== 'object' || document === null) return null;
  const field = (name: keyof LimitRequest): number | null => {
    const value = (document as Readonly<Record<string, unknown>>)[name];
    return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
  };
  return { memoryBytes: field('memoryBytes'), share: field('share'), softLimit: field('softLimit') };
}
