/**
 * A container that writes into its own usage file that it has tokens, beside one with a share, under the real library
 * and agent on a simulated GPU; and containers that keep their shares in every way of sharing.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'tap';
import { SteeringAgent } from '../../bench/sim/agent.js';
import { SimulatedMachine } from '../../bench/sim/machine.js';
import { USAGE_FILE, DEVICE_USAGE, USAGE_LAYOUT } from '../../src/abi/vgpu-abi.js';
import { eventually } from '../harness/eventually.js';
import type { scratchDirectory } from '../scratch.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

async function simulated(t: Teardown, gpus: number): Promise<{ machine: SimulatedMachine; agent: SteeringAgent }> {
  const machine = await SimulatedMachine.open(gpus);
  const agent = await SteeringAgent.start(machine);
  t.teardown(async () => {
    await agent.stop();
    await machine.close();
  });
  return { machine, agent };
}

/** Writes all the time that the bucket of a slice has credit. */
function forge(t: Teardown, slice: string): void {
  const fd = openSync(join(slice, USAGE_FILE), 'r+');
  const level = Buffer.alloc(8);
  const timer = setInterval(() => {
    level.writeBigUInt64LE(process.hrtime.bigint() - 5_000_000n);
    writeSync(fd, level, 0, 8, USAGE_LAYOUT.devices + DEVICE_USAGE.levelAtNs);
  }, 1);
  t.teardown(async () => {
    clearInterval(timer);
    closeSync(fd);
  });
}

test('a container that forges its level is reported, and its neighbour is not', async (t) => {
  const { machine, agent } = await simulated(t, 1);
  const [attacker, victim] = [
    await agent.slice({ gpu: 0, share: 40, softLimit: null }),
    await agent.slice({ gpu: 0, share: 40, softLimit: null }),
  ];
  for (const slice of [attacker, victim]) machine.start({ name: 'tenant', args: ['120', 'async:2000'], gpu: 0, slice });
  forge(t, attacker);
  await eventually(() => agent.findings(attacker).length > 0, 'a finding', 60_000);
  t.match(agent.findings(attacker), [
    { code: 'over-share', message: /in use over ten seconds, 40 % are allowed/, serious: true },
  ]);
  t.comment(agent.findings(attacker)[0]?.message);
  t.same(agent.findings(victim), []);
});

test('containers that keep their shares raise no finding, however they share the GPU', async (t) => {
  const { machine, agent } = await simulated(t, 5);
  const soft = { softLimit: 100 };
  const hard = { softLimit: null };
  const containers = [
    { what: 'turns', limits: { gpu: 0, share: 30, ...hard }, programs: ['async:2000'] },
    { what: 'turns', limits: { gpu: 0, share: 60, ...hard }, programs: ['sync:200'] },
    { what: 'lending', limits: { gpu: 1, share: 40, ...soft }, programs: ['burst:2000:400:600'] },
    { what: 'lending', limits: { gpu: 1, share: 40, ...soft }, programs: ['async:2000'] },
    { what: 'priority', limits: { gpu: 2, share: 50, ...soft, priority: 'high' }, programs: ['serve:500:20:30'] },
    { what: 'priority', limits: { gpu: 2, share: 50, ...soft, priority: 'low' }, programs: ['async:20000'] },
    { what: 'a resize', limits: { gpu: 3, share: 70, ...hard }, programs: ['async:2000'] },
    {
      what: 'several processes',
      limits: { gpu: 4, share: 30, ...hard },
      programs: Array.from({ length: 4 }, () => 'async:5000'),
    },
    { what: 'long kernels', limits: { gpu: 4, share: 20, ...hard }, programs: ['sync:1500000'] },
  ] as const;
  const slices: string[] = [];
  for (const { limits, programs } of containers) {
    const slice = await agent.slice(limits);
    slices.push(slice);
    for (const pattern of programs) machine.start({ name: 'tenant', args: ['120', pattern], gpu: limits.gpu, slice });
  }
  for (const share of [70, 20, 50, 30, 60, 20]) {
    agent.resize(slices[6] ?? '', share);
    await delay(6_000);
    const found = containers.flatMap(({ what }, at) =>
      agent.findings(slices[at] ?? '').map(({ message }) => `${what}: ${message}`),
    );
    t.same(found, [], `with a share of ${share}`);
  }
});
