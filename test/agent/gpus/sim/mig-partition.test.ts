import fc from 'fast-check';
import { test } from 'tap';
import type { Driver } from '../../../../src/agent/gpus/driver.js';
import {
  countersOf,
  countersOfGpu,
  overlap,
  placesOf,
  type Counters,
  type MigProfile,
  type PartitionableGpu,
} from '../../../../src/gpu/mig-partition.js';
import { cases } from '../../../cases.js';
import { eventually } from '../../../harness/eventually.js';
import { notBuilt, SimulatedMachine } from './simulated-machine.js';

const skip = notBuilt;

const gpu = (model: string, memoryMiB: number, multiprocessors: number, computeCapability: string) => ({
  ...{ model, memoryMiB, multiprocessors, computeCapability },
  mig: [],
});
const MACHINE = new SimulatedMachine(
  JSON.stringify({
    gpus: [
      gpu('NVIDIA A100-SXM4-40GB', 40_960, 108, '8.0'),
      gpu('NVIDIA A100-SXM4-80GB', 81_920, 108, '8.0'),
      gpu('NVIDIA H100 80GB HBM3', 81_920, 132, '9.0'),
      gpu('NVIDIA H200', 143_771, 132, '9.0'),
    ],
  }),
);

interface Place {
  readonly profile: MigProfile;
  readonly start: number;
}

async function partitionable(driver: Driver): Promise<readonly PartitionableGpu[]> {
  const { partitionable: gpus = [], gpus: shared } = await driver.inventory();
  if (shared.length > 0) throw new Error('every GPU is in MIG mode');
  return gpus;
}

/** Whether the counters of a GPU are enough for all of these places, as the scheduler adds them up. */
function fits(total: Counters, places: readonly Place[]): boolean {
  const taken = new Map<string, number>();
  for (const { profile, start } of places)
    for (const [name, amount] of Object.entries(countersOf(profile, start)))
      taken.set(name, (taken.get(name) ?? 0) + amount);
  return [...taken].every(([name, amount]) => amount <= (total[name] ?? 0));
}

const collide = (a: Place, b: Place): boolean =>
  overlap({ start: a.start, size: a.profile.size }, { start: b.start, size: b.profile.size });

test('the driver tells profiles and places of each model', { skip }, async (t) => {
  const driver = MACHINE.open({ mig: 'partitioned' });
  const gpus = await partitionable(driver);
  await driver.close();
  t.same(
    gpus.map(({ profiles }) => profiles.map(({ name }) => name).sort()),
    [
      ['1g.10gb', '1g.5gb', '2g.10gb', '3g.20gb', '4g.20gb', '7g.40gb'],
      ['1g.10gb', '1g.20gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'],
      ['1g.10gb', '1g.20gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'],
      ['1g.18gb', '1g.35gb', '2g.35gb', '3g.71gb', '4g.71gb', '7g.141gb'],
    ],
  );
  for (const one of gpus) t.equal(placesOf(one).length, 18);
});

test('every set of places that do not overlap fits the counters of its GPU, and no other set', { skip }, async (t) => {
  const driver = MACHINE.open({ mig: 'partitioned' });
  const gpus = await partitionable(driver);
  await driver.close();
  for (const one of gpus) {
    const places = placesOf(one);
    const total = countersOfGpu(one, () => false);
    let sets = 0;
    const wrong: string[] = [];
    const extend = (chosen: readonly Place[], from: number): void => {
      sets += 1;
      if (!fits(total, chosen)) wrong.push(`does not fit: ${describe(chosen)}`);
      for (let at = from; at < places.length; at++) {
        const next = places[at] as Place;
        if (chosen.some((other) => collide(other, next))) {
          if (fits(total, [...chosen, next])) wrong.push(`fits: ${describe([...chosen, next])}`);
        } else extend([...chosen, next], at + 1);
      }
    };
    extend([], 0);
    t.same(wrong, [], `${one.gpu.model}: ${sets} sets`);
  }
});

const describe = (places: readonly Place[]): string =>
  places.map(({ profile, start }) => `${profile.name}@${start}`).join(' ');

test('NVML creates an instance exactly where the counters allow it', { skip }, async (t) => {
  const driver = MACHINE.open({ mig: 'partitioned' });
  const { partitioner } = driver;
  const gpus = await partitionable(driver);
  if (partitioner === null) throw new Error('the simulated libraries divide GPUs');
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: gpus.length - 1 }),
      fc.array(fc.nat({ max: 17 }), { minLength: 2, maxLength: 9 }),
      async (number, order) => {
        const one = gpus[number] as PartitionableGpu;
        const places = placesOf(one);
        const total = countersOfGpu(one, () => false);
        const made: Place[] = [];
        for (const at of order) {
          const place = places[at] as Place;
          const where = { gpuUuid: one.gpu.uuid, profileId: place.profile.id, start: place.start };
          const created = await partitioner.create(where).then(
            () => true,
            () => false,
          );
          if (created !== fits(total, [...made, place]))
            throw new Error(`${describe([...made, place])}: ${created ? 'created' : 'refused'}`);
          if (created) made.push(place);
        }
        for (const { profile, start } of made) {
          const where = { gpuUuid: one.gpu.uuid, profileId: profile.id, start };
          if ((await partitioner.destroy(where, null)) !== 'destroyed') throw new Error('not destroyed');
        }
      },
    ),
    { numRuns: cases(10, 40) },
  );
  t.same(
    (await Promise.all(gpus.map(({ gpu: { uuid } }) => partitioner.instances(uuid)))).flat(),
    [],
    'all are destroyed',
  );
  await driver.close();
});

