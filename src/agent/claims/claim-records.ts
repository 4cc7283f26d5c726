import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeCheckpoint, EMPTY_CHECKPOINT, encodeCheckpoint } from '../../gpu/ledger/checkpoint.js';
import type { ClaimUnit } from '../../gpu/ledger/claim-unit.js';
import { removeHalfWritten, writeFileAtomically } from '../../host/atomic-file.js';
import type { Log } from '../../host/log.js';
import type { UnitRecords } from '../allocator/ports.js';
import type { SliceStore } from '../slices/ports.js';
import { readStateFile } from '../../host/state-file.js';

/** Directory in `--virtual-manager-path`, beside the slices. */
export const CLAIM_RECORDS_DIRECTORY = '.claims';
/** The record of a unit, and what its containers can read about its devices. */
const FILE_NAME = /^([0-9a-f]{16})(\.metadata\.json)?$/;

/**
 * A record of each prepared claim unit beside the slices: what the ledger has of it, in the format of the checkpoint.
 * A record outlives the checkpoint, so that a unit keeps its amounts, its slice and its containers when the checkpoint
 * is lost, even while the API server is away. A record is not synced to the disk: after a power loss no container runs.
 * Beside it is what the unit's containers can read about their devices.
 */
export class ClaimRecords implements UnitRecords {
  readonly #directory: string;
  /** The contents of the files, by unit id. */
  readonly #written = new Map<string, string>();

  constructor(virtualManagerPath: string) {
    this.#directory = join(virtualManagerPath, CLAIM_RECORDS_DIRECTORY);
  }

  /** The recorded units. A record that cannot be read is logged and left out. */
  async read(log: Log): Promise<readonly ClaimUnit[]> {
    await removeHalfWritten(this.#directory).catch(() => undefined);
    const units: ClaimUnit[] = [];
    for (const id of await this.#names()) {
      if (FILE_NAME.exec(id)?.[1] !== id) continue;
      const text = await readStateFile(this.#path(id)).catch((error: Error) => error);
      const decoded = typeof text === 'string' ? decodeCheckpoint(text) : { ok: false as const, reason: text.message };
      const unit = decoded.ok && decoded.format === 'current' ? decoded.content.units[0] : undefined;
      if (unit?.id === id) {
        units.push(unit);
        this.#written.set(id, text as string);
      } else
        log.warn(
          { unit: id, reason: decoded.ok ? 'it records another unit' : decoded.reason },
          'the record of a claim cannot be read',
        );
    }
    return units;
  }

  async write(unit: ClaimUnit): Promise<void> {
    const { units: _, ...others } = EMPTY_CHECKPOINT;
    const maps = { allocations: new Map(), instances: new Map(), units: new Map([[unit.id, unit]]) };
    const text = encodeCheckpoint({ ...others, ...maps });
    if (this.#written.get(unit.id) === text) return;
    await mkdir(this.#directory, { recursive: true, mode: 0o750 });
    await writeFileAtomically(this.#path(unit.id), text, { durable: false });
    this.#written.set(unit.id, text);
  }

  async writeMetadata(unitId: string, text: string): Promise<string> {
    const path = this.#metadataPath(unitId);
    await mkdir(this.#directory, { recursive: true, mode: 0o750 });
    await writeFileAtomically(path, text, { mode: 0o644, durable: false });
    return path;
  }

  async remove(unitId: string): Promise<void> {
    this.#written.delete(unitId);
    await rm(this.#path(unitId), { force: true });
    await rm(this.#metadataPath(unitId), { force: true });
  }

  /** Ids of the units that have a file. */
  async list(): Promise<readonly string[]> {
    return [...new Set((await this.#names()).flatMap((name) => FILE_NAME.exec(name)?.[1] ?? []))];
  }

  async #names(): Promise<readonly string[]> {
    return readdir(this.#directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
  }

  #path(unitId: string): string {
    return join(this.#directory, unitId);
  }

  #metadataPath(unitId: string): string {
    return join(this.#directory, `${unitId}.metadata.json`);
  }
}

/**
 * Extends `slices`: removing a slice removes a record of its name too, and `list` includes units that only have a
 * record.
 */
export function withClaimRecords(slices: SliceStore, records: ClaimRecords): SliceStore {
  return {
    ...slices,
    async remove(id) {
      await slices.remove(id);
      await records.remove(id);
    },
    list: async () => [...new Set([...(await slices.list()), ...(await records.list())])],
  };
}
