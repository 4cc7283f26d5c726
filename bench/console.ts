import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clusterObjects } from '../test/console/cluster-objects.js';
import { ConsoleProcess } from '../test/console/console-process.js';
import { ApiServer } from '../test/harness/api-server/api-server.js';
import { eventually } from '../test/harness/eventually.js';
import { kubeconfig } from '../test/harness/api-server/kubeconfig.js';
import { referenceMs } from '../test/harness/reference-work.js';
import { DESKTOP, noBrowser, openBrowser } from '../test/page/browser.js';
import { measured, type BenchOptions } from './report.js';

const NODES = 1_000;
const ROUNDS = 5;

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
  const console = await ConsoleProcess.start('--no-token-review', `--kubeconfig=${file}`, '--address=127.0.0.1:0');
  try {
    const base = `http://127.0.0.1:${console.port}`;
    await eventually(async () => (await fetch(`${base}/readyz`)).ok, 'the cluster is listed', 60_000);
    const bytes = (await (await fetch(`${base}/api/cluster`)).arrayBuffer()).byteLength;
    report(measured('size of all rows', bytes / 2 ** 20, 'MiB'));
    if (noBrowser === false) {
      const reference = referenceMs();
      for (const { ms, busyMs } of await pictures(base)) {
        report(measured('first picture of 1,000 nodes', ms, 'ms', reference));
        report(measured('processor time of the page until then', busyMs, 'ms'));
      }
    } else note(noBrowser);
    report(measured('memory of the console (RSS)', console.residentBytes / 2 ** 20, 'MiB'));
  } finally {
    await console.stop();
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

interface Picture {
  /** Time from the start of the navigation until a slice is drawn. */
  readonly ms: number;
  /** Processor time of the page's thread until then, which other programs do not prolong. */
  readonly busyMs: number;
}

/** The page forbids the script that waits for its first slice. */
async function pictures(base: string): Promise<Picture[]> {
  const browser = await openBrowser();
  try {
    const shown: Picture[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const context = await browser.newContext({ ...DESKTOP, bypassCSP: true });
      const page = await context.newPage();
      const session = await context.newCDPSession(page);
      await session.send('Performance.enable', { timeDomain: 'threadTicks' });
      await page.goto(base);
      const ms = await page.waitForFunction("document.querySelector('.bars .segment') && performance.now()");
      const { metrics } = await session.send('Performance.getMetrics');
      const busyS = metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN;
      shown.push({ ms: Number(await ms.jsonValue()), busyMs: busyS * 1_000 });
      await context.close();
    }
    return shown;
  } finally {
    await browser.close();
  }
}
