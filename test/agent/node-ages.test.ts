/**
 * Nodes of every age: which part of a node keeps memory limits, and that a container of an old node gets, byte for
 * byte, what it got before drivers had limits.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { DEVICE_LIVE, LIMITS_HEADER, LIMITS_LAYOUT, TEXT_BYTES } from '../../src/abi/vgpu-abi.js';
import type { Driver, GroupLimits } from '../../src/agent/gpus/driver.js';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../src/agent/gpus/sim/sim-driver.js';
import { controlGroups } from '../../src/agent/runtimes/control-groups.js';
import { systemClock } from '../../src/host/clock.js';
import { doubleGroups } from '../harness/control-groups/test-groups.js';
import { runPod, sliceDirectory, startedNode } from './node.js';
import { simplePod } from './pods.js';

const MIB = 2 ** 20;

interface Age {
  readonly driver: string;
  readonly groups: 'v1' | 'v2';
  readonly dmem?: boolean;
  readonly mig?: boolean;
}

/** One GPU of 16 GiB, or one MIG instance. */
const description = ({ driver, mig = false }: Age): string =>
  JSON.stringify({
    driverVersion: driver,
    gpus: [mig ? { model: 'NVIDIA H200', memoryMiB: 143_771, mig: ['1g.18gb'] } : {}],
  });

/** A node of this age with a pod of 8 blocks, whose container is about to be created. */
async function admitted(t: Test, age: Age) {
  const parsed = parseSimNode(description(age));
  if (!parsed.ok) throw new Error(parsed.reason);
  const made = await doubleGroups(t);
  const limits = new Map<string, GroupLimits>();
  const questions: string[] = [];
  const groupLimiter: Driver['groupLimiter'] = {
    problem: async (uuid) => {
      questions.push(uuid);
      return null;
    },
    set: async (_uuid, group, wanted) => {
      limits.set(group.slice(made.root.length), wanted);
      return 'set';
    },
    get: async () => 'none',
  };
  const driver = Object.assign(new SimDriver(parsed.node, systemClock, true), { groupLimiter }) as Driver;
  const groups = {
    ...controlGroups({ ...made, pidOf: async () => null }),
    problem: age.groups === 'v1' ? `${made.root} has control groups of version 1, expected version 2` : null,
    hasGpuMemory: () => age.dmem === true,
  };
  const node = await startedNode(t, {
    gpus: description(age),
    knowsPods: true,
    seams: { driver, groups },
    config: { migStrategy: age.mig === true ? 'shared' : 'none' },
  });
  const pod = simplePod(30, 8);
  const podGroup = made.pod(pod.uid).slice(made.root.length);
  const given = await runPod(node, pod);
  const ofPod = limits.get(podGroup)?.hardBytes ?? null;
  return { node, given, slice: sliceDirectory(given), ofPod, questions, limits };
}

const uuidOf = ({ node }: Awaited<ReturnType<typeof admitted>>): string =>
  node.agent.allocator.state.node.gpus[0]?.gpu.uuid ?? '';

for (const [age, keeper, podMib] of [
  [{ driver: '390.157', groups: 'v1' }, 'library', null],
  [{ driver: '390.157', groups: 'v2' }, 'library', null],
  [{ driver: '470.256.02', groups: 'v2', dmem: true }, 'library', null],
  [{ driver: '535.274.02', groups: 'v1' }, 'library', null],
  [{ driver: '580.95.05', groups: 'v2' }, 'library', null],
  [{ driver: '610.43.02', groups: 'v2', dmem: true }, 'library', null],
  [{ driver: '615.10.01', groups: 'v1' }, 'library', null],
  [{ driver: '615.10.01', groups: 'v2' }, 'driver (misc)', 2048],
  [{ driver: '620.4', groups: 'v2', dmem: true }, 'driver (dmem)', 2048],
  [{ driver: '620.4', groups: 'v1' }, 'library', null],
  [{ driver: '620.4', groups: 'v2', mig: true }, 'library', null],
] as const satisfies readonly (readonly [Age, string, number | null])[]) {
  const { driver, groups } = age;
  const also = 'mig' in age ? ', MIG' : 'dmem' in age ? ', a kernel with dmem' : '';
  test(`driver ${driver}, control groups ${groups}${also}: the ${keeper} keeps memory limits`, async (t) => {
    const found = await admitted(t, age);
    const enforcer = found.node.agent.vgpu.memoryEnforcer(uuidOf(found));
    t.equal(enforcer.by === 'driver' ? `driver (${enforcer.backend})` : 'library', keeper);
    t.equal(found.ofPod, podMib === null ? null : podMib * MIB, 'NRI off: the limit of the pod');
    t.equal(
      found.node.agent.vgpu.startGate.isNeeded(),
      podMib !== null,
      'NRI on: whether the runtime waits for the agent',
    );
    if (podMib === null) {
      t.same([...found.limits], [], 'nothing is set');
      t.same(found.questions, [], 'the driver is not asked either');
    }
  });
}

