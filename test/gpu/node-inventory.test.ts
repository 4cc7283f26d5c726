import fc from 'fast-check';
import { test } from 'tap';
import {
  decodeInventory,
  encodeInventory,
  type InventoryGpu,
  type NodeInventory,
} from '../../src/gpu/node-inventory.js';
import { topologyOfPairs } from '../../src/gpu/topology/topology.js';

function card(index: number, differing: Partial<InventoryGpu> = {}): InventoryGpu {
  const gpu = {
    index,
    minor: index + 1,
    uuid: `GPU-${index}`,
    pciBusId: `00000000:0${index}:00.0`,
    model: 'NVIDIA H200',
    memoryBytes: 150_754_820_096,
    numaNode: index % 2,
  };
  return {
    gpu,
    healthy: true,
    reason: '',
    foreign: false,
    freeCores: 100,
    freeMemoryBytes: gpu.memoryBytes,
    ...differing,
  };
}

const inventory: NodeInventory = {
  gpus: [
    card(0),
    card(1, { healthy: false, reason: 'XID 79' }),
    card(2, { foreign: true, freeCores: 30, freeMemoryBytes: 1024 }),
  ],
  topology: topologyOfPairs(3, (a, b) => (b - a === 1 ? { level: 'PIX', nvlinks: 4 } : { level: 'SYS', nvlinks: 0 })),
};

test('the reader returns what the writer wrote', (t) => {
  const offering = inventory.gpus.map((gpu) => ({ ...gpu, offered: { freeCores: 100, freeMemoryBytes: 2048 } }));
  for (const written of [
    inventory,
    { ...inventory, allowsResize: true },
    { ...inventory, gpus: offering, suspendFactor: 3 },
  ])
    t.same(decodeInventory(encodeInventory(written)), { ok: true, inventory: written });
  t.same(
    decodeInventory(encodeInventory({ gpus: [], topology: topologyOfPairs(0, () => ({ level: 'SYS', nvlinks: 0 })) }))
      .ok,
    true,
  );
  t.end();
});

test('the text is as documented', (t) => {
  t.same(JSON.parse(encodeInventory(inventory)), {
    version: 1,
    cards: [
      {
        index: 0,
        minor: 1,
        uuid: 'GPU-0',
        pciBusId: '00000000:00:00.0',
        model: 'NVIDIA H200',
        memoryBytes: 150754820096,
        numaNode: 0,
        health: 'healthy',
        foreign: false,
        freeCores: 100,
        freeMemoryBytes: 150754820096,
      },
      {
        index: 1,
        minor: 2,
        uuid: 'GPU-1',
        pciBusId: '00000000:01:00.0',
        model: 'NVIDIA H200',
        memoryBytes: 150754820096,
        numaNode: 1,
        health: 'unhealthy',
        reason: 'XID 79',
        foreign: false,
        freeCores: 100,
        freeMemoryBytes: 150754820096,
      },
      {
        index: 2,
        minor: 3,
        uuid: 'GPU-2',
        pciBusId: '00000000:02:00.0',
        model: 'NVIDIA H200',
        memoryBytes: 150754820096,
        numaNode: 0,
        health: 'healthy',
        foreign: true,
        freeCores: 30,
        freeMemoryBytes: 1024,
      },
    ],
    levels: [['PIX', 'SYS'], ['PIX']],
    nvlinks: [[4, 0], [4]],
  });
  t.end();
});

test('the reader ignores unknown fields and refuses a later version', (t) => {
  const document = JSON.parse(encodeInventory(inventory)) as Record<string, unknown>;
  t.ok(decodeInventory(JSON.stringify({ ...document, migs: [] })).ok);
  t.same(decodeInventory(JSON.stringify({ ...document, version: 2 })), {
    ok: false,
    reason: 'version 2, this reads 1',
  });
  t.end();
});

test('an unknown state of health counts as unhealthy', (t) => {
  const text = encodeInventory(inventory).replace('"healthy"', '"recovering"');
  const decoded = decodeInventory(text);
  t.equal(decoded.ok && decoded.inventory.gpus[0]?.healthy, false);
  t.end();
});

test('the reader refuses an inconsistent inventory and names the position', (t) => {
  const document = JSON.parse(encodeInventory(inventory)) as { cards: Record<string, unknown>[] };
  const withGpu = (differing: Record<string, unknown>) => ({
    ...document,
    cards: [{ ...document.cards[0], ...differing }, ...document.cards.slice(1)],
  });
  const rows: [unknown, RegExp][] = [
    ['text', /^the inventory is no object/],
    [{ ...document, cards: {} }, /^cards is no list/],
    [{ ...document, cards: [1] }, /^GPU 0 is no object/],
    [withGpu({ index: 1 }), /^GPUs 0 and 1 have the same index or UUID/],
    [withGpu({ uuid: 'GPU-2' }), /^GPUs 0 and 2 have/],
    [withGpu({ index: -1 }), /^GPU 0: index is no whole number/],
    [withGpu({ memoryBytes: 1.5 }), /^GPU 0: memoryBytes/],
    [withGpu({ freeCores: '100' }), /^GPU 0: freeCores/],
    [withGpu({ model: 'x'.repeat(300) }), /^GPU 0: model/],
    [{ ...document, levels: [['PIX'], ['PIX']] }, /^levels is not the upper triangle of 3 GPUs/],
    [{ ...document, levels: [['PIX', 'NV4'], ['PIX']] }, /^levels\[0\]\[1\] is "NV4"/],
    [{ ...document, levels: [['PIX', 'X'], ['PIX']] }, /^levels\[0\]\[1\] is "X"/],
    [{ ...document, nvlinks: undefined }, /^nvlinks is no list/],
  ];
  for (const [value, reason] of rows) {
    const decoded = decodeInventory(JSON.stringify(value));
    t.equal(decoded.ok, false);
    t.match(decoded.ok ? '' : decoded.reason, reason);
  }
  t.match(decodeInventory('{'), { ok: false, reason: 'not JSON' });
  t.end();
});

test('more free capacity than total capacity counts as all of it', (t) => {
  const decoded = decodeInventory(
    encodeInventory({ ...inventory, gpus: [card(0, { freeCores: 900, freeMemoryBytes: 9e15 }), card(1), card(2)] }),
  );
  t.match(decoded, { ok: true, inventory: { gpus: [{ freeCores: 100, freeMemoryBytes: 150754820096 }] } });
  t.end();
});

test('the reader accepts any text without an exception', (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => typeof decodeInventory(text).ok === 'boolean'),
      { numRuns: 1000 },
    ),
  );
  const valid = encodeInventory(inventory);
  const cut = fc.property(fc.nat(valid.length), fc.nat(valid.length), fc.string({ maxLength: 3 }), (from, to, text) => {
    decodeInventory(valid.slice(0, from) + text + valid.slice(to));
  });
  t.doesNotThrow(() => fc.assert(cut, { numRuns: 1000 }));
  t.end();
});
