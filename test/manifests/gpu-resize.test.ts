import fc from 'fast-check';
import { test } from 'tap';
import {
  chargedAmounts,
  encodeResizeStatus,
  readResize,
  readResizeStatus,
  type ResizeStatus,
} from '../../src/manifests/gpu-resize.js';

const CORES = 'tencent.com/vcuda-core-resize';
const MEMORY = 'tencent.com/vcuda-memory-resize';
const STATUS = 'tencent.com/vcuda-resize-status';
const REQUESTED = { cores: 30, memoryBlocks: 8 };

const from = (annotations: Readonly<Record<string, string>>) => (key: string) => annotations[key];
const read = (annotations: Readonly<Record<string, string>>) => readResize(from(annotations), 'main', REQUESTED);

test('a resize names cores, memory or both, for all containers or for some', (t) => {
  t.equal(read({}), null);
  t.same(read({ [CORES]: '60' }), { amounts: { cores: 60, memoryBlocks: 8 }, problems: [] });
  t.same(read({ [CORES]: 'side=60,main=70', [MEMORY]: '24' })?.amounts, { cores: 70, memoryBlocks: 24 });
  t.same(read({ [MEMORY]: '6300Mi' })?.amounts, { cores: 30, memoryBlocks: 25 }, 'rounded up to blocks');
  t.equal(read({ [CORES]: 'side=60' }), null);
  t.same(read({ [CORES]: '10', [MEMORY]: '1' })?.amounts, REQUESTED, 'not less than what it requested');
  t.same(read({ [CORES]: '101', [MEMORY]: 'much' }), {
    amounts: REQUESTED,
    problems: [
      `${CORES}: "101" is not a number of cores from 1 to 100`,
      `${MEMORY}: "much" is not a number of blocks of 256 MiB, or of bytes with a unit such as 6Gi`,
    ],
  });
  t.end();
});

test('a status is read as it was written, and any other text is none', (t) => {
  const amounts = fc.record({ cores: fc.nat(100), memoryBlocks: fc.nat(1_000) });
  const status: fc.Arbitrary<ResizeStatus> = fc.oneof(
    amounts,
    fc
      .record({
        has: amounts,
        pending: fc.record({
          reason: fc.constantFrom('Deferred' as const, 'Infeasible' as const, 'InProgress' as const),
          message: fc.string(),
          asked: amounts,
        }),
      })
      .map(({ has, pending }) => ({ ...has, pending })),
  );
  fc.assert(
    fc.property(status, status, (main, side) => {
      const statuses = new Map([
        ['main', main],
        ['side', side],
      ]);
      const text = encodeResizeStatus(statuses);
      for (const [name, each] of statuses) t.same(readResizeStatus(text, name), each);
      t.equal(encodeResizeStatus(new Map([...statuses].reverse())), text);
    }),
    { numRuns: 100 },
  );
  for (const text of ['', '{', '[]', 'null', '{"main":{"cores":-1,"memoryBlocks":1}}', '{"main":{"cores":"5"}}'])
    t.equal(readResizeStatus(text, 'main'), null, text);
  t.equal(readResizeStatus('{"__proto__":{"cores":5,"memoryBlocks":5}}', 'toString'), null);
  t.end();
});

test('the most of request, possession and wish is charged', (t) => {
  const status = (has: ResizeStatus): string => encodeResizeStatus(new Map([['main', has]]));
  const asked = { cores: 90, memoryBlocks: 8 };
  const charged = (annotations: Readonly<Record<string, string>>) =>
    chargedAmounts(from(annotations), 'main', REQUESTED);
  t.same(charged({}), REQUESTED);
  t.same(charged({ [CORES]: '90' }), asked);
  const has = { cores: 50, memoryBlocks: 16 };
  t.same(charged({ [STATUS]: status(has) }), has);
  t.same(charged({ [CORES]: '90', [STATUS]: status(has) }), { cores: 90, memoryBlocks: 16 });
  t.end();
});
