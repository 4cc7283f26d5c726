import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import { NodeClient } from '../../src/cli/node-client.js';
import { decodeDeviceUsage } from '../../src/abi/usage-file.js';
import { DEVICE_USAGE, USAGE_FILE, USAGE_LAYOUT } from '../../src/abi/vgpu-abi.js';
import type { AllocationSnapshot } from '../../src/agent/node/view.js';
import { notBuilt, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { bundledAgent } from '../harness/bundled-agent.js';
import { eventually } from '../harness/eventually.js';
import { AgentProcess } from '../harness/gpu-machine/agent-process.js';
import { buildProgram, tenantEnvironment, TenantProcess, tenantSkipReason } from '../harness/gpu-machine/tenant.js';
import { scratchDirectory } from '../scratch.js';
import { cards } from './gpus.js';
import { gpuIndexes, only, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';

/** The reason why no such node can run here, or false. */
export const skipReason = notBuilt || tenantSkipReason;
const MACHINE = new SimulatedMachine(cards(4));
export const PATIENCE_MS = 60_000;

/** An agent in a process of its own, which can be killed, with containers that outlive it. */
export async function mortalNode(t: Test, options: { readonly openFiles?: number } = {}) {
  const directory = await scratchDirectory(t);
  const tenant = buildProgram('test/harness/gpu-machine/tenant.c', directory, 'tenant');
  const hostile = buildProgram('test/harness/gpu-machine/hostile.c', directory, 'hostile');
  // With few descriptors Node cannot open all modules of the agent at once; as one file, as in the image, it starts.
  const main = options.openFiles === undefined ? {} : { main: await bundledAgent(join(directory, 'bundle')) };
  const agent = new AgentProcess({ directory: join(directory, 'a'), machine: MACHINE, ...main, ...options });
  await agent.kubelet.start();
  t.teardown(async () => {
    await agent.end();
    await agent.kubelet.stop();
  });
  await agent.start();
  const display = new NodeClient(agent.displaySocket);
  t.teardown(() => display.close());
  const run = (program: string, slice: string, gpu: number, ...args: string[]): TenantProcess => {
    const child = new TenantProcess(program, args, tenantEnvironment(MACHINE, { directory: slice, gpu }));
    t.teardown(() => child.kill());
    return child;
  };
  const allocations = async (): Promise<readonly AllocationSnapshot[]> =>
    display.snapshot().then(
      ({ allocations: all }) => all,
      () => [],
    );
  return {
    agent,
    allocations,
    /** The answer of the kubelet for a container: null, or the reason why it did not start. */
    admit: async (cores: number) => {
      const pod = simplePod(cores, 3);
      const admission = await agent.kubelet.admit(pod);
      if (!admission.ok) return { ok: false as const, reason: admission.message };
      const given = only(admission.containers);
      const [gpu = 0] = gpuIndexes(given);
      const slice = sliceDirectory(given);
      return {
        ok: true as const,
        pod,
        slice,
        begin: (): Promise<string | null> =>
          agent.kubelet.startContainer(pod.uid, given.name).then(
            () => null,
            (error: unknown) => (error as Error).message,
          ),
        runs: (holdMib: number, kernelUs: number): TenantProcess =>
          run(tenant, slice, gpu, String(holdMib), String(kernelUs)),
        attacks: (way: string): TenantProcess => run(hostile, slice, gpu, way, slice),
        launches: (): number => launchesIn(slice),
        seen: async (): Promise<AllocationSnapshot | undefined> =>
          (await allocations()).find(({ owners }) => owners.some(({ podUid }) => podUid === pod.uid)),
      };
    },
  };
}

/** As the container reports it. */
function launchesIn(slice: string): number {
  const bytes = Buffer.alloc(DEVICE_USAGE.structSize);
  const fd = openSync(join(slice, USAGE_FILE), 'r');
  readSync(fd, bytes, 0, bytes.length, USAGE_LAYOUT.devices);
  closeSync(fd);
  return decodeDeviceUsage(bytes).launches;
}

/**
 * Tests that killing the agent leaves the work and the limits of `count` containers as they are, and that the next
 * agent knows them all, `deaths` times; from the second on, an agent is also killed at some moment of its start.
 */
export async function outlivesAgents(t: Test, count: number, deaths: number): Promise<void> {
  const { agent, allocations, admit } = await mortalNode(t);
  const containers = await Promise.all(
    Array.from({ length: count }, async () => {
      const container = await admit(20);
      if (!container.ok) throw new Error(container.reason);
      t.equal(await container.begin(), null);
      return { ...container, tenant: container.runs(64, 1_000) };
    }),
  );
  const launchesOf = ({ slices: [slice] }: AllocationSnapshot): number => slice?.counters?.launches ?? 0;
  const isKnown = async (): Promise<boolean> => {
    const all = await allocations();
    return all.length === containers.length && all.every((one) => one.processes === 1 && launchesOf(one) > 0);
  };
  await eventually(isKnown, 'the sight of everybody', PATIENCE_MS);
  for (let death = 0; death < deaths; death++) {
    const before = new Map((await allocations()).map((one) => [one.id, launchesOf(one)]));
    await agent.end('SIGKILL');
    const orphaned = containers.map(({ launches }) => launches());
    await eventually(
      () => containers.every(({ launches }, at) => launches() > (orphaned[at] ?? 0)),
      'work without an agent',
      PATIENCE_MS,
    );
    if (death === 0) {
      const [first] = containers;
      const greedy = first?.runs(1_024, 0);
      await sleep(500);
      t.notMatch(greedy?.output, /holds/, 'an allocation over the limit is refused without an agent, too');
      await greedy?.kill();
    }
    // Kills the agent again at some moment of its start before one stays alive.
    if (death > 0) {
      agent.start().catch(() => undefined);
      await sleep(250 * death);
      await agent.end('SIGKILL');
    }
    await agent.start();
    await eventually(isKnown, 'everybody to be known to the next agent', PATIENCE_MS);
    const now = await allocations();
    t.ok(
      now.every((one) => launchesOf(one) >= (before.get(one.id) ?? Infinity)),
      'no counter decreased, and no allocation changed',
    );
    const counted = new Map(now.map((one) => [one.id, launchesOf(one)]));
    t.ok(
      containers.every(({ slice, launches }) => (counted.get(slice.slice(-16)) ?? Infinity) <= launches()),
      'no counter jumped',
    );
    t.ok(
      containers.every(({ slice }) => readdirSync(slice).includes('vcuda.sock')),
      'every container has a socket',
    );
    t.ok(
      containers.every(({ tenant }) => tenant.alive),
      'no process ended',
    );
  }
}
