import { test } from 'tap';
import { timeLimit } from '../harness/time-factor.js';
import { ask, attackedListener, cpuTimes, program, residentBytes } from './attacked-listener.js';

const MIB = 2 ** 20;
const MOST_GROWTH_BYTES = 32 * MIB;
const MOST_PROBE_MS = 200;
/** Time of the bare server's answer on a machine that does nothing else. */
const USUAL_BARE_MS = 20;
const TRIES = 5;
const PAUSE_MS = 50;
/** What the program needs for ordinary requests is not growth. */
const WARM_ROUNDS = 12;

/** Each listener of each program. */
export const LISTENERS = [
  'agent',
  'agent-tls',
  'agent-tls-token',
  'probes',
  'extender',
  'quota',
  'claim-webhook',
  'console',
] as const;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Tests that a neighbour that sends pipelined requests neither fills the memory nor keeps `probes` probes waiting. On a
 * machine with other work, the program waits for a CPU, and the one who asks does too: the limit grows by what the one
 * adds, and by how much longer the answer of a server that does nothing takes. A single pause of the program lengthens
 * the worst probe of one try.
 */
export function testPipelinedRequests(name: (typeof LISTENERS)[number], probes: number): void {
  void test(`pipelined requests neither fill the memory of ${name} nor keep its probes waiting`, async (t) => {
    t.setTimeout(timeLimit(120_000));
    const listener = await attackedListener(t, name);
    const { port, isTls, paths } = listener;
    const bare = { port: Number((await program(t, 'bare-listener-program.js', [])).first), isTls: false };
    for (let times = 0; times < WARM_ROUNDS; times++) {
      await Promise.all(paths.map((path) => answered(listener, path)));
      await pause(PAUSE_MS);
    }
    const before = residentBytes(listener.pid);
    const { child } = await program(t, 'pipelining-program.js', [String(port), isTls ? 'tls' : 'plain', ...paths]);
    let most = before;
    let [worstMs, limitMs] = [Infinity, 0];
    for (let tries = 0; tries < TRIES && worstMs >= limitMs; tries++) {
      const cpuBefore = cpuTimes(listener.pid);
      let worstBareMs = 0;
      worstMs = 0;
      for (let times = 0; times < probes; times++) {
        const [ms, bareMs] = await Promise.all([ask(listener, '/healthz'), ask(bare, '/')]);
        worstMs = Math.max(worstMs, ms);
        worstBareMs = Math.max(worstBareMs, bareMs);
        most = Math.max(most, residentBytes(listener.pid));
        await pause(PAUSE_MS);
      }
      const cpu = cpuTimes(listener.pid);
      const starved = 1 + (cpu.waitedMs - cpuBefore.waitedMs) / (cpu.ranMs - cpuBefore.ranMs);
      limitMs = MOST_PROBE_MS * (starved + worstBareMs / USUAL_BARE_MS);
      t.comment(
        `${name}: ${Math.round(before / MIB)} MiB and ${Math.round((most - before) / MIB)} MiB more; worst probe ` +
          `${Math.round(worstMs)} ms, ${Math.round(worstBareMs)} ms at a bare server; CPU time took ` +
          `${starved.toFixed(1)} times as long as on an idle machine`,
      );
    }
    child.kill('SIGKILL');
    const grownBytes = most - before;
    t.ok(grownBytes < MOST_GROWTH_BYTES, `memory grows by ${grownBytes} bytes`);
    t.ok(worstMs < limitMs, `the worst probe takes ${worstMs} ms, and may take ${limitMs} ms`);
  });
}

/** Asks once, with the patience that a review of a token needs. */
async function answered(listener: Parameters<typeof ask>[0], path: string): Promise<void> {
  await Promise.race([ask(listener, path), pause(1_000)]);
}
