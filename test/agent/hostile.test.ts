import { readdirSync, statSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import type { SliceObservation } from '../../src/agent/slices/observation.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { USAGE_FILE, USAGE_LAYOUT } from '../../src/abi/vgpu-abi.js';
import { systemClock, type Clock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { SOCKET_LIMITS } from '../../src/agent/slices/compat/slice-socket.js';
import { libraryPath, notBuilt, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { eventually } from '../harness/eventually.js';
import { buildProgram, tenantEnvironment, TenantProcess, tenantSkipReason } from '../harness/gpu-machine/tenant.js';
import { scratchDirectory } from '../scratch.js';
import { cards } from './gpus.js';
import { runPod, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';

const skip = notBuilt || tenantSkipReason;
const MACHINE = new SimulatedMachine(cards(1));
const PATIENCE_MS = 60_000;
const MAX_SOCKETS = SOCKET_LIMITS.sessions + SOCKET_LIMITS.silent + SOCKET_LIMITS.rpcs;

/** Periods of a few seconds are shortened to fractions of a second, so that the test need not wait for them. */
const HASTY: Clock = {
  ...systemClock,
  every: (periodMs, action) => systemClock.every(periodMs >= 1_000 ? periodMs / 10 : periodMs, action),
};

/** A node with one GPU, a container that works on it, and hostile containers. */
async function besieged(t: Test) {
  const directory = await scratchDirectory(t);
  const tenant = buildProgram('test/harness/gpu-machine/tenant.c', directory, 'tenant');
  const hostile = buildProgram('test/harness/gpu-machine/hostile.c', directory, 'hostile');
  const node = new SimulatedNode({
    directory,
    gpus: cards(1),
    log: silentLog(),
    config: { simStatePath: MACHINE.statePath, simNodePath: MACHINE.nodePath, nvmlPath: libraryPath },
    seams: { clock: HASTY },
  });
  await node.start();
  t.teardown(() => node.stop());
  const container = async (cores: number) => {
    const pod = simplePod(cores, 3);
    const slice = sliceDirectory(await runPod(node, pod));
    const start = (program: string, ...args: string[]): TenantProcess => {
      const child = new TenantProcess(program, args, tenantEnvironment(MACHINE, { directory: slice, gpu: 0 }));
      t.teardown(() => child.kill());
      return child;
    };
    return {
      slice,
      works: (): TenantProcess => start(tenant, '16', '1000'),
      attacks: (way: string): TenantProcess => start(hostile, way, slice),
      seen: (): SliceObservation => {
        const slices = node.agent.vgpu.observe().find(({ owner }) => owner.podUid === pod.uid);
        if (slices === undefined) throw new Error(`nothing is seen of ${pod.name}`);
        return slices;
      },
    };
  };
  const victim = await container(30);
  const first = victim.works();
  await eventually(
    () => victim.seen().processes === 1 && first.output.includes('launched'),
    'the one that works',
    PATIENCE_MS,
  );
  /** Checks that the agent still does all that a well-behaved container needs. */
  const nobodyElseIsHarmed = async (): Promise<void> => {
    const launches = (): number => victim.seen().devices[0]?.counters.launches ?? 0;
    const before = launches();
    const another = victim.works();
    await eventually(
      () => victim.seen().processes === 2 && launches() > before,
      'another process of the one that works to be known',
      PATIENCE_MS,
    );
    await another.kill();
    await eventually(() => victim.seen().processes === 1, 'its end', PATIENCE_MS);
    const newcomer = await container(5);
    newcomer.works();
    await eventually(() => newcomer.seen().processes === 1, 'a container that comes meanwhile', PATIENCE_MS);
    t.equal((await fetch(`http://127.0.0.1:${node.agent.httpPort()}/readyz`)).status, 200, 'the agent answers');
    t.ok(first.alive, 'the working container continues');
    t.same(victim.seen().findings, [], 'the audit has no finding about the working container');
    t.same(victim.seen().refusals, { floods: 0, connections: 0 });
  };
  return { node, container, victim, nobodyElseIsHarmed };
}

test('containers that flood their sockets and hoard connections do not harm other containers', { skip }, async (t) => {
  const { container, nobodyElseIsHarmed } = await besieged(t);
  const [flooder, hoarder] = [await container(5), await container(5)];
  const descriptors = (): number => readdirSync('/proc/self/fd').length;
  const before = descriptors();
  const attackers = [flooder.attacks('flood'), flooder.attacks('flood'), hoarder.attacks('hoard')];
  await eventually(() => flooder.seen().refusals.floods > 0, 'the flood to be noticed', PATIENCE_MS);
  await nobodyElseIsHarmed();
  t.ok(
    attackers.every(({ alive }) => alive),
    'during the attack',
  );
  t.ok(descriptors() - before < 2 * MAX_SOCKETS + 100, 'the number of descriptors of the agent stays within its limit');
  t.ok(hoarder.seen().processes <= SOCKET_LIMITS.sessions);
});

test(
  'a container that overwrites and then removes its usage file is reported and does not harm other containers',
  { skip },
  async (t) => {
    const { container, victim, nobodyElseIsHarmed } = await besieged(t);
    const scribbler = await container(5);
    scribbler.works();
    await eventually(() => scribbler.seen().processes === 1, 'its honest process', PATIENCE_MS);
    const attack = scribbler.attacks('scribble');
    await eventually(
      () => scribbler.seen().findings.some(({ code }) => code === 'tampered'),
      'the finding',
      PATIENCE_MS,
    );
    await nobodyElseIsHarmed();
    t.ok(attack.alive, 'while the container overwrites its file');
    await attack.kill();
    const usage = join(scribbler.slice, USAGE_FILE);
    await eventually(() => statSync(usage).size <= USAGE_LAYOUT.structSize, 'what grew to be cut back', PATIENCE_MS);
    unlinkSync(usage);
    await eventually(
      () => scribbler.seen().findings.some(({ message }) => /ENOENT/.test(message)),
      'the finding',
      PATIENCE_MS,
    );
    t.same(victim.seen().findings, []);
  },
);
