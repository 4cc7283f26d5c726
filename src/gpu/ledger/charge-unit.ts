import { CORES_PER_GPU, memoryBlocks } from '../resources.js';
import { describeClaim, partsOfUnits, type ClaimUnit } from './claim-unit.js';
import { modeOf } from './gpu-mode.js';
import { refuse, type RequestRefusal } from '../request.js';
import { slots, type LedgerState } from './state.js';

export type ChargedUnit = { readonly ok: true; readonly state: LedgerState } | RequestRefusal;

/**
 * Charges a unit. The scheduler has decided already, and the ledger checks the decision: the GPU must be in claim mode
 * and must have room beside all other units. A unit of the same id is replaced. An unhealthy GPU is accepted, because
 * it became unhealthy after the decision.
 */
export function chargeUnit(before: LedgerState, unit: ClaimUnit): ChargedUnit {
  const state = withoutUnits(before, [unit.id]);
  const free = new Map(slots(state).map((slot) => [slot.gpu.uuid, slot]));
  const name = describeClaim(unit.claim);
  for (const part of partsOfUnits([unit])) {
    const slot = free.get(part.gpuUuid);
    if (slot === undefined) return refuse('unknown-ids', `${name}: GPU ${part.gpuUuid} is not on this node any more`);
    if (unit.admin) continue;
    const mode = modeOf(state, part.gpuUuid);
    if (mode !== 'claims') {
      const owner =
        mode === null
          ? 'is held by pods of the device plugin and by claims at once'
          : 'belongs to the device plugin on this node';
      return refuse('wrong-mode', `${name}: GPU ${part.gpuUuid} ${owner}`);
    }
    if (part.cores > slot.freeCores || part.memoryBlocks > memoryBlocks(slot.freeMemoryBytes))
      return refuse('nothing-fits', noRoom(state, unit, part.gpuUuid));
  }
  return { ok: true, state: withUnit(state, unit) };
}

function noRoom(state: LedgerState, unit: ClaimUnit, gpuUuid: string): string {
  const part = partsOfUnits([unit]).find((entry) => entry.gpuUuid === gpuUuid);
  const holders = unitsOn(state, gpuUuid).filter(({ admin }) => !admin);
  const held = partsOfUnits(holders).find((entry) => entry.gpuUuid === gpuUuid);
  const asked = `${describeClaim(unit.claim)} asks for ${part?.cores ?? 0} cores and ${gibibytes(part?.memoryBlocks ?? 0)} of GPU ${gpuUuid}`;
  const names = [...new Set(holders.map(({ claim }) => describeClaim(claim)))];
  if (names.length === 0) return `${asked}; pods of the device plugin hold the rest of it`;
  const verb = names.length === 1 ? 'holds' : 'hold';
  const has = names.length === 1 ? 'has' : 'have';
  return `${asked}; ${names.join(', ')} ${verb} ${held?.cores ?? 0} of ${CORES_PER_GPU} cores and ${gibibytes(held?.memoryBlocks ?? 0)} there and ${has} not been released`;
}

const gibibytes = (blocks: number): string => `${blocks / 4} GiB`;

/** Units that have a device on a GPU. */
export function unitsOn(state: LedgerState, gpuUuid: string): ClaimUnit[] {
  return [...state.units.values()].filter(({ devices }) => devices.some((device) => device.gpuUuid === gpuUuid));
}

/** The units of a claim in any state. */
export function unitsOfClaim(state: LedgerState, claimUid: string): ClaimUnit[] {
  return [...state.units.values()].filter(({ claim }) => claim.uid === claimUid);
}

/** The units whose containers see one slice. */
export function unitsOfSlice(state: LedgerState, slice: string): ClaimUnit[] {
  return [...state.units.values()].filter((unit) => unit.slice === slice && !unit.admin);
}

/** Adds a unit without a check: its container runs already. */
export function withUnit(state: LedgerState, unit: ClaimUnit): LedgerState {
  return { ...state, units: new Map(state.units).set(unit.id, unit) };
}

export function withoutUnits(state: LedgerState, ids: Iterable<string>): LedgerState {
  const units = new Map(state.units);
  let changed = false;
  for (const id of ids) changed = units.delete(id) || changed;
  return changed ? { ...state, units } : state;
}
