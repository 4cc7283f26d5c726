import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ApiServer } from '../test/harness/api-server/api-server.js';
import type { KubeObject } from '../test/harness/api-server/kube-object.js';
import { LAST, type Report, type Task } from './pods/follower.js';
import { measured, type BenchOptions } from './report.js';

const NODE = 'node1';
const ROUNDS = 3;

/**
 * A pod of the usual size: a real one consists mostly of managed fields, volumes and conditions that the agent does not
 * read.
 */
function podObject(index: number): KubeObject {
  const limits = { 'tencent.com/vcuda-core': '30', 'tencent.com/vcuda-memory': '16', cpu: '4', memory: '16Gi' };
  const fields = Object.fromEntries(
    Array.from({ length: 60 }, (_, at) => [`f:field-${at}`, { '.': {}, 'f:name': {}, 'f:value': {} }]),
  );
  return {
    metadata: {
      name: `pod-${index}`,
      namespace: 'default',
      labels: { app: 'train' },
      annotations: { note: 'x'.repeat(400) },
      managedFields: [{ manager: 'kubelet', operation: 'Update', fieldsV1: fields }],
    },
    spec: {
      nodeName: NODE,
      containers: [
        {
          name: 'main',
          image: 'registry/train:1',
          resources: { limits, requests: limits },
          env: Array.from({ length: 20 }, (_, at) => ({ name: `V${at}`, value: 'value' })),
        },
      ],
    },
    status: {
      phase: 'Running',
      conditions: Array.from({ length: 4 }, (_, at) => ({ type: `C${at}`, status: 'True' })),
      containerStatuses: [{ name: 'main', state: { running: {} } }],
    },
  };
}

/** Lets a child process follow the pods until each of them has been updated. */
async function follow(
  server: ApiServer,
  how: 'ours' | 'library',
  pods: number,
): Promise<{ readonly synced: Report; readonly updated: Report }> {
  const script = fileURLToPath(new URL(`./pods/${how}.js`, import.meta.url));
  const child = spawn(
    process.execPath,
    [script, JSON.stringify({ url: server.url, node: NODE, pods } satisfies Task)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'exit');
  const reports: Report[] = [];
  for await (const line of createInterface(child.stdout)) {
    reports.push(JSON.parse(line) as Report);
    if (reports.length > 1) break;
    await new Promise((resolve) => setTimeout(resolve, 300));
    child.stdin.write('go\n');
    for (let i = 0; i < pods; i += 1) {
      server.edit('pods', 'default', `pod-${i}`, (pod) => ({
        ...pod,
        metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, 'tencent.com/gpu-assigned': LAST } },
      }));
    }
  }
  await ended;
  const [synced, updated] = reports;
  if (synced === undefined || updated === undefined) throw new Error(`${how}: the child ended early`);
  return { synced, updated };
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/** Following the pods of a node through our own list and watch, compared with the ListWatch of the client library. */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const pods = Number(args[0] ?? 2_000);
  note(`${pods} pods, listed and then each updated once; medians of ${ROUNDS} processes each`);
  const rounds = {
    ours: [] as Awaited<ReturnType<typeof follow>>[],
    library: [] as Awaited<ReturnType<typeof follow>>[],
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const how of ['ours', 'library'] as const) {
      const server = new ApiServer();
      await server.start();
      for (let i = 0; i < pods; i += 1) server.seed('pods', podObject(i));
      rounds[how].push(await follow(server, how, pods));
      await server.stop();
    }
  }
  const figure = (name: string, unit: string, of: (result: Awaited<ReturnType<typeof follow>>) => number): void =>
    report(measured(name, median(rounds.ours.map(of)), unit, median(rounds.library.map(of))));
  figure('from start to every pod known', 'ms', ({ synced }) => synced.ms);
  figure('every pod updated once', 'ms', ({ updated }) => updated.ms);
  figure('memory added', 'MB', ({ updated }) => (updated.rssBytes - updated.baseBytes) / 1e6);
}
