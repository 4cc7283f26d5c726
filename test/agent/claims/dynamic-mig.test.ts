import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'tap';
import { placeName } from '../../../src/gpu/claims/names.js';
import type { MadeInstance } from '../../../src/gpu/mig-partition.js';
import { packageFile } from '../../../src/host/package-files.js';
import type { MigPartitioner } from '../../../src/agent/gpus/driver.js';
import { eventually } from '../../harness/eventually.js';
import { noCompiler, notBuilt, SimulatedMachine } from '../gpus/sim/simulated-machine.js';
import { startedDraNode, type DraNode } from './dra-node.js';

// The agent creates MIG instances for claims on the simulated NVML, and destroys them.

const skip = notBuilt;

const A100 = { model: 'NVIDIA A100-SXM4-40GB', memoryMiB: 40_960, multiprocessors: 108, computeCapability: '8.0' };
const MACHINE = new SimulatedMachine(JSON.stringify({ gpus: [{ ...A100, mig: [] }, A100] }));
const GPU = MACHINE.node.gpus[0]?.uuid ?? '';

const SMALL = 19;
const MIDDLE = 9;
const NAMES = new Map([
  [SMALL, '1g.5gb'],
  [14, '2g.10gb'],
  [MIDDLE, '3g.20gb'],
  [5, '4g.20gb'],
]);
const place = (profileId: number, start: number): string =>
  placeName(GPU, NAMES.get(profileId) ?? '', { profileId, start });

type Teardown = Parameters<typeof startedDraNode>[0];

/** A second view of the machine, as another administrator has it. */
function administrator(t: Teardown): MigPartitioner {
  const driver = MACHINE.open({ mig: 'partitioned' });
  t.teardown(() => driver.close());
  if (driver.partitioner === null) throw new Error('the simulated libraries divide GPUs');
  return driver.partitioner;
}

/** Places of the instances that exist, as `profile id@start`. */
async function present(admin: MigPartitioner): Promise<readonly string[]> {
  const found = await admin.instances(GPU);
  return found.map(({ profileId, start }) => `${profileId}@${start}`).sort();
}

/** Whether any process has a context on the machine. */
const isUsed = async (): Promise<boolean> => (await MACHINE.order('status')).includes('"process":');

/** Writes the checkpoint of an agent that has created this instance alone. */
async function recordInstance(node: DraNode, instance: MadeInstance): Promise<void> {
  const { ledger } = node.agent.allocator;
  await ledger.run(async () => {
    ledger.state = { ...ledger.state, instances: new Map([[instance.device, instance]]) };
    await ledger.save();
  });
}

const started = (t: Teardown): Promise<DraNode> =>
  startedDraNode(
    t,
    2,
    { claimPatience: { roomMs: 100, podMs: 10 } },
    {
      migStrategy: 'dynamic',
      simNodePath: MACHINE.nodePath,
      simStatePath: MACHINE.statePath,
      nativePath: packageFile('native/build'),
    },
  );

interface Slice {
  readonly devices?: readonly {
    readonly name: string;
    readonly attributes: Readonly<Record<string, object>>;
    readonly consumesCounters?: readonly object[];
  }[];
  readonly sharedCounters?: readonly { readonly counters: Readonly<Record<string, { readonly value: string }>> }[];
}

const slices = (node: DraNode): readonly Slice[] =>
  node.cluster.server.all('resourceslices').map(({ spec }) => spec as Slice);

/** The one CDI specification, as it was written for the runtime. */
const specOf = (node: DraNode, cdiDevice: string) => {
  const [, name = ''] = cdiDevice.split('=');
  const text = execFileSync('grep', ['-rl', `"${name}"`, node.node.config.cdiPath], { encoding: 'utf8' }).trim();
  return readFileSync(text, 'utf8');
};

test(
  'every place of a profile is a device that takes counters of its GPU, and the GPU itself is none',
  { skip },
  async (t) => {
    const node = await started(t);
    await eventually(() => slices(node).length === 2, 'both slices');
    const [sets, devices] = slices(node);
    t.match(sets?.sharedCounters, [
      {
        counters: {
          multiprocessors: { value: '98' },
          'memory-slice-0': { value: '1' },
          'memory-slice-7': { value: '1' },
        },
      },
    ]);
    const places = devices?.devices?.filter(({ consumesCounters }) => consumesCounters !== undefined) ?? [];
    t.equal(places.length, 18);
    t.equal(devices?.devices?.length, 19, 'and the GPU without MIG');
    t.match(
      places.find(({ name }) => name === place(MIDDLE, 4)),
      {
        attributes: { type: { string: 'mig' }, profile: { string: '3g.20gb' }, parentUUID: { string: GPU } },
        consumesCounters: [{ counters: { multiprocessors: { value: '42' }, 'memory-slice-4': { value: '1' } } }],
      },
    );
    t.notOk(places.some(({ attributes }) => 'uuid' in attributes));
  },
);

