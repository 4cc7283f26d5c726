import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { measured, type BenchOptions } from '../report.js';
import { stop } from '../sim/machine.js';
import { PeerMachine, textOf } from './container.js';
import { LIMITERS } from './library.js';

/** Ways to allocate that `any_library fill` has. */
const KINDS = [
  'alloc',
  'pitch',
  'managed',
  'async',
  'pool',
  'vmm',
  'export',
  'array2d',
  'array3d',
  'mipmap',
  'graphnode',
];
const QUICK_KINDS = ['alloc', 'vmm', 'pool'];
const LIMIT_MIB = 2048;
const MOST_MIB = 5120;
const CHUNK_MIB = '64';
/** From a program's context to its first allocation, for node agents to notice it. */
const WAIT_MS = '2500';
const LATEST_MS = 20_000;
const MIB = 2 ** 20;

/**
 * What one process gets beyond its memory limit, in each way to allocate, by the driver's own account; contexts are
 * part of it. The baseline is the limit.
 */
export async function memory(peers: string, quick: boolean, { report, note }: BenchOptions): Promise<void> {
  note('What a process holds in the end, contexts included; the baseline is its limit.');
  for (const kind of quick ? QUICK_KINDS : KINDS) {
    for (const library of LIMITERS) {
      const machine = await PeerMachine.open(peers);
      const container = await machine.container(library, { share: 100, memoryMib: LIMIT_MIB });
      const child = container.start('fill', kind, CHUNK_MIB, String(MOST_MIB), WAIT_MS);
      const errors = textOf(child.stderr);
      if (child.stdout === null) throw new Error('the program has no output');
      const lines = createInterface({ input: child.stdout });
      // A library may hang in an allocation.
      const [line] = (await Promise.race([
        once(lines, 'line'),
        once(child, 'close'),
        sleep(LATEST_MS, [null], { ref: false }),
      ])) as [unknown];
      if (typeof line === 'string' && /^\d+ \d+$/u.test(line)) {
        const used = [...(await machine.status()).memoryBytes.values()].reduce((sum, bytes) => sum + bytes, 0) / MIB;
        report(measured(`memory by ${kind}`, used, 'MiB', LIMIT_MIB, library));
      } else if (line === null) {
        note(`memory by ${kind}, ${library}: no end after ${LATEST_MS / 1000} s`);
      } else {
        // It has said why, and may hang all the same.
        child.kill('SIGKILL');
        note(`memory by ${kind}, ${library}: ${(await errors).trim().split('\n').at(-1) ?? ''}`);
      }
      child.stdin?.end();
      await stop(child);
      await machine.close();
    }
  }
}
