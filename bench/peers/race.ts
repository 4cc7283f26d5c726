import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { measured, type BenchOptions } from '../report.js';
import { stop } from '../sim/machine.js';
import { PeerMachine, textOf } from './container.js';
import { LIMITERS } from './library.js';

const SECONDS = 4;
const LATEST_MS = 60_000;
const LIMIT_MIB = 4096;
/** Processes of one container: all allocate so much that not all of them fit, and the contexts of all do. */
const RACES = [
  { processes: 2, eachMib: 2252 },
  { processes: 8, eachMib: 600 },
] as const;
const MIB = 2 ** 20;

/**
 * The most that racing processes of one container hold at one moment, by their own account; the baseline is the limit.
 * A library that checks and then allocates lets more through than that.
 */
export async function race(peers: string, quick: boolean, { report, note }: BenchOptions): Promise<void> {
  note('The most that the processes of a container hold at one moment; the baseline is the limit of the container.');
  for (const { processes, eachMib } of RACES) {
    for (const library of LIMITERS) {
      const machine = await PeerMachine.open(peers);
      const container = await machine.container(library, { share: 100, memoryMib: LIMIT_MIB });
      const file = join(machine.directory, 'race');
      const seconds = String(quick ? 1 : SECONDS);
      const children = Array.from({ length: processes }, () =>
        container.start('race', file, String(eachMib), seconds, String(LIMIT_MIB), String(processes)),
      );
      const errors = children.map((child) => textOf(child.stderr));
      const ended = Promise.all(children.map((child) => once(child, 'exit')));
      const late = await Promise.race([ended.then(() => false), sleep(LATEST_MS, true, { ref: false })]);
      const name = `${processes} processes of ${eachMib} MiB`;
      const failed = children.flatMap(({ exitCode }, at) => (exitCode === 0 ? [] : [at]));
      await Promise.all(children.map((child) => stop(child)));
      if (failed.length > 0)
        note(
          `race, ${name}, ${library}: ${failed.length} processes failed${late ? ' or did not end' : ''}: ` +
            ((await errors[failed[0]!])?.trim().split('\n').at(-1) ?? ''),
        );
      const counts = await readFile(file).catch(() => null);
      if (counts !== null) {
        const count = (at: number): number => Number(counts.readBigInt64LE(8 * at));
        report(measured(`most at once, ${name}`, count(1) / MIB, 'MiB', LIMIT_MIB, library));
        if (count(5) > 0) note(`race, ${name}, ${library}: ${count(5)} other errors`);
      }
      await machine.close();
    }
  }
}
