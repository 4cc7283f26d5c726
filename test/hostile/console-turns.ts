import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { clusterObjects } from '../console/cluster-objects.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { MeteredProgram } from '../harness/metered-program.js';
import { holdsTurns, type TurnOptions } from '../harness/turn-limit.js';

/** At the start all listed objects become rows at once; nobody is served yet. */
const FIRST_TURN_GOAL_MS = 200;
/** All nodes change within a moment: thousands of events of the watch arrive at once. */
const FLOODED_TURN_GOAL_MS = 200;

export interface ConsoleLoad {
  /** Each with eight pods. */
  readonly nodes: number;
  /** How long a reader reads while all nodes change. */
  readonly changeMs: number;
}

/** Tests that in a console no reader and no change makes others wait for one turn of its event loop. */
export async function holdsConsoleTurns(t: Test, { nodes, changeMs }: ConsoleLoad): Promise<void> {
  const server = new ApiServer({ recordsRequests: false, historyLimit: 100_000 });
  await server.start();
  t.teardown(() => server.stop());
  for (const { resource, object } of clusterObjects(nodes, 1)) server.seed(resource, object);
  const directory = mkdtempSync(join(tmpdir(), 'gm-'));
  const file = join(directory, 'kubeconfig');
  writeFileSync(file, kubeconfig(server, { token: 'console' }));
  const port = await freePort();
  const started = (): MeteredProgram =>
    new MeteredProgram(['console', '--no-token-review', `--kubeconfig=${file}`, `--address=127.0.0.1:${port}`]);
  let program = started();
  t.teardown(async () => {
    await program.stop();
    rmSync(directory, { recursive: true });
  });
  const url = `http://127.0.0.1:${port}`;
  const listed = async (): Promise<void> => {
    await until('the lists', async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok ?? false, 120_000);
  };
  await holdsTurns(
    t,
    'the lists at the start',
    async () => {
      await program.stop();
      program = started();
      return program.longestTurn(listed);
    },
    { goalMs: FIRST_TURN_GOAL_MS },
  );
  const held = (what: string, task: () => Promise<void>, options?: TurnOptions): Promise<void> =>
    holdsTurns(t, what, () => program.longestTurn(task), options);
  await held('all rows', async () => {
    const rows = await (await fetch(`${url}/api/cluster`)).arrayBuffer();
    t.comment(`${rows.byteLength >> 10} KiB`);
  });
  let isClosed = false;
  await held(
    'a reader of the stream, while all nodes change',
    async () => {
      isClosed = !isClosed;
      const ending = new AbortController();
      const stream = await fetch(`${url}/api/stream`, { signal: ending.signal });
      const reader = stream.body?.getReader();
      let bytes = 0;
      const read = (async () => {
        for (;;) {
          const read = await reader?.read();
          if (read === undefined || read.done) return;
          bytes += (read.value as Uint8Array).length;
        }
      })().catch(() => undefined);
      const before = bytes;
      for (const node of server.all('nodes'))
        server.edit('nodes', '', node.metadata.name ?? '', (known) => ({
          ...known,
          spec: { unschedulable: isClosed },
        }));
      await new Promise((resolve) => setTimeout(resolve, changeMs));
      t.comment(`${(bytes - before) >> 10} KiB`);
      ending.abort();
      await read;
    },
    { goalMs: FLOODED_TURN_GOAL_MS },
  );
}
