import { unitEdits, type UnitEdits } from '../../gpu/container-edits.js';
import { chargeUnit, unitsOfClaim, unitsOfSlice, withoutUnits, withUnit } from '../../gpu/ledger/charge-unit.js';
import { describeClaim, partsOfUnits, sameDevices, sameGpus, type ClaimUnit } from '../../gpu/ledger/claim-unit.js';
import { keptFromPlugin } from '../../gpu/ledger/hand-over.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import { refuse, type RequestRefusal } from '../../gpu/request.js';
import { CORES_PER_GPU, memoryBlocks } from '../../gpu/resources.js';
import { deviceMetadata, deviceMetadataPath, type AttributesOf } from '../../gpu/claims/device-metadata.js';
import { isUserOf, type ClaimUser } from '../../gpu/claims/claim-units.js';
import { Listeners } from '../../host/listeners.js';
import type { Log } from '../../host/log.js';
import type { LedgerKeeper } from './ledger-keeper.js';
import type { ClaimNotices, GivenContainer, NodeFiles, UnitRecords, UnitSpecs } from './ports.js';
import type { SliceStore } from '../slices/ports.js';
import { limitsOfUnits } from './slice-limits.js';

export interface ClaimAllocatorOptions {
  readonly ledger: LedgerKeeper;
  readonly slices: SliceStore;
  readonly specs: UnitSpecs;
  readonly records: UnitRecords;
  readonly attributesOf: AttributesOf;
  readonly files: NodeFiles;
  /** Whether a process of the slice's containers still runs. */
  readonly isInUse: (slice: string) => boolean;
  readonly notices: ClaimNotices;
  readonly log: Log;
}

/** Slices that a start opens side by side: most of their time is waiting for the disk. */
const OPENED_AT_ONCE = 8;

/** One prepared unit: the CDI name of each of its devices, by position. */
export interface PreparedUnit {
  readonly unit: ClaimUnit;
  readonly cdiDevices: readonly string[];
}

export type PreparedUnits = { readonly ok: true; readonly units: readonly PreparedUnit[] } | RequestRefusal;

/**
 * Charges the ledger for allocated resource claims, and creates the directory, limits, socket and CDI specification of
 * their containers. Every change passes through the ledger's queue. The scheduler's choice is checked against the
 * ledger first.
 */
export class ClaimAllocator {
  readonly #options: ClaimAllocatorOptions;
  readonly #releaseListeners = new Listeners();
  readonly #changeListeners = new Listeners<ReadonlySet<string>>();

  constructor(options: ClaimAllocatorOptions) {
    this.#options = options;
  }

  get state(): LedgerState {
    return this.#options.ledger.state;
  }

  /** Calls `listener` after each release of a unit: waiting claims may fit now. */
  onReleased(listener: () => void): () => void {
    return this.#releaseListeners.add(listener);
  }

  /** Calls `listener` with the slices whose units, or the containers that use them, have changed. */
  onChanged(listener: (slices: ReadonlySet<string>) => void): () => void {
    return this.#changeListeners.add(listener);
  }

