import { keepTogether } from '../summary/leftovers.js';
import type { BenchEvent } from './recording.js';
import { runBench } from './run-bench.js';

/**
 * One benchmark of a whole run, as a process of its own: its name and file, the number of runs, `json` or `text`, and
 * its arguments. It tells its parent what it measures, and ends with it.
 */
const [name = '', path = '', runs = '', output = '', ...args] = process.argv.slice(2);
const tell = (event: BenchEvent): void => void process.send?.(event);
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

keepTogether();
process.on('disconnect', () => process.exit(1));
process.on('uncaughtExceptionMonitor', (error) => tell({ kind: 'failure', text: textOf(error) }));
try {
  await runBench({ name, path }, { runs: Number(runs), args }, output === 'json', tell);
} catch (error) {
  console.error(`${name} failed:`, error);
  tell({ kind: 'failure', text: textOf(error) });
}
// The last event is told once the others are; a connection that the benchmark left open does not keep this process.
process.send?.({ kind: 'end' } satisfies BenchEvent, () => process.exit());
