import { test } from 'tap';
import { DriverError, type GroupLimiter, type Inventory } from '../../../../src/agent/gpus/index.js';
import type { ControlGroups } from '../../../../src/agent/runtimes/index.js';
import { GpuEnforcement, type MemoryEnforcement } from '../../../../src/agent/slices/driver-memory/gpu-enforcement.js';
import { parseSimNode } from '../../../../src/agent/gpus/sim/node.js';

interface Node {
  readonly version: string | null;
  readonly mode?: MemoryEnforcement;
  /** Why there are no control groups of version 2. */
  readonly groupsProblem?: string;
  readonly dmem?: boolean;
  readonly mig?: boolean;
  /** What the driver says when it is asked; null: it keeps limits. */
  readonly driverSays?: string | null;
}

function examined({ version, mode = 'auto', groupsProblem, dmem = false, mig = false, driverSays = null }: Node) {
  const parsed = parseSimNode(
    JSON.stringify({ gpus: [mig ? { model: 'NVIDIA H200', memoryMiB: 143_771, mig: ['1g.18gb'] } : {}] }),
  );
  if (!parsed.ok) throw new Error(parsed.reason);
  const { gpus, instances, topology } = parsed.node;
  const inventory: Inventory = {
    driverVersion: version,
    cudaVersion: null,
    gpus: mig ? instances : gpus,
    topology,
    excluded: [],
    notes: [],
  };
  const asked: string[] = [];
  const answer = { says: driverSays as string | null | DriverError };
  const limiter: GroupLimiter = {
    async problem(uuid) {
      asked.push(uuid);
      if (answer.says instanceof DriverError) throw answer.says;
      return answer.says;
    },
    set: async () => 'gone',
    get: async () => 'gone',
  };
  const groups: ControlGroups = {
    problem: groupsProblem ?? null,
    root: '/sys/fs/cgroup',
    hasGpuMemory: () => dmem,
    ofProcess: () => null,
    ofContainer: async () => null,
    ofPod: () => null,
    named: () => null,
    exists: () => false,
  };
  const enforcement = new GpuEnforcement({ limiter, enforcement: mode, inventory: () => inventory, groups });
  return { enforcement, asked, answer, uuid: inventory.gpus[0]?.uuid ?? '' };
}

const V1 = '/sys/fs/cgroup has control groups of version 1, expected version 2';

for (const [what, node, expected, questions] of [
  ['driver 390', { version: '390.157' }, { by: 'library', reason: null }, 0],
  ['driver 535', { version: '535.274.02' }, { by: 'library', reason: null }, 0],
  ['driver 580 with dmem', { version: '580.95.05', dmem: true }, { by: 'library', reason: null }, 0],
  ['driver 610', { version: '610.43.02' }, { by: 'library', reason: null }, 0],
  ['an unknown driver', { version: null }, { by: 'library', reason: null }, 0],
  ['driver 615', { version: '615.10' }, { by: 'driver', backend: 'misc' }, 1],
  ['driver 620 with dmem', { version: '620.4.1', dmem: true }, { by: 'driver', backend: 'dmem' }, 1],
  [
    'driver 620, control groups of version 1',
    { version: '620.4', groupsProblem: V1 },
    { by: 'library', reason: V1 },
    0,
  ],
  [
    'driver 535, control groups of version 1',
    { version: '535.1', groupsProblem: V1 },
    { by: 'library', reason: null },
    0,
  ],
  [
    'a MIG instance, driver 620',
    { version: '620.4', mig: true },
    { by: 'library', reason: 'the driver keeps no memory limits on MIG instances' },
    0,
  ],
  ['driver 615 with its accounting off', { version: '615.10', driverSays: 'off' }, { by: 'library', reason: 'off' }, 1],
  [
    'driver 620, --memory-enforcement=library',
    { version: '620.4', mode: 'library' },
    { by: 'library', reason: '--memory-enforcement=library', mayHaveLimits: true },
    1,
  ],
] as const)
  test(`${what}: ${expected.by === 'driver' ? 'the driver' : 'the library alone'} enforces memory limits`, async (t) => {
    const { enforcement, asked, uuid } = examined(node);
    await enforcement.examine();
    t.same(enforcement.of(uuid), expected);
    t.equal(asked.length, questions, 'an earlier driver is not asked anything new');
    t.equal(enforcement.uses, expected.by === 'driver');
    t.doesNotThrow(() => enforcement.require());
    await enforcement.examine();
    t.equal(asked.length, questions, 'the driver is asked once');
  });

test('--memory-enforcement=driver refuses a node on which the driver cannot, with the reason', async (t) => {
  const old = examined({ version: '580.95.05', mode: 'driver' });
  await old.enforcement.examine();
  t.throws(() => old.enforcement.require(), {
    name: 'StartupError',
    message:
      '--memory-enforcement=driver: GPU 0: driver 580.95.05 keeps no memory limits of control groups, expected 615 or later; use auto',
  });
  const v1 = examined({ version: '615.1', mode: 'driver', groupsProblem: V1 });
  await v1.enforcement.examine();
  t.throws(() => v1.enforcement.require(), { message: `--memory-enforcement=driver: GPU 0: ${V1}; use auto` });
  const right = examined({ version: '615.1', mode: 'driver' });
  await right.enforcement.examine();
  t.doesNotThrow(() => right.enforcement.require());
});

test('a GPU that does not answer is examined again', async (t) => {
  const { enforcement, answer, uuid } = examined({ version: '615.10' });
  answer.says = new DriverError('timeout', 'no answer in 5 s');
  t.same([...(await enforcement.examine()).keys()], [uuid]);
  t.same(enforcement.of(uuid), { by: 'library', reason: 'the driver does not answer: no answer in 5 s' });
  answer.says = null;
  t.same([...(await enforcement.examine()).values()], [{ by: 'driver', backend: 'misc' }]);
});