test(
  'a claim gets an instance that is created for it, and its place is cut anew after the release',
  { skip },
  async (t) => {
    const admin = administrator(t);
    const node = await started(t);
    node.allocate('small', { device: place(SMALL, 6) });
    const [device] = await node.given('small');
    t.same(await present(admin), ['19@6']);
    const spec = specOf(node, device ?? '');
    const [found] = await admin.instances(GPU);
    const access = 3 + (found?.gpuInstance ?? 0) * 9;
    for (const name of ['/dev/nvidia0', `nvidia-cap${access}"`, `nvidia-cap${access + 1}"`]) t.match(spec, name);
    const [unit] = [...node.agent.allocator.state.units.values()];
    t.same(
      unit?.devices.map(({ gpuUuid, cores, memoryBlocks }) => [gpuUuid, cores, memoryBlocks]),
      [[found?.uuids[0], 100, 19]],
    );
    const environment = {
      ...process.env,
      LD_LIBRARY_PATH: packageFile('native/build/sim'),
      CUDA_VISIBLE_DEVICES: found?.uuids[0],
    };
    const total = execFileSync(packageFile('native/build/gpu-probe'), ['total'], {
      env: environment,
      encoding: 'utf8',
    });
    t.equal(total.trim(), 'total 4608', 'what the driver leaves of 4864 MiB');
    t.type(await node.given('small'), Array);
    t.same(await present(admin), ['19@6'], 'preparing again creates nothing');

    node.allocate('middle', { device: place(MIDDLE, 0) });
    t.type(await node.given('middle'), Array);
    t.same(await present(admin), ['19@6', '9@0']);
    t.same(await node.unprepare('small', 'middle'), { 'uid-small': { error: '' }, 'uid-middle': { error: '' } });
    t.same(await present(admin), []);

    node.allocate('other', { device: place(14, 4) });
    t.type(await node.given('other'), Array);
    t.same(await present(admin), ['14@4']);
    await node.unprepare('other');
    t.same(await present(admin), []);
    t.equal(node.agent.allocator.state.instances.size, 0);
  },
);

test('after a restart, claims keep their instances, with and without the checkpoint', { skip }, async (t) => {
  const admin = administrator(t);
  const node = await started(t);
  node.allocate('kept', { device: place(SMALL, 5) });
  t.type(await node.given('kept'), Array);
  const [before] = await admin.instances(GPU);
  await node.recordClaims('kept');
  for (const lose of [false, true]) {
    await node.node.stopAgent();
    if (lose) await node.loseCheckpoint();
    await node.node.startAgent();
    t.same(await admin.instances(GPU), [before], lose ? 'without the checkpoint' : 'with it');
    t.equal(node.agent.allocator.state.units.size, 1);
    t.equal(node.agent.allocator.state.instances.get(place(SMALL, 5))?.uuid, before?.uuids[0]);
    t.type(await node.given('kept'), Array);
  }
  await node.unprepare('kept');
  t.same(await present(admin), []);
});

test(
  'an instance that a crash left without a claim is destroyed at the next start, with its UUID on record or without',
  { skip },
  async (t) => {
    const admin = administrator(t);
    const node = await started(t);
    for (const record of [true, false]) {
      const made = { gpuUuid: GPU, profileId: SMALL, start: 3 };
      const uuid = await admin.create(made);
      await recordInstance(node, { ...made, device: place(SMALL, 3), uuid: record ? uuid : null });
      await node.node.stopAgent();
      await node.node.startAgent();
      t.same(await present(admin), []);
      t.equal(node.agent.allocator.state.instances.size, 0);
    }
  },
);

test('after a reboot, which removes all instances, a claim gets its instance anew', { skip }, async (t) => {
  const admin = administrator(t);
  const node = await started(t);
  node.allocate('kept', { device: place(SMALL, 5) });
  t.type(await node.given('kept'), Array);
  const [before] = await admin.instances(GPU);
  await node.recordClaims('kept');
  await node.node.stopAgent();
  await admin.destroy({ gpuUuid: GPU, profileId: SMALL, start: 5 }, null);
  await node.node.startAgent();
  t.same(await present(admin), []);
  const away = node.cluster.server.inject({ resource: 'resourceclaims', verb: 'get' }, { do: 'answer', code: 503 });
  t.match(await node.given('kept'), /cannot be read/u, 'nothing tells that the instance is still wanted');
  away.remove();
  t.type(await node.given('kept'), Array);
  const [after] = await admin.instances(GPU);
  t.not(after?.uuids[0], before?.uuids[0]);
  const [unit, ...others] = [...node.agent.allocator.state.units.values()];
  t.same([unit?.devices.map(({ gpuUuid }) => gpuUuid), others], [after?.uuids, []]);
  await node.unprepare('kept');
  t.same(await present(admin), []);
});

