import { test } from 'tap';
import { mayWait, type WrittenInventory } from '../../../src/agent/node/node-report.js';
import { encodeInventory, type InventoryGpu } from '../../../src/gpu/node-inventory.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';

const MEMORY = 16 * 2 ** 30;

function written(at: number, ...gpus: readonly Partial<InventoryGpu>[]): WrittenInventory {
  const all = gpus.map((differing, index): InventoryGpu => ({
    gpu: {
      index,
      minor: index,
      uuid: `GPU-${index}`,
      pciBusId: `00000000:0${index}:00.0`,
      model: 'Tesla T4',
      memoryBytes: MEMORY,
      numaNode: null,
    },
    ...{ healthy: true, reason: '', foreign: false, freeCores: 100, freeMemoryBytes: MEMORY },
    ...differing,
  }));
  return { text: encodeInventory({ gpus: all, topology: uniformTopology(all.length) }), gpus: all, at };
}

test('less free room waits for a minute, because the extender knows the pods that took it', (t) => {
  const before = written(0, {}, { freeCores: 50 });
  t.ok(mayWait(before, written(2_000, { freeCores: 70 }, { freeCores: 50 })));
  t.notOk(mayWait(before, written(60_000, { freeCores: 70 }, { freeCores: 50 })), 'a minute is over');
  t.notOk(mayWait(before, written(2_000, {}, { freeCores: 50 })), 'nothing changed');
  t.end();
});

test('more room and other changes of a GPU are written at once', (t) => {
  const before = written(0, {}, { freeCores: 50 });
  t.notOk(mayWait(before, written(2_000, { freeCores: 70 }, {})), 'the other GPU has more room');
  t.notOk(mayWait(before, written(2_000, { healthy: false, reason: 'lost' }, { freeCores: 50 })));
  t.notOk(mayWait(before, written(2_000, { foreign: true }, { freeCores: 50 })), 'a foreign process appeared');
  t.notOk(mayWait(before, written(2_000, { freeCores: 70 })), 'a GPU is gone');
  t.end();
});
