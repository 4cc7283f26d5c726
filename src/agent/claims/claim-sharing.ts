import { unitsOfSlice } from '../../gpu/ledger/charge-unit.js';
import type { ClaimUnit } from '../../gpu/ledger/claim-unit.js';
import type { ClaimAllocator } from '../allocator/index.js';
import type { ClaimAnnotations } from './claim-annotations.js';
import type { SliceSharing } from '../slices/ports.js';

/** Tells from the ledger which containers and claims share a slice. */
export function claimSharing(claims: ClaimAllocator, annotations: ClaimAnnotations): SliceSharing {
  const unitsOf = (slice: string): ClaimUnit[] => unitsOfSlice(claims.state, slice).filter(({ admin }) => !admin);
  return {
    containersOf: (slice) => unitsOf(slice).flatMap(({ consumers }) => consumers),
    claimAnnotations: (slice) => {
      const uids = new Set(unitsOf(slice).map(({ claim }) => claim.uid));
      return [...uids].map((uid) => annotations.of(uid)).filter(({ size }) => size > 0);
    },
    onChange: (listener) => {
      const leave = [
        claims.onChanged((slices) => slices.forEach((slice) => listener(slice))),
        annotations.onChange((uid) => {
          const slices = [...claims.state.units.values()].flatMap(({ claim, slice }) =>
            claim.uid === uid ? slice : [],
          );
          new Set(slices).forEach((slice) => listener(slice));
        }),
      ];
      return () => leave.forEach((each) => each());
    },
  };
}
