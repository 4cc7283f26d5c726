import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test, type Test } from 'tap';
import type { SliceNote } from '../../src/agent/slices/ports.js';
import { packageFile } from '../../src/host/package-files.js';
import { silentLog } from '../../src/host/log.js';
import { processStat } from '../../src/host/process-stat.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { eventually } from '../harness/eventually.js';
import { buildProgram, tenantEnvironment, TenantProcess, tenantSkipReason } from '../harness/gpu-machine/tenant.js';
import { MAIN } from '../harness/programs.js';
import { scratchDirectory } from '../scratch.js';
import { libraryPath, notBuilt, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { cards } from './gpus.js';
import { runPod, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';

const skip = notBuilt || tenantSkipReason;
const MACHINE = new SimulatedMachine(cards(1));
const NATIVE = packageFile('native/build');
const run = promisify(execFile);
const MIB = 2 ** 20;
const GPU = 'GPU-00000000-0000-0000-0000-000000000000';
/** What a context and a module take on a simulated GPU. */
const CONTEXT_MIB = 258;

/** A node with one GPU, and a pod that has half of it. */
async function suspendingNode(t: Test, allowSuspend: boolean) {
  const directory = await scratchDirectory(t);
  const program = buildProgram('test/harness/gpu-machine/recall.c', directory, 'recall');
  const notes: SliceNote[] = [];
  const node = new SimulatedNode({
    directory,
    gpus: cards(1),
    log: silentLog(),
    knowsPods: true,
    seams: { sliceNotices: { note: (_owner, note) => void notes.push(note) } },
    config: {
      simStatePath: MACHINE.statePath,
      simNodePath: MACHINE.nodePath,
      nvmlPath: libraryPath,
      nativePath: NATIVE,
      allowSuspend,
    },
  });
  await node.start();
  t.teardown(() => node.stop());
  const pod = simplePod(50, 30);
  const given = await runPod(node, pod);
  const environment = tenantEnvironment(MACHINE, { directory: sliceDirectory(given), gpu: 0 });
  const command = async (...args: readonly string[]): Promise<string> => {
    const done = await run(process.execPath, [MAIN, ...args, '--display-socket', node.config.displaySocket]).catch(
      (error: { readonly stderr: string }) => ({ stdout: error.stderr }),
    );
    return done.stdout;
  };
  return {
    node,
    notes,
    pod,
    record: join(sliceDirectory(given), 'suspended.json'),
    command,
    /** Starts a process of the pod; without `inside`, one that belongs to no container. */
    start: async (args: readonly string[], inside = true): Promise<TenantProcess> => {
      const outside = { ...environment, VGPU_SANDBOX_DIRECTORY: undefined, LD_LIBRARY_PATH: join(NATIVE, 'sim') };
      const tenant = new TenantProcess(program, args, inside ? environment : outside);
      t.teardown(() => tenant.kill());
      await eventually(() => tenant.output.includes('holds\n'), 'the program holds its memory');
      return tenant;
    },
    /** Resolves when the agent knows so many processes of the pod. */
    seen: (count: number) =>
      eventually(() => {
        const slice = node.agent.vgpu.observe().find(({ owner }) => owner.podUid === pod.uid);
        return slice?.processes === count;
      }, `${count} processes have greeted`),
    usedMib: (): number => Math.round(usedBytes() / MIB),
    remembers: async (tenant: TenantProcess): Promise<boolean> => {
      const before = tenant.output.length;
      tenant.say('go');
      await eventually(() => tenant.output.length > before, 'the program answers');
      return tenant.output.endsWith('\n5eed\n');
    },
  };
}

const SIM = { env: { ...process.env, GPU_SIM_STATE: MACHINE.statePath, GPU_SIM_NODE: MACHINE.nodePath } };

function simulator(...args: readonly string[]): string {
  return execFileSync(join(NATIVE, 'gpu-sim'), args, { ...SIM, encoding: 'utf8' });
}

/** How much memory of the GPU is in use, by the driver's own count. */
function usedBytes(): number {
  const gpu = simulator('status')
    .split('\n')
    .find((line) => line.includes(GPU));
  return (JSON.parse(gpu ?? '{}') as { readonly usedBytes: number }).usedBytes;
}

test(
  'a suspended container uses no GPU memory, its calls wait, and after the resume they go on with its memory',
  { skip },
  async (t) => {
    const { pod, command, start, seen, usedMib, remembers, notes, record } = await suspendingNode(t, true);
    const name = `default/${pod.name}/main`;
    const both = [await start(['512']), await start(['256'])];
    await seen(2);
    const before = usedMib();
    t.equal(before, 512 + 256 + 2 * CONTEXT_MIB);
    t.match(await command('suspend'), new RegExp(`${name} +running +- +- +- `));
    t.equal(await command('suspend', pod.name), `${name}: ${before} MiB of 2 processes on the host\n`);
    t.equal(usedMib(), 0);
    t.match(await command('suspend'), new RegExp(`${name} +suspended +2.* ${before} MiB +- `));
    t.match(await command('suspend', pod.name), /it is suspended already/);
    for (const tenant of both) tenant.say('go');
    t.equal(await command('resume', pod.name), `${name}: ${before} MiB of 2 processes on the GPU again\n`);
    t.equal(usedMib(), before);
    for (const tenant of both) {
      await eventually(() => tenant.output.endsWith('\n5eed\n'), 'the waiting call goes on');
      t.ok(await remembers(tenant));
    }
    t.throws(() => readFileSync(record), { code: 'ENOENT' });
    t.match(await command('resume', pod.name), /no suspended container has allocation/);
    t.match(notes, [
      { type: 'Normal', reason: 'GPUSuspended', message: `main: its GPU memory, ${before} MiB, is on the host` },
      { type: 'Normal', reason: 'GPUResumed', message: `main: its GPU memory, ${before} MiB, is on the GPU again` },
    ]);
  },
);

test('what cannot be suspended is refused with the reason, and nothing is tried', { skip }, async (t) => {
  const refusing = await suspendingNode(t, false);
  const plain = await refusing.start(['64']);
  await refusing.seen(1);
  t.match(await refusing.command('suspend', refusing.pod.name), /start the agent with --allow-suspend/);
  t.ok(await refusing.remembers(plain));
  await refusing.node.stop();
  await plain.kill();

  const { pod, command, start, seen, remembers } = await suspendingNode(t, true);
  t.match(await command('suspend', pod.name), /no process of it uses a GPU/);
  for (const [kind, reason] of [
    ['managed', 'it has managed memory'],
    ['shared', 'it shares GPU memory or events with other processes'],
  ] as const) {
    const tenant = await start(['64', kind]);
    await seen(1);
    t.match(await command('suspend', pod.name), `process ${tenant.pid}: ${reason}`);
    t.match(await command('suspend'), ` process ${tenant.pid}: ${reason}`);
    t.ok(await remembers(tenant), kind);
    await tenant.kill();
    await seen(0);
  }
});

test('a step that fails leads back to running processes', { skip }, async (t) => {
  const { pod, command, start, seen, usedMib, remembers, notes } = await suspendingNode(t, true);
  const both = [await start(['64']), await start(['64'])];
  await seen(2);
  const before = usedMib();
  for (const call of ['Lock', 'Checkpoint']) {
    simulator('fault', `cuCheckpointProcess${call}`, '999', '--times', '1');
    t.match(
      await command('suspend', pod.name),
      new RegExp(`the ${call.toLowerCase()} of process \\d+ failed with CUDA error 999; its processes run`),
    );
    t.equal(usedMib(), before);
    for (const tenant of both) t.ok(await remembers(tenant), call);
  }
  t.match(notes.at(-1), { type: 'Warning', reason: 'GPUSuspendFailed' });
});

test('a container is not resumed while the GPU has no room for it, and is when it has', { skip }, async (t) => {
  const { pod, command, start, seen, remembers } = await suspendingNode(t, true);
  const tenant = await start(['6000']);
  await seen(1);
  await command('suspend', pod.name);
  const foreigner = await start(['12000'], false);
  t.match(await command('resume', pod.name), /has room for \d+ MiB, and 6258 MiB are needed; it stays suspended/);
  await foreigner.kill();
  t.match(await command('resume', pod.name), 'on the GPU again');
  t.ok(await remembers(tenant));
});

test('the next agent knows what is suspended, and lets run what was interrupted on its way', { skip }, async (t) => {
  const { node, pod, command, start, seen, usedMib, remembers, record } = await suspendingNode(t, true);
  const tenant = await start(['512']);
  await seen(1);
  const before = usedMib();
  await command('suspend', pod.name);
  await node.stopAgent();
  await node.startAgent();
  t.equal(usedMib(), 0);
  t.match(await command('suspend'), / suspended /);
  t.match(await command('resume', pod.name), 'on the GPU again');
  t.ok(await remembers(tenant));

  // As an agent leaves it that is killed after the lock of the first process.
  await node.stopAgent();
  const startTicks = processStat(tenant.pid)?.startTicks ?? 0;
  const processes = [{ pid: tenant.pid, startTicks, bytes: before * MIB }];
  const interrupted = { step: 'suspending', sinceMs: 1, gpuUuid: GPU, usedBytes: before * MIB, processes };
  writeFileSync(record, JSON.stringify(interrupted));
  const checkpoint = [join(NATIVE, 'sim/libcuda.so.1'), 'lock', String(tenant.pid), '1000'];
  t.equal(execFileSync(join(NATIVE, 'gpu-checkpoint'), checkpoint, { ...SIM, encoding: 'utf8' }), 'result 0 state 1\n');
  await node.startAgent();
  t.ok(await remembers(tenant));
  await eventually(async () => / running /.test(await command('suspend')), 'the record is gone');
});
