import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import { bundledAgent } from '../../harness/bundled-agent.js';
import { scratchDirectory } from '../../scratch.js';
import { ClaimAgentProcess } from './claim-agent-process.js';
import { DraNode } from './dra-node.js';

const CLAIMS = 8;

/** The same random numbers in every run. */
function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** Tests that an agent that is killed `rounds` times, at any moment, neither loses a claim nor keeps a released one. */
export async function holdsClaims(t: Test, rounds: number): Promise<void> {
  const directory = await scratchDirectory(t);
  const node = new DraNode(directory, 2);
  const { config } = node.node;
  await node.cluster.server.start();
  t.teardown(() => node.cluster.server.stop());
  const agent = new ClaimAgentProcess(node, 2, 'dra', await bundledAgent(join(directory, 'b')));
  t.teardown(() => agent.kill());

  const random = pseudoRandom(7);
  /** What the scheduler has allocated: never more than the capacity. */
  const allocated = new Map<string, { readonly cores: number; readonly device: number }>();
  const leaving = new Set<string>();
  const free = (device: number): number =>
    [...allocated.values()].reduce((left, claim) => (claim.device === device ? left - claim.cores : left), 100);
  let made = 0;
  for (let round = 0; round <= rounds; round += 1) {
    await agent.start();
    // A kubelet repeats every call that did not return.
    for (const name of leaving) {
      t.same((await node.unprepare(name))[`uid-${name}`], { error: '' });
      node.cluster.server.remove('resourceclaims', 'team', name);
      allocated.delete(name);
    }
    leaving.clear();
    for (const name of allocated.keys()) t.type(await node.given(name), Array, `${name} in round ${round}`);
    const directories = (await readdir(config.virtualManagerPath)).filter((name) => /^[0-9a-f]{16}$/.test(name));
    t.equal(directories.length, allocated.size, `a directory for each claim in round ${round}`);
    t.equal((await readdir(config.cdiPath)).filter((name) => name.endsWith('.json')).length, allocated.size);
    if (round === rounds) break;
    const calls: Promise<unknown>[] = [];
    for (const name of [...allocated.keys()].filter(() => random() < 0.4)) {
      leaving.add(name);
      calls.push(node.unprepare(name));
    }
    for (let index = 0; index < CLAIMS; index += 1) {
      const [device, cores] = [random() < 0.5 ? 0 : 1, 5 + Math.floor(random() * 36)];
      if (free(device) < cores) continue;
      const name = `c${(made += 1)}`;
      node.allocate(name, { cores, device, memory: '256Mi' });
      allocated.set(name, { cores, device });
      calls.push(node.prepare(name));
    }
    await node.recordClaims(...allocated.keys());
    const settled = Promise.allSettled(calls);
    await sleep(random() * 60);
    await agent.kill();
    await settled;
  }
}
