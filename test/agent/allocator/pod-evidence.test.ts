import { spawn } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { podsGone, runningOf } from '../../../src/agent/allocator/pod-life.js';
import type { PodEvidence, PodRemains } from '../../../src/agent/allocator/ports.js';
import { podEvidence } from '../../../src/agent/allocator/pod-evidence.js';
import { RuntimeError, type Container, type ContainerState } from '../../../src/agent/runtimes/container.js';
import type { Allocation } from '../../../src/gpu/ledger/allocation.js';
import { systemClock } from '../../../src/host/clock.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { scratchDirectory } from '../../scratch.js';

const UID = 'pod-1';

function listed(name: string, state: ContainerState): Container {
  return {
    id: name,
    name,
    pod: { uid: UID, namespace: 'n', name: 'p' },
    labels: {},
    state,
    attempt: 0,
    createdAtMs: 0,
  };
}

const remainsOfOne = async (evidence: PodEvidence): Promise<PodRemains | null | undefined> =>
  (await evidence.remainsOf(new Set([UID]))).get(UID);

function remains(
  containers: readonly Container[] | null,
  pids: readonly number[],
): Promise<PodRemains | null | undefined> {
  const list = async (): Promise<Container[]> => {
    if (containers === null) throw new RuntimeError('unavailable', '/nowhere', 'no answer');
    return [...containers];
  };
  return remainsOfOne(podEvidence({ list, pidsByPod: async () => new Map([[UID, pids]]) }, systemClock));
}

/** A process that the kernel reports as that of a sandbox. */
async function sandbox(t: Test): Promise<number> {
  const path = join(await scratchDirectory(t), 'pause');
  await copyFile('/bin/sleep', path);
  const child = spawn(path, ['100'], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  await eventually(
    async () => child.pid !== undefined && (await remains(null, [child.pid]))?.running !== null,
    'the sandbox to start',
  );
  return child.pid ?? 0;
}

test('the runtime decides which containers of a pod run, and control groups decide where the runtime does not know the pod', async (t) => {
  t.same(await remains([listed('a', 'running'), listed('b', 'exited')], []), { running: new Set(['a']), any: true });
  t.same(await remains([listed('b', 'exited')], [process.pid]), { running: new Set(), any: true });
  t.same(await remains([], []), { running: new Set(), any: false });
  t.same(await remains([], [process.pid]), { running: null, any: true }, 'another runtime runs this pod');
  t.same(await remains(null, [process.pid]), { running: null, any: true });
  t.equal(await remains(null, []), null, 'no evidence');
  const pause = await sandbox(t);
  t.same(await remains(null, [pause]), { running: new Set(), any: true }, 'a pod with only its sandbox does not run');
  t.same(await remains(null, [pause, process.pid]), { running: null, any: true });
});

test('a runtime that hangs does not delay the answer', async (t) => {
  const clock = new ManualClock();
  const containers = { list: () => new Promise<never>(() => undefined), pidsByPod: async () => new Map() };
  const asked = remainsOfOne(podEvidence(containers, clock));
  clock.advance(2_000);
  t.equal(await asked, null);
});

test('many pods cost one list of the runtime and one reading of all processes', async (t) => {
  const asked: string[] = [];
  const containers = {
    async list() {
      asked.push('list');
      return [listed('a', 'running')];
    },
    async pidsByPod() {
      asked.push('processes');
      return new Map([['pod-7', [process.pid]]]);
    },
  };
  const podUids = new Set(Array.from({ length: 100 }, (_, at) => `pod-${at}`));
  const found = await podEvidence(containers, systemClock).remainsOf(podUids);
  t.same(asked, ['list', 'processes']);
  t.same(found.get(UID), { running: new Set(['a']), any: true });
  t.same(found.get('pod-7'), { running: null, any: true });
  t.same(found.get('pod-8'), { running: new Set(), any: false });
  asked.length = 0;
  await podEvidence(containers, systemClock).remainsOf(new Set([UID]));
  t.same(asked, ['list'], 'processes are read only for pods that the runtime does not know');
  asked.length = 0;
  await podEvidence(containers, systemClock).remainsOf(new Set());
  t.same(asked, []);
});

const evidence = (answer: PodRemains | null): PodEvidence => ({ remainsOf: async () => new Map([[UID, answer]]) });
const NOTHING: PodRemains = { running: new Set(), any: false };
const ENDED: PodRemains = { running: new Set(), any: true };
const PROCESSES: PodRemains = { running: null, any: true };
const MAIN: PodRemains = { running: new Set(['main']), any: true };

test('a pod that only the checkpoint of the kubelet names is over when the API server lacks it or nothing of it remains', async (t) => {
  const container = { podUid: UID, namespace: '', pod: '', container: 'main' };
  const holder = { container, coreIds: ['c'], memoryIds: [], gpuNames: [], isListed: false };
  for (const [exists, left, isOver] of [
    [true, NOTHING, false],
    [false, NOTHING, true],
    [false, ENDED, true],
    [false, null, true],
    [false, MAIN, false],
    [false, PROCESSES, false],
    [null, NOTHING, true],
    [null, ENDED, false],
    [null, PROCESSES, false],
    [null, null, false],
  ] as const)
    t.equal(
      (await podsGone([holder], { exists: () => exists, ask: async () => undefined }, evidence(left))).has(UID),
      isOver,
      `${exists}`,
    );
  const other = { ...holder, container: { ...container, container: 'other' }, isListed: true };
  t.equal(
    (await podsGone([holder, other], { exists: () => false, ask: async () => undefined }, evidence(NOTHING))).size,
    0,
    'the API server lists the pod',
  );
});

test('a container runs if the runtime lists it, or if a pod of the API server has processes', async (t) => {
  const owner = { podUid: UID, namespace: 'n', pod: 'p', container: 'main' };
  const allocation: Allocation = {
    id: 'a',
    parts: [],
    phase: 'started',
    owners: [owner],
    allocatedAt: 0,
    missingSince: null,
  };
  for (const [exists, left, runs] of [
    [true, MAIN, true],
    [false, MAIN, true],
    [true, { running: new Set(['other']), any: true }, false],
    [true, PROCESSES, true],
    [null, PROCESSES, true],
    [false, PROCESSES, false],
    [true, ENDED, false],
    [true, null, false],
  ] as const)
    t.equal((await runningOf([allocation], { exists: () => exists }, evidence(left))).length === 1, runs, `${exists}`);
});
