import { test } from 'tap';
import { parseSimNode } from '../../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../../src/agent/gpus/sim/sim-driver.js';
import { systemClock } from '../../../src/host/clock.js';
import { startedDraNode } from './dra-node.js';

const A100 = { model: 'NVIDIA A100-SXM4-40GB', memoryMiB: 40_960, multiprocessors: 108, computeCapability: '8.0' };
const DIVIDED = JSON.stringify({ gpus: [{ ...A100, mig: ['2g.10gb', '1g.5gb'] }, A100] });

interface Device {
  readonly name: string;
  readonly attributes: Readonly<Record<string, object>>;
  readonly capacity: Readonly<Record<string, object>>;
  readonly allowMultipleAllocations?: boolean;
}

async function dividedNode(t: Parameters<typeof startedDraNode>[0], migStrategy: 'shared' | 'whole') {
  const parsed = parseSimNode(DIVIDED);
  if (!parsed.ok) throw new Error(parsed.reason);
  const driver = new SimDriver(parsed.node, systemClock, true);
  const node = await startedDraNode(t, 2, { driver }, { migStrategy });
  const [slice] = node.cluster.server.all('resourceslices');
  return { node, devices: (slice?.spec as { devices: readonly Device[] }).devices };
}

test('MIG instances are devices of their own class, after the GPUs and the smallest first', async (t) => {
  const { devices } = await dividedNode(t, 'shared');
  t.same(
    devices.map(({ name, attributes }) => [name.slice(0, 4), attributes['type'], attributes['profile']]),
    [
      ['gpu-', { string: 'gpu' }, undefined],
      ['mig-', { string: 'mig' }, { string: '1g.5gb' }],
      ['mig-', { string: 'mig' }, { string: '2g.10gb' }],
    ],
  );
  t.match(devices[1], {
    attributes: {
      uuid: { string: /^MIG-/u },
      parentUUID: { string: 'GPU-00000000-0000-0000-0000-000000000000' },
      multiprocessors: { int: 14 },
    },
    capacity: { cores: { value: '100' }, memory: { value: '4864Mi' } },
    allowMultipleAllocations: true,
  });
  t.same(
    Object.keys(devices[1]?.attributes ?? {}).filter((name) => name.startsWith('link')),
    [],
  );
});

test('MIG instances that are allocated whole are not shared, and GPUs are', async (t) => {
  const { devices } = await dividedNode(t, 'whole');
  t.same(
    devices.map(({ allowMultipleAllocations }) => allowMultipleAllocations),
    [true, undefined, undefined],
  );
});

test('claims get a share of an instance, or a whole one, with the device nodes of that instance', async (t) => {
  const { node, devices } = await dividedNode(t, 'shared');
  const [, small, middle] = devices.map(({ name }) => name);
  node.allocate('share', { cores: 30, memory: '1Gi', device: small ?? '' });
  node.allocate('whole', { device: middle ?? '' });
  for (const name of ['share', 'whole']) t.type(await node.given(name), Array, name);
  const units = [...node.agent.allocator.state.units.values()].flatMap((unit) => unit.devices);
  t.same(units.map(({ cores, memoryBlocks }) => [cores, memoryBlocks]).sort(), [
    [100, 39],
    [30, 4],
  ]);
  t.ok(units.every(({ gpuUuid }) => gpuUuid.startsWith('MIG-')));
});
