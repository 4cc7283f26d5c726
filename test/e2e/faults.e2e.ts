import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import tap, { test } from 'tap';
import { CHECKPOINT_FILE, decodeCheckpoint } from '../../src/gpu/ledger/checkpoint.js';
import { coreIdsOf, memoryIdsOf, type Allocation } from '../../src/gpu/ledger/allocation.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { PodResourcesClient } from '../../src/agent/device-plugin/pod-resources.js';
import { generator } from '../generator.js';
import { AgentProcess } from './agent-process.js';
import { NODE, TestCluster } from './cluster.js';
import { podManifest, type TestContainer } from './pods.js';
import { until } from '../harness/eventually.js';

/**
 * Duration of the faults: pods are created and deleted while agent and kubelet are killed: `node dist/test/e2e/run.js
 * faults --seconds 600`.
 */
const SECONDS = Number(process.env.GPU_MANAGER_E2E_SECONDS ?? 60);
const SEED = Number(process.env.GPU_MANAGER_SEED ?? Date.now() % 1_000_000);
const MAX_PODS = 8;
/** Name of every init container. */
const INITIAL = 'before';
const SHAPES: readonly (readonly [cores: number, memoryBlocks: number])[] = [
  [10, 4],
  [10, 8],
  [20, 8],
  [30, 16],
  [50, 32],
  [100, 0],
  [100, 8],
  [200, 8],
];
const POD_RESOURCES = '/var/lib/kubelet/pod-resources/kubelet.sock';
const PLUGINS = '/var/lib/kubelet/device-plugins';

const cluster = new TestCluster();
tap.setTimeout((SECONDS + 600) * 1_000);

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly status: {
      readonly phase: string;
      readonly reason?: string;
      readonly containerStatuses?: Status['status']['containerStatuses'];
      readonly conditions?: readonly { readonly type: string; readonly reason?: string; readonly message?: string }[];
    };
  }[];
}

const podList = async (): Promise<Pods['items']> =>
  (JSON.parse(await cluster.kubectl('get', 'pods', '-o', 'json')) as Pods).items;

/** The allocations in the checkpoint of the agent. */
function ledger(agent: AgentProcess): readonly Allocation[] {
  const decoded = decodeCheckpoint(readFileSync(join(agent.directory, 'checkpoint', CHECKPOINT_FILE), 'utf8'));
  if (!decoded.ok || decoded.format !== 'current') throw new Error('the checkpoint cannot be read');
  return decoded.content.allocations;
}

/** The devices that the kubelet lists as held. */
async function heldIds(): Promise<{ readonly core: string[]; readonly memory: string[] }> {
  const client = new PodResourcesClient(POD_RESOURCES);
  try {
    const containers = await client.list();
    const of = (resource: string): string[] => containers.flatMap(({ devices }) => devices.get(resource) ?? []).sort();
    return { core: of(CORE_RESOURCE), memory: of(MEMORY_RESOURCE) };
  } finally {
    client.close();
  }
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    });
    connection.on('error', () => resolve(false));
  });
}

/**
 * Mounts of the agent's slice directories in any process of this machine: the allocation, and whether the directory
 * still exists. Other agents on this machine have directories of their own.
 */
function sliceMounts(agent: AgentProcess): { readonly allocation: string; readonly deleted: boolean }[] {
  const seen = new Set<string>();
  // A bind mount names its directory from the root of the file system that holds it: /run/gm-e2e/vm or /gm-e2e/vm.
  const ours = new RegExp(`/${basename(agent.directory)}/vm/([0-9a-f]{16})\\S*`, 'gu');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const namespace = readlinkSync(`/proc/${pid}/ns/mnt`);
        if (seen.has(namespace)) return [];
        seen.add(namespace);
        return [...readFileSync(`/proc/${pid}/mountinfo`, 'utf8').matchAll(ours)].map((match) => ({
          allocation: match[1] ?? '',
          deleted: match[0].includes('deleted'),
        }));
      } catch {
        return [];
      }
    });
}