test(
  'instances appear in the inventory with their placement, and listeners hear of each change',
  { skip },
  async (t) => {
    const driver = MACHINE.open({ mig: 'partitioned' });
    const heard: string[] = [];
    driver.subscribe(({ kind }) => heard.push(kind));
    const { partitioner } = driver;
    const [one] = await partitionable(driver);
    if (partitioner === null || one === undefined) throw new Error('the simulated libraries divide GPUs');
    const where = { gpuUuid: one.gpu.uuid, profileId: 9, start: 4 };
    const uuid = await partitioner.create(where);
    t.match((await driver.inventory()).gpus, [
      { uuid, instance: { profile: '3g.20gb', parentUuid: one.gpu.uuid, placement: { profileId: 9, start: 4 } } },
    ]);
    await t.rejects(partitioner.create(where), { message: /insufficient resources/u });
    t.equal(await partitioner.destroy(where, 'MIG-another'), 'foreign');
    t.equal(await partitioner.destroy(where, uuid), 'destroyed');
    t.equal(await partitioner.destroy(where, uuid), 'missing');
    t.same((await driver.inventory()).gpus, []);
    t.same(heard, ['changed', 'changed']);
    await driver.close();
  },
);

/** Opens the machine with a short interval of its surveys; records what listeners hear. */
async function surveyed(t: { teardown(action: () => Promise<void>): void }, tickMs: number) {
  const driver = MACHINE.open({ mig: 'partitioned', tickMs });
  t.teardown(() => driver.close());
  const heard: string[] = [];
  driver.subscribe(({ kind }) => heard.push(kind));
  const { partitioner } = driver;
  const [one] = (await driver.inventory()).partitionable ?? [];
  if (partitioner === null || one === undefined) throw new Error('the simulated libraries divide GPUs');
  const small = (start: number) => ({ gpuUuid: one.gpu.uuid, profileId: 19, start });
  const found = async () => (await driver.inventory()).partitionable?.[0]?.found ?? [];
  return { driver, heard, partitioner, small, found };
}

test('a created instance is reported also if the machine cannot be read afterwards', { skip }, async (t) => {
  const { partitioner, small, found, heard } = await surveyed(t, 60_000);
  await MACHINE.order('fault', 'nvmlDeviceGetCount_v2', 'unknown', '--times', '1');
  const uuid = await partitioner.create(small(2));
  t.match(await found(), [{ profileId: 19, start: 2, uuids: [uuid] }]);
  t.same(heard, ['unreachable', 'reachable', 'changed'], 'the next call reads it');
  t.equal(await partitioner.destroy(small(2), uuid), 'destroyed');
});

test('surveys during the own changes cause no outage, and hide no instance', { skip }, async (t) => {
  const { driver, partitioner, small, heard, found } = await surveyed(t, 1);
  for (let round = 0; round < cases(10, 40); round++) {
    const uuid = await partitioner.create(small(1));
    const { gpus } = await driver.inventory();
    if (!gpus.some((gpu) => gpu.uuid === uuid)) t.fail(`round ${round}: the created instance is not listed`);
    await partitioner.destroy(small(1), uuid);
    if ((await found()).some(({ start }) => start === 1)) t.fail(`round ${round}: the destroyed instance is listed`);
  }
  t.same(
    heard.filter((kind) => kind !== 'changed'),
    [],
  );
});

test('a survey finds a GPU instance without compute instance', { skip }, async (t) => {
  const { found, heard } = await surveyed(t, 1);
  const admin = await surveyed(t, 60_000);
  await MACHINE.order('fault', 'nvmlGpuInstanceCreateComputeInstance', 'unknown', '--times', '1');
  await MACHINE.order('fault', 'nvmlGpuInstanceDestroy', 'unknown', '--times', '1');
  await t.rejects(admin.partitioner.create(admin.small(4)));
  await eventually(() => heard.includes('changed'), 'the change');
  t.match(await found(), [{ start: 4, uuids: [] }]);
  t.equal(await admin.partitioner.destroy(admin.small(4), null), 'destroyed');
});

test('an instance that vanishes while it is read is read again', { skip }, async (t) => {
  const admin = await surveyed(t, 60_000);
  const uuid = await admin.partitioner.create(admin.small(4));
  for (const call of ['nvmlDeviceGetGpuInstanceId', 'nvmlGpuInstanceGetInfo', 'nvmlDeviceGetUUID']) {
    await MACHINE.order('fault', call, 'unknown', '--times', '1');
    t.match(await admin.partitioner.instances(admin.small(4).gpuUuid), [{ start: 4, uuids: [uuid] }], call);
  }
  for (const call of ['nvmlDeviceGetGpuInstanceId', 'nvmlDeviceGetComputeInstanceId', 'nvmlGpuInstanceGetInfo']) {
    await MACHINE.order('fault', call, 'unknown', '--times', '1');
    const other = await surveyed(t, 60_000);
    t.match((await other.driver.inventory()).gpus, [{ uuid, instance: { placement: { start: 4 } } }], call);
  }
  t.equal(await admin.partitioner.destroy(admin.small(4), uuid), 'destroyed');
});

test('an instance has the profile name of its place, whatever the product is called', { skip }, async (t) => {
  const admin = await surveyed(t, 60_000);
  const uuid = await admin.partitioner.create(admin.small(4));
  for (const call of ['nvmlDeviceGetName', 'nvmlDeviceGetAttributes_v2']) await MACHINE.order('fault', call, 'unknown');
  const other = await surveyed(t, 60_000);
  await MACHINE.order('clear');
  t.match((await other.driver.inventory()).gpus, [{ uuid, instance: { profile: '1g.5gb' } }]);
  t.equal(await admin.partitioner.destroy(admin.small(4), uuid), 'destroyed');
});