/** The bytes of a limits file that are not 0, by position; without its allocation's id and the times of steering. */
function bytesOf(slice: string): readonly string[] {
  const bytes = readFileSync(join(slice, 'vgpu.limits'));
  const sequence = bytes.readUInt32LE(LIMITS_HEADER.sequence);
  const live = LIMITS_LAYOUT.live + (sequence & 1) * ((bytes.length - LIMITS_LAYOUT.live) / 2);
  bytes.copy(bytes, LIMITS_LAYOUT.live, live, live + DEVICE_LIVE.structSize);
  bytes.fill(0, LIMITS_LAYOUT.live + DEVICE_LIVE.structSize);
  bytes.fill(0, LIMITS_LAYOUT.live + DEVICE_LIVE.steeredAtNs, LIMITS_LAYOUT.live + DEVICE_LIVE.share);
  bytes.writeUInt32LE(0, LIMITS_HEADER.sequence);
  bytes.fill(0, LIMITS_HEADER.allocation, LIMITS_HEADER.allocation + TEXT_BYTES.limitsHeaderAllocation);
  const runs = bytes.toString('latin1').matchAll(/[^\0](?:[^\0]|\0(?=[^\0]))*/g);
  return [...runs].map((run) => `${run.index}: ${Buffer.from(run[0], 'latin1').toString('hex')}`);
}

/** As the agent wrote it before it knew of limits in drivers. */
const LIMITS_FILE = [
  '0: 564750554c494d5401',
  '12: 8010',
  '16: 01',
  '20: 01',
  '24: 01',
  '128: 4750552d30303030303030302d303030302d303030302d303030302d303030303030303030303030',
  '192: 30303030303030303a30343a30302e30',
  '2179: 80',
  '2200: 1e',
];

for (const age of [
  { driver: '390.157', groups: 'v1' },
  { driver: '580.95.05', groups: 'v2' },
  { driver: '610.43.02', groups: 'v2', dmem: true },
] as const)
  test(`driver ${age.driver}, control groups ${age.groups}: a container gets what it got before drivers had limits`, async (t) => {
    const { given, slice } = await admitted(t, age);
    t.same(bytesOf(slice), LIMITS_FILE);
    t.same(given.environment, {
      LD_LIBRARY_PATH: '/usr/local/nvidia/lib64',
      NVIDIA_VISIBLE_DEVICES: 'GPU-00000000-0000-0000-0000-000000000000',
    });
    t.same(
      given.mounts.map(({ hostPath, containerPath, readOnly }) => [
        hostPath.replace(slice, 'SLICE'),
        containerPath,
        readOnly,
      ]),
      [
        ['SLICE', '/etc/vcuda', true],
        ['SLICE/usage/vgpu.usage', '/etc/vcuda/usage/vgpu.usage', false],
        ['SLICE/usage/vgpu.activity', '/etc/vcuda/usage/vgpu.activity', false],
      ],
    );
    t.same(given.cdiDevices, []);
    t.same(given.annotations, {
      'tencent.com/vcuda-core': '30',
      'tencent.com/vcuda-device': '/dev/nvidia0',
      'tencent.com/vcuda-memory': '2147483648',
    });
  });