/** All differences between ledger, kubelet and disk. */
async function disagreements(agent: AgentProcess): Promise<string[]> {
  const allocations = ledger(agent);
  const held = await heldIds();
  const faults: string[] = [];
  // Pod-resources lists no init containers; these and the containers after them hold the same ids in turn.
  const named = allocations.filter(
    ({ owners }) => owners.length === 0 || owners.some(({ container }) => container !== INITIAL),
  );
  for (const [kind, idsOf] of [
    ['core', coreIdsOf],
    ['memory', memoryIdsOf],
  ] as const) {
    const ours = named.flatMap(idsOf);
    const pods = new Map<string, Set<string>>();
    for (const allocation of allocations)
      for (const id of idsOf(allocation))
        pods.set(id, (pods.get(id) ?? new Set()).add(allocation.owners[0]?.podUid ?? allocation.id));
    if ([...pods.values()].some((holders) => holders.size > 1)) faults.push(`${kind}: two pods hold an id`);
    if (new Set(held[kind]).size < held[kind].length) faults.push(`${kind}: the kubelet names an id twice`);
    if ([...ours].sort().join() !== held[kind].join())
      faults.push(`${kind}: ${ours.length} ids in the ledger, ${held[kind].length} at the kubelet, or others`);
  }
  const ids = allocations.map(({ id }) => id).sort();
  const directories = readdirSync(join(agent.directory, 'vm')).sort();
  if (directories.join() !== ids.join()) faults.push(`directories ${directories.join()} for allocations ${ids.join()}`);
  for (const id of ids)
    if (!(await answers(join(agent.directory, 'vm', id, 'vcuda.sock'))))
      faults.push(`nobody listens on the socket of ${id}`);
  const sockets = readdirSync(PLUGINS)
    .filter((name) => name.endsWith('.sock'))
    .sort();
  if (sockets.join() !== 'kubelet.sock,vcore.sock,vmemory.sock') faults.push(`sockets ${sockets.join()}`);
  const orphans = sliceMounts(agent).filter(({ allocation, deleted }) => deleted || !ids.includes(allocation));
  if (orphans.length > 0) faults.push(`mounts of directories that are nobody's: ${JSON.stringify(orphans)}`);
  return faults;
}

/** Rejects with the differences if they persist. */
async function agreement(agent: AgentProcess): Promise<void> {
  let last: string[] = [];
  await until(
    'ledger, kubelet and disk to agree',
    async () => {
      last = await disagreements(agent);
      if (last.length > 0) throw new Error(last.join('; '));
      return true;
    },
    90_000,
  );
}

/** No pod waits or is being deleted; failed pods, and pods without room, have been removed. */
async function settled(): Promise<void> {
  await until(
    'pods to settle',
    async () => {
      const pods = await podList();
      const isGoing = ({ metadata }: Pods['items'][number]): boolean => metadata.deletionTimestamp !== undefined;
      const over = pods.filter(
        (pod) => !isGoing(pod) && (['Failed', 'Succeeded'].includes(pod.status.phase) || isUnschedulable(pod)),
      );
      for (const { metadata } of over) await cluster.kubectl('delete', 'pod', metadata.name, '--wait=false');
      const unsettled = pods.filter((pod) => isGoing(pod) || pod.status.phase !== 'Running');
      if (unsettled.length === 0) return true;
      const words = unsettled.map(({ metadata, status }) => {
        const waiting = status.containerStatuses?.flatMap(
          ({ state }) => state.waiting?.message ?? state.waiting?.reason ?? [],
        );
        return `${metadata.name} is ${status.phase}, deletion ${metadata.deletionTimestamp ?? 'not asked'}: ${waiting?.join() ?? ''}`;
      });
      throw new Error(words.join('; '));
    },
    180_000,
  );
}

function isUnschedulable({ status }: Pods['items'][number]): boolean {
  return status.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable') === true;
}

/**
 * The checkpoint of a kubelet names the devices of ended pods until it admits the next one: this creates a small pod
 * after the last one.
 */
async function admitOneMore(): Promise<void> {
  const [first] = await podList();
  if (first !== undefined) await cluster.kubectl('delete', 'pod', first.metadata.name, '--wait=true', '--timeout=60s');
  await cluster.apply(podManifest('one-more', [{ name: 'main', cores: 1, memoryBlocks: 1, command: 'sleep 100000' }]));
  await settled();
}