  /**
   * Prepares all units of one claim, or none. A unit that is prepared already with the same devices keeps its files,
   * and missing files are created; one with assumed amounts gets its real ones. Units that the claim no longer names
   * are released: the claim was allocated again. `isAbandoned` is checked when the claim's turn in the queue comes.
   */
  async prepare(units: readonly ClaimUnit[], isAbandoned: () => boolean = () => false): Promise<PreparedUnits> {
    return this.#options.ledger.run(async () => {
      const [first] = units;
      if (first === undefined) return { ok: true, units: [] };
      const name = describeClaim(first.claim);
      if (isAbandoned()) return refuse('bad-claim', `${name}: the kubelet gave up waiting`);
      const known = new Map(unitsOfClaim(this.state, first.claim.uid).map((unit) => [unit.id, unit]));
      const stays = (unit: ClaimUnit): boolean => {
        const before = known.get(unit.id);
        if (before?.phase !== 'prepared') return false;
        return before.isAssumed === true ? sameGpus(before, unit) : sameDevices(before, unit);
      };
      const wanted = new Set(units.filter(stays).map(({ id }) => id));
      await this.#free([...known.values()].filter(({ id }) => !wanted.has(id)));
      const before = this.state;
      const fresh: ClaimUnit[] = [];
      for (const unit of units) {
        const prepared = known.get(unit.id);
        if (prepared !== undefined && wanted.has(unit.id)) {
          const consumers = merged(prepared, unit);
          if (prepared.isAssumed === true) this.#correct({ ...unit, slice: prepared.slice, consumers });
          else if (consumers.length > prepared.consumers.length)
            this.#options.ledger.state = withUnit(this.state, { ...prepared, consumers });
          continue;
        }
        const charged = chargeUnit(this.state, { ...unit, phase: 'preparing' });
        if (!charged.ok) {
          this.#options.ledger.state = before;
          return charged;
        }
        this.#options.ledger.state = charged.state;
        fresh.push({ ...unit, phase: 'preparing' });
      }
      // No checkpoint names these files if the agent crashes here: the next start removes them, and the kubelet calls
      // again.
      try {
        const answers = await this.#createFiles(
          units.map(({ id }) => id),
          new Set(fresh.map(({ slice }) => slice)),
        );
        if (this.state !== before) await this.#options.ledger.save();
        this.#logPrepared(fresh);
        this.#changed(units);
        return { ok: true, units: answers };
      } catch (error) {
        await this.#free(fresh);
        return refuse('bad-claim', `cannot create the files of ${name}: ${(error as Error).message}`);
      }
    });
  }

  /** Records which containers of a pod use prepared units now, instead of those that were known. */
  async setConsumers(podUid: string, users: readonly ClaimUser[]): Promise<void> {
    await this.#options.ledger.run(async () => {
      const changed = [...this.state.units.values()].flatMap((unit): ClaimUnit[] => {
        const using = users.filter((user) => isUserOf(user, unit)).map(({ container }) => container);
        const before = unit.consumers.filter((known) => known.podUid === podUid);
        const isSame =
          before.length === using.length &&
          using.every((container) => before.some((known) => known.container === container.container));
        if (unit.phase !== 'prepared' || isSame) return [];
        return [{ ...unit, consumers: [...unit.consumers.filter((known) => known.podUid !== podUid), ...using] }];
      });
      if (changed.length === 0) return;
      for (const unit of changed) this.#options.ledger.state = withUnit(this.state, unit);
      await this.#options.ledger.save();
      await inTurn(changed, (unit) => this.#options.records.write(unit)).catch((error: unknown) =>
        this.#options.log.error({ err: error }, 'the record of a claim cannot be written'),
      );
      this.#changed(changed);
    });
  }

  /**
   * Releases all units of a claim; does nothing for an unknown claim. The next reconciliation removes files that cannot
   * be removed now.
   */
  async release(claimUid: string): Promise<void> {
    await this.#options.ledger.run(async () => {
      const units = unitsOfClaim(this.state, claimUid);
      const busy = units.filter(({ slice }) => this.#options.isInUse(slice));
      for (const unit of busy) {
        this.#options.log.warn(
          { claim: unit.claim, unit: unit.id },
          'processes of a released claim still run: its devices stay allocated until they end',
        );
        this.#options.ledger.state = withUnit(this.state, { ...unit, phase: 'released' });
      }
      if (busy.length > 0) await this.#options.ledger.save();
      await this.#free(units.filter((unit) => !busy.includes(unit)));
    });
  }

  /** Releases units for which `isOver` is true, and released units whose processes have ended. */
  async freeOver(isOver: (unit: ClaimUnit) => boolean): Promise<void> {
    await this.#options.ledger.run(async () => {
      const over = [...this.state.units.values()].filter(
        (unit) => !this.#options.isInUse(unit.slice) && (unit.phase === 'released' || isOver(unit)),
      );
      await this.#free(over);
    });
  }

  /**
   * Matches the files on disk with the ledger after a start, before any call is served: prepared units get missing
   * files; a preparation that was interrupted is undone unless `isHeld` says that the kubelet has the unit. `adopted`
   * are units that containers hold and the ledger lacks.
   */
  async restore(isHeld: (unit: ClaimUnit) => boolean, adopted: readonly ClaimUnit[] = []): Promise<void> {
    const { ledger, log } = this.#options;
    await ledger.run(async () => {
      if (adopted.length > 0) ledger.state = keptFromPlugin(ledger.state);
      for (const unit of adopted) {
        if (ledger.state.units.has(unit.id)) continue;
        const charged = chargeUnit(ledger.state, unit);
        // The mode of a GPU is unknown until all of its containers are restored, so `wrong-mode` is no conflict here.
        if (!charged.ok && charged.code !== 'wrong-mode')
          log.warn(
            { claim: unit.claim, reason: charged.reason },
            'a claim that containers use does not fit beside the other allocations',
          );
        ledger.state = withUnit(ledger.state, { ...unit, phase: 'prepared' });
        log.info({ claim: unit.claim, unit: unit.id }, 'claim added: the kubelet names its container');
      }
      const cut = [...ledger.state.units.values()].filter((unit) => unit.phase === 'preparing');
      await this.#free(cut.filter((unit) => !isHeld(unit)));
      for (const unit of cut.filter(isHeld)) ledger.state = withUnit(ledger.state, { ...unit, phase: 'prepared' });
      if (cut.length + adopted.length > 0) await ledger.save();
      const bySlice = new Map<string, string[]>();
      for (const { id, slice } of ledger.state.units.values()) bySlice.set(slice, [...(bySlice.get(slice) ?? []), id]);
      const waiting = bySlice.values();
      const openNext = async (): Promise<void> => {
        for (const ids of waiting)
          await this.#createFiles(ids, new Set()).catch((error: unknown) =>
            log.error(
              { err: error, units: ids },
              'the slice of a claim cannot be opened; the agent retries when the claim is prepared',
            ),
          );
      };
      await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openNext));
      this.#changed(ledger.state.units.values());
    });
  }

  /** A unit with assumed amounts gets the amounts that were allocated; its containers keep running. */
  #correct({ isAssumed: _, ...unit }: ClaimUnit): void {
    const { ledger, slices, log } = this.#options;
    ledger.state = withUnit(this.state, { ...unit, phase: 'prepared' });
    slices.correct(limitsOfUnits(this.state.node, unit.slice, unitsOfSlice(this.state, unit.slice)));
    log.info({ claim: unit.claim, unit: unit.id }, 'the amounts of a claim are known again');
  }

  /**
   * Creates the slices, CDI specifications and records of these units. Slices of `anew` start empty, since none of
   * their containers runs yet.
   */
  async #createFiles(ids: readonly string[], anew: ReadonlySet<string>): Promise<PreparedUnit[]> {
    const { ledger } = this.#options;
    const units = ids.flatMap((id) => this.state.units.get(id) ?? []);
    const made = new Set(units.filter(({ admin }) => !admin).map(({ slice }) => slice));
    for (const slice of made) if (anew.has(slice)) await this.#removeLeftovers(slice);
    const together = [...this.state.units.values()].filter(
      ({ id, slice, admin }) => ids.includes(id) || (!admin && anew.has(slice)),
    );
    const names = new Map<string, readonly string[]>();
    // Slices and specifications do not depend on each other: the kubelet waits for the longer of both.
    const results = await Promise.allSettled([
      inTurn(made, (slice) => this.#openSlice(slice, anew.has(slice))),
      inTurn(together, async (unit) => {
        names.set(unit.id, await this.#writeSpec(unit));
        await this.#options.records.write({ ...unit, phase: 'prepared' });
      }),
    ]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    for (const unit of units)
      if (unit.phase === 'preparing') ledger.state = withUnit(this.state, { ...unit, phase: 'prepared' });
    return units.map((unit) => ({ unit, cdiDevices: names.get(unit.id) ?? [] }));
  }

  /** Removes the files of an earlier slice of this name, unless units of the slice are in use. */
  async #removeLeftovers(slice: string): Promise<void> {
    if (unitsOfSlice(this.state, slice).every(({ phase }) => phase === 'preparing'))
      await this.#options.slices.remove(slice);
  }

  async #openSlice(slice: string, isNew: boolean): Promise<void> {
    const { slices } = this.#options;
    const limits = limitsOfUnits(this.state.node, slice, unitsOfSlice(this.state, slice));
    if (isNew) return slices.start(limits);
    await slices.prepare(slice, false);
    await slices.restore(limits);
  }

  /**
   * The slice, GPUs, variables and mounts that a container got through its claims; null if it has no claim with a
   * slice. All units of a container share one slice; a claim with administrator access has no slice.
   */
  givenTo(podUid: string, container: string): GivenContainer | null {
    const units = [...this.state.units.values()].filter(
      ({ phase, admin, consumers }) =>
        phase === 'prepared' &&
        !admin &&
        consumers.some((consumer) => consumer.podUid === podUid && consumer.container === container),
    );
    const [first] = units;
    if (first === undefined) return null;
    const uuids = new Set(units.flatMap(({ devices }) => devices.map(({ gpuUuid }) => gpuUuid)));
    const gpus = this.state.node.gpus.flatMap(({ gpu }) => (uuids.has(gpu.uuid) ? [gpu] : []));
    return { slice: first.slice, gpus, ...this.#editsOf(first).shared };
  }

  async #writeSpec(unit: ClaimUnit): Promise<readonly string[]> {
    const { specs, records, attributesOf } = this.#options;
    const hostPath = await records.writeMetadata(unit.id, deviceMetadata(unit, attributesOf));
    const { shared, devices } = this.#editsOf(unit);
    const mount = { hostPath, containerPath: deviceMetadataPath(unit), writable: false };
    return specs.writeUnit(unit.id, { shared: { ...shared, mounts: [...shared.mounts, mount] }, devices });
  }

  #editsOf(unit: ClaimUnit): UnitEdits {
    const { files, slices } = this.#options;
    const { node } = this.state;
    const gpus = new Map(node.gpus.map(({ gpu }) => [gpu.uuid, gpu]));
    const together = unit.admin ? [unit] : unitsOfSlice(this.state, unit.slice);
    const whole =
      unit.admin ||
      partsOfUnits(together).every(({ gpuUuid, cores, memoryBlocks: blocks }) => {
        const gpu = gpus.get(gpuUuid);
        return cores === CORES_PER_GPU && (gpu === undefined || blocks >= memoryBlocks(gpu.memoryBytes));
      });
    const seen = new Set<string>();
    return unitEdits({
      commonNodes: files.commonNodes(),
      libraryMounts: files.libraryMounts(!whole),
      writableFiles: slices.writableFiles,
      sliceDirectory: unit.admin ? null : slices.directoryOf(unit.slice),
      // Two devices of a unit on one GPU share one device node.
      gpuNodes: unit.devices.map(({ gpuUuid }) => {
        const gpu = gpus.get(gpuUuid);
        if (gpu === undefined || seen.has(gpuUuid)) return [];
        seen.add(gpuUuid);
        return files.gpuNodes(gpu);
      }),
    });
  }

  async #free(units: readonly ClaimUnit[]): Promise<void> {
    const { ledger, slices, specs, records, notices, log } = this.#options;
    if (units.length === 0) return;
    ledger.state = withoutUnits(
      this.state,
      units.map(({ id }) => id),
    );
    await ledger.save();
    for (const unit of units) {
      // A file that remains belongs to no allocation; the next reconciliation removes it.
      const failed = (error: unknown): void =>
        log.error({ err: error, unit: unit.id }, 'the files of a released claim cannot be removed; retrying');
      await specs.remove(unit.id).catch(failed);
      await records.remove(unit.id).catch(failed);
      if (unit.phase !== 'preparing') notices.released(unit);
      if (unit.admin || unitsOfSlice(this.state, unit.slice).length > 0) continue;
      await slices.remove(unit.slice).catch(failed);
      log.info({ claim: unit.claim, unit: unit.id }, 'claim released');
    }
    this.#releaseListeners.emit();
    this.#changed(units);
  }

  #changed(units: Iterable<ClaimUnit>): void {
    const slices = new Set([...units].map(({ slice }) => slice));
    this.#changeListeners.emit(slices);
  }

  #logPrepared(units: readonly ClaimUnit[]): void {
    const { notices, log } = this.#options;
    const indexes = new Map(this.state.node.gpus.map(({ gpu }) => [gpu.uuid, gpu.index]));
    for (const unit of units) {
      const { id, claim, request, devices } = unit;
      const gpus = [...new Set(devices.flatMap(({ gpuUuid }) => indexes.get(gpuUuid) ?? []))];
      const cores = devices.reduce((sum, device) => sum + device.cores, 0);
      log.info({ claim, request, unit: id, gpus, cores }, 'claim prepared');
      notices.prepared(unit, gpus);
    }
  }
}

async function inTurn<T>(entries: Iterable<T>, step: (entry: T) => Promise<unknown>): Promise<void> {
  for (const entry of entries) await step(entry);
}

function merged(before: ClaimUnit, after: ClaimUnit): ClaimUnit['consumers'] {
  const added = after.consumers.filter(
    ({ podUid, container }) =>
      !before.consumers.some((known) => known.podUid === podUid && known.container === container),
  );
  return [...before.consumers, ...added];
}