test(
  'an instance that somebody else created at the same moment stays, and the claim is refused',
  { skip },
  async (t) => {
    const admin = administrator(t);
    const node = await started(t);
    await MACHINE.order('fault', 'nvmlDeviceCreateGpuInstanceWithPlacement', '23', '--times', '1');
    node.allocate('late', { device: place(SMALL, 5) });
    const answer = node.given('late');
    t.match(await answer, /cannot create MIG instance 1g.5gb at memory slice 5 of .*insufficient resources/u);
    t.equal(node.agent.allocator.state.instances.size, 0, 'no record, by which the next start would destroy it');
    await admin.create({ gpuUuid: GPU, profileId: SMALL, start: 5 });
    await node.unprepare('late');
    t.same(await present(admin), ['19@5']);
    await admin.destroy({ gpuUuid: GPU, profileId: SMALL, start: 5 }, null);
  },
);

test(
  'an instance of somebody else is never destroyed: its counters are gone, and a claim for its place is refused',
  { skip },
  async (t) => {
    const admin = administrator(t);
    const foreign = { gpuUuid: GPU, profileId: 5, start: 0 };
    const uuid = await admin.create(foreign);
    const node = await started(t);
    await eventually(() => slices(node).length === 2, 'both slices');
    const counters = slices(node)[0]?.sharedCounters?.[0]?.counters;
    t.match(counters, {
      multiprocessors: { value: '42' },
      'memory-slice-3': { value: '0' },
      'memory-slice-4': { value: '1' },
    });
    node.allocate('over', { device: place(SMALL, 2) });
    t.match(
      await node.given('over'),
      new RegExp(`cannot create MIG instance 1g.5gb at memory slice 2 of .*${uuid} is there`, 'u'),
    );
    node.allocate('beside', { device: place(SMALL, 4) });
    t.type(await node.given('beside'), Array);
    await node.unprepare('over', 'beside');
    t.same(await present(admin), ['5@0']);

    node.allocate('mine', { device: place(SMALL, 4) });
    t.type(await node.given('mine'), Array);
    await admin.destroy({ gpuUuid: GPU, profileId: SMALL, start: 4 }, null);
    await admin.create({ gpuUuid: GPU, profileId: SMALL, start: 4 });
    await node.unprepare('mine');
    t.same(await present(admin), ['19@4', '5@0'], 'it took the place of ours, and stays');
    await admin.destroy({ gpuUuid: GPU, profileId: SMALL, start: 4 }, null);
    await admin.destroy(foreign, uuid);
  },
);

test(
  'an instance that a process still uses stays until the process ends',
  { skip: skip === false ? noCompiler : skip },
  async (t) => {
    const admin = administrator(t);
    const node = await started(t);
    node.allocate('busy', { device: place(SMALL, 6) });
    t.type(await node.given('busy'), Array);
    const [instance] = await admin.instances(GPU);
    const program = MACHINE.startProgram(t, { CUDA_VISIBLE_DEVICES: instance?.uuids[0] });
    await eventually(isUsed, 'the program');
    await node.unprepare('busy');
    t.same(await present(admin), ['19@6']);
    node.allocate('next', { device: place(14, 4) });
    node.allocate('over', { device: place(MIDDLE, 4) });
    t.type(await node.given('next'), Array, 'another place of the GPU');
    await node.unprepare('next');
    program.kill('SIGKILL');
    await eventually(async () => !(await isUsed()), 'the end of the program');
    t.type(await node.given('over'), Array, 'the place is free for another profile');
    t.same(await present(admin), ['9@4']);
    await node.unprepare('over');
    t.same(await present(admin), []);
  },
);

test(
  'an instance that a process uses is not destroyed for a record without UUID: somebody else created it',
  { skip: skip === false ? noCompiler : skip },
  async (t) => {
    const admin = administrator(t);
    const node = await started(t);
    const made = { gpuUuid: GPU, profileId: SMALL, start: 3 };
    const uuid = await admin.create(made);
    const program = MACHINE.startProgram(t, { CUDA_VISIBLE_DEVICES: uuid });
    await eventually(isUsed, 'the program');
    const device = place(SMALL, 3);
    const record = (): Promise<void> => recordInstance(node, { ...made, device, uuid: null });
    await record();
    node.allocate('late', { device });
    t.match(await node.given('late'), new RegExp(`${uuid} is there, which this agent did not create`, 'u'));
    t.equal(node.agent.allocator.state.instances.size, 0);
    await record();
    await node.node.stopAgent();
    await node.node.startAgent();
    t.equal(node.agent.allocator.state.instances.size, 0);
    await eventually(
      () => slices(node)[0]?.sharedCounters?.[0]?.counters['memory-slice-3']?.value === '0',
      'its counters are taken off',
    );
    program.kill('SIGKILL');
    await eventually(async () => !(await isUsed()), 'the end of the program');
    await node.unprepare('late');
    t.same(await present(admin), ['19@3']);
    await admin.destroy(made, uuid);
  },
);