test(
  `${SECONDS} s of pods that are created and deleted while agent and kubelet are killed at random leave no difference`,
  { skip: existsSync(POD_RESOURCES) ? false : `no ${POD_RESOURCES}`, timeout: (SECONDS + 500) * 1_000 },
  async (t) => {
    t.comment(`seed ${SEED}`);
    const random = generator(SEED);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const agent = new AgentProcess(cluster, '{"gpus":[{},{},{},{}]}');
    t.teardown(() => agent.stop());
    await agent.start();
    const end = Date.now() + SECONDS * 1_000;
    const done = { created: 0, deleted: 0, 'agent killed': 0, 'kubelet killed': 0 };
    const alive: string[] = [];
    while (Date.now() < end) {
      const dice = random();
      if (dice < 0.5 && alive.length < MAX_PODS) {
        const name = `p${(done.created += 1)}`;
        const [cores, memoryBlocks] = pick(SHAPES);
        const again = random() < 0.3;
        const container: TestContainer = {
          name: 'main',
          cores,
          memoryBlocks,
          command: again ? `sleep ${1 + Math.floor(random() * 5)}; exit 1` : 'sleep 100000',
        };
        const initial: TestContainer[] =
          random() < 0.2 ? [{ name: INITIAL, cores: 20, memoryBlocks: 8, command: 'true' }] : [];
        await cluster.apply(podManifest(name, [container], initial, again ? 'Always' : 'Never'));
        alive.push(name);
      } else if (dice < 0.75 && alive.length > 0) {
        const name = pick(alive);
        alive.splice(alive.indexOf(name), 1);
        await cluster.kubectl('delete', 'pod', name, '--wait=false', '--ignore-not-found');
        done.deleted += 1;
      } else if (dice < 0.9) {
        await cluster.processes.restart('agent', 'SIGKILL');
        done['agent killed'] += 1;
      } else if (dice < 0.95) {
        await cluster.processes.restart('kubelet', 'SIGKILL');
        done['kubelet killed'] += 1;
      }
      await delay(200 + random() * 1_500);
    }
    t.comment(JSON.stringify(done));
    // Pods that restart again and again would allocate and release without end.
    for (const { metadata } of await podList())
      if (
        !(await cluster.kubectl('get', 'pod', metadata.name, '-o', 'jsonpath={.spec.restartPolicy}')).includes('Never')
      )
        await cluster.kubectl('delete', 'pod', metadata.name, '--wait=false');
    await agent.ready();
    await settled();
    await admitOneMore();
    await agreement(agent);
    t.pass('ledger, kubelet and disk agree');
    for (const { metadata } of await podList()) await cluster.kubectl('delete', 'pod', metadata.name, '--wait=false');
    await until('all pods to be gone', async () => (await podList()).length === 0, 120_000);
    // A kubelet releases devices of ended pods when it admits the next one.
    await cluster.apply(podManifest('last', [{ name: 'main', cores: 400, memoryBlocks: 16, command: 'sleep 100000' }]));
    await until(
      'the empty node to run a pod that wants all of it',
      async () => (await podList()).every(({ status }) => status.phase === 'Running'),
      120_000,
    );
    await agreement(agent);
    t.same(
      ledger(agent).map((allocation) => coreIdsOf(allocation).length),
      [400],
      'no other allocation remains',
    );
    await cluster.kubectl('delete', 'pod', 'last', '--wait=true', '--timeout=60s');
  },
);

interface Status {
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly containerStatuses?: readonly {
      readonly state: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
    }[];
  };
}

test('the status of a refused pod contains the reason in the words of the agent', async (t) => {
  const broken = podManifest('broken', [{ name: 'main', cores: 30, memoryBlocks: 0, command: 'true' }]);
  for (const [when, flags] of [
    ['when it is allocated', []],
    ['when it starts, where pods are not known before', ['--standalone']],
  ] as const) {
    const agent = new AgentProcess(cluster, '{"gpus":[{},{},{},{}]}', flags);
    await agent.start();
    try {
      await until(
        'allocatable GPUs',
        async () =>
          (await cluster.get<{ status: { allocatable: Record<string, string> } }>('node', NODE)).status.allocatable[
            CORE_RESOURCE
          ] === '400',
      );
      await cluster.apply(broken);
      const text = await until(`the refusal ${when}`, async () => {
        const { status } = await cluster.get<Status>('pod', 'broken');
        const waiting = status.containerStatuses?.[0]?.state.waiting?.message ?? '';
        return [status.message ?? '', waiting].find((message) => message.includes('gpu-manager: ')) ?? null;
      });
      t.comment(`${when}: ${text}`);
      t.match(
        text,
        /gpu-manager: (PreStartContainer check failed: )?tencent\.com\/vcuda-core: 30 is a part of a GPU and needs tencent\.com\/vcuda-memory as well/,
        when,
      );
    } finally {
      await cluster.kubectl('delete', 'pod', 'broken', '--wait=true', '--timeout=60s', '--ignore-not-found');
      await agent.stop();
    }
  }
});
