import { test } from 'tap';
import {
  suspendObstacles,
  type SeenProcess,
  type SuspendFacts,
} from '../../../../src/agent/slices/suspend/obstacles.js';

const GIB = 2 ** 30;

const process = (changes: Partial<SeenProcess> = {}): SeenProcess => ({
  pid: 7,
  startTicks: 1,
  bytes: 4 * GIB,
  obstacles: [],
  ...changes,
});

const facts = (changes: Partial<SuspendFacts> = {}): SuspendFacts => ({
  architecture: 'x64',
  driverVersion: '580.95.05',
  unenforced: false,
  isSuspendable: true,
  gpuUuids: ['GPU-1'],
  processes: [process()],
  hostBytes: 100 * GIB,
  groupBytes: Infinity,
  ...changes,
});

test('a container with plain memory on one GPU and room on the host has no obstacle', async (t) => {
  t.same(suspendObstacles(facts()), []);
});

test('each obstacle is a sentence', async (t) => {
  const rows: readonly (readonly [Partial<SuspendFacts>, string])[] = [
    [{ architecture: 'arm64' }, 'the driver suspends processes on x86-64 only, not on arm64'],
    [{ driverVersion: '550.54.14' }, 'driver 550.54.14 cannot suspend processes; that needs 570 or later'],
    [{ driverVersion: null }, 'driver unknown cannot suspend processes; that needs 570 or later'],
    [{ unenforced: true }, 'its limits are not enforced, so that the library does not see its calls'],
    [{ isSuspendable: false }, 'it started while this node suspended no containers; start it again'],
    [{ gpuUuids: ['GPU-1', 'GPU-2'] }, 'it has several GPUs'],
    [{ gpuUuids: ['MIG-1'] }, 'its GPU is a MIG instance'],
    [{ processes: [] }, 'no process of it uses a GPU'],
    [{ processes: [process({ pid: null })] }, 'the agent cannot see one of its processes'],
    [{ processes: [process({ bytes: null })] }, 'process 7: the driver does not tell what it has on the GPU'],
    [
      { processes: [process({ obstacles: null })] },
      'process 7 runs without the control library, or with an earlier one; start the container again',
    ],
    [{ processes: [process({ obstacles: ['managed'] })] }, 'process 7: it has managed memory'],
    [
      { processes: [process({ obstacles: ['shared'] })] },
      'process 7: it shares GPU memory or events with other processes',
    ],
    [
      { processes: [process({ obstacles: ['external'] })] },
      'process 7: it has memory of another interface, such as Vulkan',
    ],
    [{ hostBytes: 4 * GIB }, 'the host has room for 4096 MiB; 5120 MiB are needed'],
    [{ hostBytes: null }, 'the room of the host is not known'],
    [{ groupBytes: 2 * GIB }, 'the memory limit of its pod has room for 2048 MiB; 4352 MiB are needed'],
    [{ groupBytes: null }, 'the room of the memory limit of its pod is not known'],
  ];
  for (const [change, sentence] of rows) t.same(suspendObstacles(facts(change)), [sentence]);
});
