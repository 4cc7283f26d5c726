import { test } from 'tap';
import type { Allocation } from '../../../src/gpu/ledger/allocation.js';
import { isHeld } from '../../../src/gpu/ledger/made-instance.js';

const MADE = { gpuUuid: 'GPU-0', profileId: 19, start: 3, device: 'gpu-0-1g-5gb-19-3', uuid: 'MIG-0' };

test('a pod of the device plugin holds an instance after a change of the strategy', (t) => {
  const holding = (gpuUuid: string) => {
    const allocation = { parts: [{ gpuUuid, coreIds: [], memoryIds: [] }] } as unknown as Allocation;
    return { units: new Map(), allocations: new Map([['a', allocation]]) };
  };
  t.equal(isHeld(holding('MIG-0'), MADE), true);
  t.equal(isHeld(holding('MIG-1'), MADE), false);
  t.equal(isHeld(holding('MIG-0'), { ...MADE, uuid: null }), false);
  t.end();
});
