import { spawnSync } from 'node:child_process';
import { test } from 'tap';
import { eventually } from '../harness/eventually.js';
import { mortalNode, outlivesAgents, PATIENCE_MS, skipReason } from './mortal-node.js';

const skipLimits = skipReason || (spawnSync('prlimit', ['--version']).status !== 0 && 'prlimit is not installed');

/** Containers that need more descriptors than an agent with a limit of 200 has beside a hoarder. */
const CONTAINERS = 48;

test(
  'killing the agent leaves the work and the limits of containers as they are, and the next agent knows them all',
  { skip: skipReason },
  (t) => outlivesAgents(t, 4, 2),
);

test(
  'while a hostile container holds the few descriptors of an agent, other containers are refused with the reason, nothing is lost, and they start later',
  { skip: skipLimits },
  async (t) => {
    const { agent, allocations, admit } = await mortalNode(t, { openFiles: 200 });
    const hostile = await admit(5);
    if (!hostile.ok) throw new Error(hostile.reason);
    t.equal(await hostile.begin(), null);
    const hoarder = hostile.attacks('hoard');
    await eventually(
      async () => ((await hostile.seen())?.processes ?? 0) > 32,
      'the hoarder to have what it can get',
      PATIENCE_MS,
    );
    const worker = await admit(5);
    if (!worker.ok) throw new Error(worker.reason);
    t.equal(await worker.begin(), null);
    const tenant = worker.runs(16, 1_000);
    await eventually(
      async () => (await worker.seen())?.processes === 1 && tenant.output.includes('launched'),
      'work meanwhile',
      PATIENCE_MS,
    );

    const refused: (() => Promise<string | null>)[] = [];
    const reasons: string[] = [];
    let started = 2;
    for (let count = 2; count < CONTAINERS; count++) {
      const container = await admit(5);
      const reason = container.ok ? await container.begin() : container.reason;
      if (reason === null) started += 1;
      else reasons.push(reason);
      // The kubelet retries a container that did not start; a pod that it did not admit is replaced by another.
      if (reason !== null)
        refused.push(
          container.ok
            ? container.begin
            : async () => admit(5).then((another) => (another.ok ? another.begin() : another.reason)),
        );
    }
    t.match(reasons.join('\n'), /too many open files/, 'some pods are refused, and the kubelet gets the reason');
    t.ok(started > 20, `${started} started`);
    t.ok(tenant.alive);

    await hoarder.kill();
    await eventually(async () => (await hostile.seen())?.processes === 0, 'its end', PATIENCE_MS);
    for (const begin of refused) t.equal(await begin(), null, 'a refused container starts when it is retried');
    await eventually(
      async () => (await allocations()).filter(({ phase }) => phase === 'started').length === CONTAINERS,
      'every container to have its allocation',
      PATIENCE_MS,
    );
    const second = worker.runs(16, 1_000);
    await eventually(
      async () => (await worker.seen())?.processes === 2,
      'the first one and another process of its container',
      PATIENCE_MS,
    );
    t.ok(tenant.alive && second.alive && agent.alive);
  },
);
