import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { clusterObjects } from '../test/console/cluster-objects.js';
import { ApiServer } from '../test/harness/api-server/api-server.js';
import { eventually } from '../test/harness/eventually.js';
import { kubeconfig } from '../test/harness/api-server/kubeconfig.js';
import { DESKTOP, noBrowser, openBrowser } from '../test/page/browser.js';
import { measured, median, type BenchOptions } from './report.js';

const NODES = 1_000;
const ROUNDS = 5;
/** The goal for the first picture of all nodes, in ms. */
const GOAL_MS = 1_000;
const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));

/**
 * The console with 1,000 nodes of 8 GPUs and 8,000 pods: time until a browser shows nodes with their slices, size of
 * the rows, memory of the console with one reader.
 *
 *     npm run bench -- console
 */
export async function run({ report, note }: BenchOptions): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'gm-'));
  const server = new ApiServer();
  await server.start();
  for (const { resource, object } of clusterObjects(NODES, 1)) server.seed(resource, object);
  const file = join(directory, 'kubeconfig');
  await writeFile(file, kubeconfig(server, { token: 'bench' }));
  const child = spawn(
    process.execPath,
    [MAIN, 'console', '--no-token-review', `--kubeconfig=${file}`, '--address=127.0.0.1:0'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  try {
    const base = `http://127.0.0.1:${await portOf(child)}`;
    await eventually(async () => (await fetch(`${base}/readyz`)).ok, 'the cluster is listed', 60_000);
    const bytes = (await (await fetch(`${base}/api/cluster`)).arrayBuffer()).byteLength;
    report(measured('size of all rows', bytes / 2 ** 20, 'MiB'));
    if (noBrowser === false) {
      report(measured('first picture of 1,000 nodes, median', median(await pictures(base)), 'ms', GOAL_MS));
    } else note(noBrowser);
    report(measured('memory of the console (RSS)', residentBytes(child.pid ?? 0) / 2 ** 20, 'MiB'));
  } finally {
    child.kill();
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Times from the start of the navigation until a slice is drawn. The page forbids the script that waits for it. */
async function pictures(base: string): Promise<number[]> {
  const browser = await openBrowser();
  try {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const page = await (await browser.newContext({ ...DESKTOP, bypassCSP: true })).newPage();
      await page.goto(base);
      const shown = await page.waitForFunction("document.querySelector('.bars .segment') && performance.now()");
      times.push(Number(await shown.jsonValue()));
      await page.context().close();
    }
    return times;
  } finally {
    await browser.close();
  }
}

/** The port that the console names in its log. */
async function portOf(child: ChildProcess): Promise<number> {
  if (child.stderr === null) throw new Error('no log');
  for await (const line of createInterface({ input: child.stderr })) {
    const { port } = JSON.parse(line) as { readonly port?: number };
    if (port !== undefined) {
      child.stderr.resume();
      return port;
    }
  }
  throw new Error('the console did not start');
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/u.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN) * 1024;
}
