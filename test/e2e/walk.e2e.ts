import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import tap, { test } from 'tap';
import { MERGE_PATCH } from '../../src/kube/client.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';
import { NODE, TestCluster } from './cluster.js';
import { clusterClient } from './cluster-client.js';
import { customResourcesOrSkip } from './custom-resources.js';
import { importImage } from './image.js';
import { QuotaProcess } from './quota-process.js';

tap.setTimeout(600_000);

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));
const GPU = 'nvidia.com/gpu';
const PORT = 18_449;
/** Longest time until a step that only reads shows what the document says. */
const LIMIT_MS = 90_000;

const cluster = new TestCluster();
const client = await clusterClient(cluster);
await customResourcesOrSkip(cluster, client);
const directory = mkdtempSync(join(tmpdir(), 'gm-walk-'));
const service = new QuotaProcess({
  name: 'walk',
  port: PORT,
  kubeconfig: cluster.kubeconfig,
  url: `https://127.0.0.1:${PORT}`,
  directory: cluster.directory,
  more: [
    ...['--arbitrator', 'on', '--arbitrator-grace', '5', '--arbitrator-cooldown', '3', '--arbitrator-writes', '1'],
    ...['--audit', join(directory, 'audit.jsonl')],
  ],
});
const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gpu-manager-quota';

tap.teardown(async () => {
  await service.end('SIGTERM');
  await client.request({ method: 'DELETE', path: CONFIGURATION });
  await cluster.kubectl(
    'delete',
    'namespace',
    'research',
    'shop',
    '--ignore-not-found',
    '--wait=true',
    '--timeout=120s',
  );
  rmSync(directory, { recursive: true });
  client.close();
});

interface Block {
  readonly language: string;
  readonly file: string;
  readonly text: string;
}

interface Step {
  readonly command: string;
  readonly expected: string;
}

/** The blocks of the tutorial. */
function blocks(): readonly Block[] {
  const document = readFileSync(join(REPOSITORY, 'docs/guides/quota-tutorial.md'), 'utf8');
  return [...document.matchAll(/^```(\w+) ?(\S*)\n(.*?)^```$/gms)].map(
    ([, language = '', file = '', text = '']): Block => ({ language, file, text }),
  );
}

/** Commands of a console, each with its output. */
function stepsOf(text: string): readonly Step[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command = '', ...expected] = step.split('\n');
      return { command, expected: expected.join('\n') };
    });
}

/** Times, ages and generated names differ between runs, and so does the width of columns. */
function comparable(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, 'TIME')
    .replaceAll(/\b(?:\d+m)?\d+s\b|\b\d+m\b/g, 'AGE')
    .replaceAll(/-[a-z0-9]{8,10}-[a-z0-9]{5}\b/g, '-POD')
    .replaceAll(/\b\d+ events, last digest [0-9a-f]{64}/g, 'EVENTS')
    .replaceAll(/ +/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n');
}

function run(command: string): Promise<string> {
  return new Promise((resolve) =>
    execFile(
      'bash',
      ['-c', command],
      {
        cwd: directory,
        env: {
          ...process.env,
          KUBECONFIG: cluster.kubeconfig,
          PATH: `${directory}${delimiter}${process.env.PATH ?? ''}`,
        },
      },
      (_error, stdout, stderr) => resolve(`${stdout}${stderr}`),
    ),
  );
}

const skip = !cluster.version.atLeast(23) && 'the document uses autoscaling/v2 of Kubernetes 1.23';

test('every step of the tutorial prints the output of the document', { skip }, async (t) => {
  writeFileSync(join(directory, 'gpu-manager'), `#!/bin/sh\nexec ${process.execPath} ${MAIN} "$@"\n`);
  chmodSync(join(directory, 'gpu-manager'), 0o755);
  importImage(cluster.containerdSocket, 'docker.io/library/busybox:1.36');
  await client.request({
    method: 'PATCH',
    path: `/api/v1/nodes/${NODE}/status`,
    contentType: MERGE_PATCH,
    body: { status: { capacity: { [GPU]: '2' }, allocatable: { [GPU]: '2' } } },
  });
  await cluster.kubectl('label', 'node', NODE, 'nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB');
  await service.start();
  const found = blocks();
  for (const { file, text } of found) if (file !== '') writeFileSync(join(directory, file), text);
  const steps = found.filter(({ language }) => language === 'console').flatMap(({ text }) => stepsOf(text));
  t.ok(steps.length > 15);
  for (const { command, expected } of steps) {
    let printed = await run(command);
    // Commands that only read may be repeated: status, pods and evictions take time.
    if (/^kubectl (?:-n \S+ )?get /.test(command) && comparable(printed) !== comparable(expected))
      await until(
        command,
        async () => comparable((printed = await run(command))) === comparable(expected),
        LIMIT_MS,
      ).catch(() => undefined);
    t.equal(comparable(printed), comparable(expected), command);
  }
});
