import { JournalStore, createEngine } from '../../src/quota/index.js';

/** The child's report to its parent. */
export interface ColdStart {
  readonly ms: number;
  readonly groups: number;
  readonly workloads: number;
}

/** Opens a journal in a new process and reports how long it took. Run as a process with the directory as argument. */
const started = performance.now();
const engine = await createEngine({ store: await JournalStore.open(process.argv[2] ?? ''), clock: () => 0 });
const ms = performance.now() - started;
const groups = engine.groups();
const workloads = groups.reduce((sum, name) => sum + (engine.status(name)?.workloads ?? 0), 0);
console.log(JSON.stringify({ ms, groups: groups.length, workloads } satisfies ColdStart));
await engine.close();
