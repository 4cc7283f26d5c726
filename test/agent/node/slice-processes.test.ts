import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'tap';
import { parseSimNode } from '../../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../../src/agent/gpus/sim/sim-driver.js';
import { sliceProcesses } from '../../../src/agent/node/slice-processes.js';
import type { ContainerKnowledge } from '../../../src/agent/runtimes/index.js';
import { NodeClient } from '../../../src/cli/node-client.js';
import type { GpuProcess } from '../../../src/gpu/sample.js';
import { systemClock } from '../../../src/host/clock.js';
import { ProcessCommands } from '../../../src/host/process-commands.js';
import { eventually } from '../../harness/eventually.js';
import { cards } from '../gpus.js';
import { runPod, startedNode } from '../node.js';
import { simplePod } from '../pods.js';

const clock = { now: () => 5 };
const commands = new ProcessCommands(systemClock);
const observe =
  (...pids: readonly number[]) =>
  () => [
    {
      gpuUuid: 'GPU-1',
      gpuIndex: 1,
      processes: pids.map((pid): GpuProcess => ({ pid, usedMemoryBytes: 1_024, utilizationPercent: 7 })),
    },
  ];

test('processes have their user, their pid in the container and their command, as they wrote it', async (t) => {
  const script = 'process.stdout.write("up"); setInterval(() => {}, 1000)';
  const child = spawn(process.execPath, ['-e', script, 'two words', '\u001b[2J\nnext'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.teardown(() => child.kill());
  await once(child.stdout, 'data');
  const document = await sliceProcesses('a1', { observe: observe(child.pid ?? 0), commands, clock });
  t.match(document, {
    atMs: 5,
    allocation: 'a1',
    omitted: 0,
    processes: [
      {
        gpuUuid: 'GPU-1',
        gpuIndex: 1,
        pid: child.pid,
        containerPid: child.pid,
        uid: process.geteuid?.(),
        command: `${process.execPath} -e ${script} two words \u001b[2J\nnext`,
        usedMemoryBytes: 1_024,
        usedPercent: 7,
      },
    ],
  });
});

test('a process that has ended keeps its figures, and an ended program its name', async (t) => {
  const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' });
  await once(child, 'exit');
  const { processes } = await sliceProcesses('a1', { observe: observe(child.pid ?? 0), commands, clock });
  t.match(processes, [{ pid: child.pid, uid: null, user: null, containerPid: null, command: null, usedPercent: 7 }]);
  const silent = { of: async () => '' };
  const nameless = await sliceProcesses('a1', { observe: observe(process.pid), commands: silent, clock });
  t.match(nameless.processes[0]?.command, /^\[.+\]$/);
});

test('an answer has at most 500 processes, and counts the others', async (t) => {
  const pids = Array.from({ length: 600 }, () => process.pid);
  const { processes, omitted } = await sliceProcesses('a1', { observe: observe(...pids), commands, clock });
  t.same([processes.length, omitted], [500, 100]);
});

test('the agent answers with the processes of a container on its display socket', async (t) => {
  const parsed = parseSimNode(cards(2));
  if (!parsed.ok) throw new Error(parsed.reason);
  const driver = new SimDriver(parsed.node);
  const pod = simplePod(30, 8);
  // The process of this test stands in the container.
  const containers: ContainerKnowledge = {
    placeOf: async () => ({ containerId: 'd1f0'.repeat(16), podUid: pod.uid }),
    pidsOf: async () => [process.pid],
    sliceOf: () => null,
    nameOf: async () => 'main',
  };
  const node = await startedNode(t, {
    gpus: cards(2),
    knowsPods: true,
    config: { samplePeriodMs: 100 },
    seams: { driver, containers },
  });
  await runPod(node, pod);
  const { gpus } = await driver.inventory();
  for (const { uuid } of gpus)
    driver.setLoad(uuid, {
      utilizationPercent: 9,
      processes: [{ pid: process.pid, usedMemoryBytes: 4_096, utilizationPercent: 9 }],
    });
  const client = new NodeClient(node.config.displaySocket);
  t.teardown(() => client.close());
  const id = (await client.snapshot()).allocations[0]?.id ?? '';
  const { processes } = await eventually(async () => {
    const document = await client.processes(id);
    return document.processes.length > 0 && document;
  }, 'the process');
  t.match(processes, [
    { pid: process.pid, uid: process.geteuid?.(), command: /slice-processes/, usedMemoryBytes: 4_096, usedPercent: 9 },
  ]);
  t.same((await client.processes('none')).processes, []);
});
