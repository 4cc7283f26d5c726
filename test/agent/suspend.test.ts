import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { processStat } from '../../src/host/process-stat.js';
import { eventually } from '../harness/eventually.js';
import { CONTEXT_MIB, GPU, MIB, NATIVE, SIM, simulator, skip, suspendingNode } from './suspending-node.js';

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
    t.match(await command('suspend'), new RegExp(`${name} +running +- +- +- +- +- `));
    t.equal(await command('suspend', pod.name, '--hold'), `${name}: ${before} MiB of 2 processes on the host\n`);
    t.equal(usedMib(), 0);
    t.match(await command('suspend'), new RegExp(`${name} +suspended +2.* operator, held +${before} MiB +- +- `));
    t.match(await command('suspend', pod.name, '--hold'), /it is suspended already/);
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

test('the next call of a suspended container resumes it, also after a restart of the agent', { skip }, async (t) => {
  const { node, suspend, listed, start, seen, usedMib, remembers, notes, record } = await suspendingNode(t, true);
  const both = [await start(['512']), await start(['256'])];
  await seen(2);
  const before = usedMib();
  t.match(await suspend(false), /^\d+ MiB$/);
  t.equal(usedMib(), 0);
  t.match(await listed(), { step: 'suspended', by: 'operator', held: false, wants_since_ms: '0' });
  for (const tenant of both) t.ok(await remembers(tenant));
  await eventually(async () => (await listed())?.step === 'running', 'the record is gone');
  t.equal(usedMib(), before);
  t.throws(() => readFileSync(record), { code: 'ENOENT' });
  t.match(
    notes.map(({ reason }) => reason),
    ['GPUSuspended', 'GPUResumed'],
  );

  t.match(await suspend(false), /^\d+ MiB$/);
  await node.stopAgent();
  both[0]?.say('go');
  await node.startAgent();
  await eventually(() => both[0]?.output.endsWith('\n5eed\n5eed\n') === true, 'the waiting call goes on');
  t.ok(both[1] !== undefined && (await remembers(both[1])));
});

test('a held container waits for someone, and shows that its programs want their GPU', { skip }, async (t) => {
  const { suspend, resume, listed, start, seen, usedMib } = await suspendingNode(t, true);
  const tenant = await start(['64']);
  await seen(1);
  await suspend();
  tenant.say('go');
  await eventually(async () => Number((await listed())?.wants_since_ms) > 0, 'the agent knows that a call waits');
  t.equal(usedMib(), 0);
  t.match(await listed(), { step: 'suspended', held: true });
  t.match(await resume(), /^\d+ MiB$/);
  await eventually(() => tenant.output.endsWith('\n5eed\n'), 'the waiting call goes on');
});

test('what cannot be suspended is refused with the reason, and nothing is tried', { skip }, async (t) => {
  const refusing = await suspendingNode(t, false);
  const plain = await refusing.start(['64']);
  await refusing.seen(1);
  t.match(await refusing.suspend(), /start the agent with --allow-suspend/);
  t.ok(await refusing.remembers(plain));
  await refusing.node.stop();
  await plain.kill();

  const { suspend, listed, start, seen, remembers } = await suspendingNode(t, true);
  t.match(await suspend(), /no process of it uses a GPU/);
  for (const [kind, reason] of [
    ['managed', 'it has managed memory'],
    ['shared', 'it shares GPU memory or events with other processes'],
  ] as const) {
    const tenant = await start(['64', kind]);
    await seen(1);
    t.match(await suspend(), `process ${tenant.pid}: ${reason}`);
    t.match(await listed(), { step: 'running', obstacles: [`process ${tenant.pid}: ${reason}`] });
    t.ok(await remembers(tenant), kind);
    await tenant.kill();
    await seen(0);
  }
});

test('a step that fails leads back to running processes', { skip }, async (t) => {
  const { suspend, start, seen, usedMib, remembers, notes } = await suspendingNode(t, true);
  const both = [await start(['64']), await start(['64'])];
  await seen(2);
  const before = usedMib();
  for (const call of ['Lock', 'Checkpoint']) {
    simulator('fault', `cuCheckpointProcess${call}`, '999', '--times', '1');
    t.match(
      await suspend(),
      new RegExp(`the ${call.toLowerCase()} of process \\d+ failed with CUDA error 999; its processes run`),
    );
    t.equal(usedMib(), before);
    for (const tenant of both) t.ok(await remembers(tenant), call);
  }
  t.match(notes.at(-1), { type: 'Warning', reason: 'GPUSuspendFailed' });
});

test('a container is not resumed while the GPU has no room for it, and is when it has', { skip }, async (t) => {
  const { suspend, resume, listed, start, seen, remembers, notes } = await suspendingNode(t, true);
  const tenant = await start(['6000']);
  await seen(1);
  await suspend();
  const foreigner = await start(['12000'], false);
  t.match(await resume(), /has room for \d+ MiB, and 6258 MiB are needed; it stays suspended/);
  await foreigner.kill();
  t.match(await resume(), /^\d+ MiB$/);
  t.ok(await remembers(tenant));

  // A call waits as long as it takes.
  await suspend(false);
  const other = await start(['12000'], false);
  tenant.say('go');
  await eventually(() => notes.some(({ reason }) => reason === 'GPUResumeWaits'), 'its owner is told');
  t.match(await listed(), { step: 'suspended' });
  await other.kill();
  await eventually(() => tenant.output.endsWith('\n5eed\n5eed\n'), 'the waiting call goes on');
});

test('the next agent knows what is suspended, and lets run what was interrupted on its way', { skip }, async (t) => {
  const { node, suspend, resume, listed, start, seen, usedMib, remembers, record } = await suspendingNode(t, true);
  const tenant = await start(['512']);
  await seen(1);
  const before = usedMib();
  await suspend();
  await node.stopAgent();
  await node.startAgent();
  t.equal(usedMib(), 0);
  t.match(await listed(), { step: 'suspended' });
  t.match(await resume(), /^\d+ MiB$/);
  t.ok(await remembers(tenant));

  // As an agent leaves it that is killed after the lock of the first process.
  await node.stopAgent();
  const startTicks = processStat(tenant.pid)?.startTicks ?? 0;
  const processes = [{ pid: tenant.pid, startTicks, bytes: before * MIB }];
  const origin = { by: 'operator', held: true, asked: '0', wantsSinceMs: null };
  const interrupted = { step: 'suspending', sinceMs: 1, gpuUuid: GPU, usedBytes: before * MIB, ...origin, processes };
  writeFileSync(record, JSON.stringify({ suspension: interrupted, served: null }));
  const checkpoint = [join(NATIVE, 'sim/libcuda.so.1'), 'lock', String(tenant.pid), '1000'];
  t.equal(execFileSync(join(NATIVE, 'gpu-checkpoint'), checkpoint, { ...SIM, encoding: 'utf8' }), 'result 0 state 1\n');
  await node.startAgent();
  t.ok(await remembers(tenant));
  await eventually(async () => (await listed())?.step === 'running', 'the record is gone');
});
