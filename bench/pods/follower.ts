/** The report of a child process that follows the pods of a node, one JSON line each. */
export interface Report {
  readonly kind: 'synced' | 'updated';
  readonly ms: number;
  /** Resident memory at the end. */
  readonly rssBytes: number;
  /** Resident memory before any module was loaded for it. */
  readonly baseBytes: number;
}

export interface Task {
  readonly url: string;
  readonly node: string;
  readonly pods: number;
}

/** Value of the label that the last update gives to every pod. */
export const LAST = 'last';

/**
 * Measures one way to follow pods: `follow` starts and calls back with the number of known pods and of those that have
 * the last label.
 */
export async function measure(
  follow: (task: Task, seen: (known: number, updated: number) => void) => Promise<void>,
): Promise<void> {
  const task = JSON.parse(process.argv[2] ?? '') as Task;
  const baseBytes = process.memoryUsage.rss();
  const begin = performance.now();
  let since = begin;
  let synced = false;
  const report = (kind: Report['kind']): void => {
    const now = performance.now();
    process.stdout.write(
      `${JSON.stringify({ kind, ms: now - since, rssBytes: process.memoryUsage.rss(), baseBytes } satisfies Report)}\n`,
    );
    since = now;
  };
  process.stdin.on('data', () => (since = performance.now()));
  await follow(task, (known, updated) => {
    if (!synced && known >= task.pods) {
      synced = true;
      report('synced');
    } else if (synced && updated >= task.pods) {
      report('updated');
      process.exit(0);
    }
  });
}
