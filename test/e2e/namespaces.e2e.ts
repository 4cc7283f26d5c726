import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { nativeSkipReason, PROBE, simulatedHost } from '../containers/simulated-host.js';
import { scratchDirectory } from '../scratch.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { importImage } from './image.js';
import { podManifest } from './pods.js';
import { until } from '../harness/eventually.js';

const IMAGE = 'docker.io/local/probe:1';
const USED_MIB = 100;

const cluster = new TestCluster();

tap.setTimeout(900_000);

/** Namespaces of a pod, and what a process of it looks like from the host. */
interface Shape {
  readonly name: string;
  readonly spec: object;
  /** Whether the process has another pid, and another user id, in its container than on the host. */
  readonly otherPid: boolean;
  readonly otherUser: boolean;
  readonly needs: number;
}

const OWN_USERS = { hostUsers: false, hostNetwork: false };
const SHAPES: readonly Shape[] = [
  { name: 'own-pids', spec: {}, otherPid: true, otherUser: false, needs: 20 },
  { name: 'shared-pids', spec: { shareProcessNamespace: true }, otherPid: true, otherUser: false, needs: 20 },
  { name: 'host-pids', spec: { hostPID: true }, otherPid: false, otherUser: false, needs: 20 },
  { name: 'own-users', spec: OWN_USERS, otherPid: true, otherUser: true, needs: 33 },
  {
    name: 'own-users-shared-pids',
    spec: { ...OWN_USERS, shareProcessNamespace: true },
    otherPid: true,
    otherUser: true,
    needs: 33,
  },
];

/** The part of the agent's `/api/node` that this file reads. */
interface NodeDocument {
  readonly allocations: readonly {
    readonly owners: readonly { readonly pod: string }[];
    readonly processes: number;
    readonly findings: readonly { readonly code: string; readonly message: string }[];
    readonly slices: readonly { readonly pids: readonly number[]; readonly usedMemoryBytes: number }[];
  }[];
}

/** Pid in the innermost namespace, and real user id on the host, of a process of the host. */
function identityOf(pid: number): { readonly innerPid: number; readonly uid: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const fields = (name: string): readonly number[] =>
    (new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(status)?.[1] ?? '').split(/\s+/).map(Number);
  return { innerPid: fields('NSpid').at(-1) ?? NaN, uid: fields('Uid')[0] ?? NaN };
}

const gpuNodes = (): readonly string[] => readdirSync('/dev').filter((name) => name.startsWith('nvidia'));
const skip = nativeSkipReason() || (gpuNodes().length > 0 && 'this machine has GPUs of its own');

test('a process is known by its connection to vcuda.sock, whatever namespaces it has', { skip }, async (t) => {
  // A container of a user namespace gets the device node of the host with the same path.
  t.teardown(() => {
    for (const name of gpuNodes()) rmSync(join('/dev', name), { recursive: true, force: true });
  });
  const { files, config } = await simulatedHost(await scratchDirectory(t));
  importImage(cluster.containerdSocket, IMAGE, files);
  const machine = join(cluster.directory, 'gpu-sim');
  mkdirSync(machine, { recursive: true });
  const agent = new AgentProcess(cluster, '{"gpus":[{},{}]}', [
    '--sim-device-path=/dev',
    `--sim-state=${machine}`,
    `--volume-config=${config.volumeConfigPath}`,
    `--host-root=${config.hostRoot}`,
    `--native-path=${config.nativePath}`,
    `--container-runtime-endpoint=${cluster.containerdSocket}`,
  ]);
  t.teardown(() => agent.stop());
  await agent.start();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);

  const allocationOf = async (pod: string): Promise<NodeDocument['allocations'][number] | undefined> => {
    const answer = await fetch(`http://localhost:${agent.port}/api/node`);
    const { allocations } = (await answer.json()) as NodeDocument;
    return allocations.find(({ owners }) => owners.some(({ pod: name }) => name === pod));
  };
  const settled = (pod: string) =>
    until(`the agent to see the process of ${pod}`, async () => {
      const found = await allocationOf(pod);
      const [slice] = found?.slices ?? [];
      return found?.processes === 1 && (slice?.usedMemoryBytes ?? 0) >> 20 >= USED_MIB && found;
    });

  for (const { name, spec, otherPid, otherUser, needs } of SHAPES)
    await t.test(name, { skip: cluster.version.atLeast(needs) ? false : `needs Kubernetes 1.${needs}` }, async (t) => {
      const command = [
        'export GPU_SIM_STATE=/simulated CUDA_VISIBLE_DEVICES=$NVIDIA_VISIBLE_DEVICES',
        `exec ${PROBE} work ${USED_MIB} 1000000`,
      ].join('; ');
      const container = { name: 'main', cores: 30, memoryBlocks: 8, image: IMAGE, command };
      const made = podManifest(name, [{ ...container, directories: { '/simulated': machine } }]) as { spec: object };
      await cluster.apply({ ...made, spec: { ...made.spec, ...spec } });

      const first = await settled(name);
      const pids = first.slices.flatMap((slice) => slice.pids);
      t.equal(pids.length, 1, 'one process');
      const { innerPid, uid } = identityOf(pids[0] ?? 0);
      t.equal(innerPid !== pids[0], otherPid, `pid ${pids[0] ?? ''} on the host, ${innerPid} in the container`);
      t.equal(uid !== 0, otherUser, `user ${uid} on the host`);

      const client = (uidOfPod: string): Promise<string> =>
        cluster.kubectl(
          'exec',
          name,
          '--',
          '/usr/local/nvidia/bin/gpu-client',
          '--addr=/etc/vcuda/vcuda.sock',
          `--pod-uid=${uidOfPod}`,
          '--cont-name=main',
        );
      const { metadata } = await cluster.get<{ metadata: { uid: string } }>('pod', name);
      await t.resolves(client(metadata.uid), "the original's client registers through the same socket");

      await agent.restart();
      t.same(
        (await settled(name)).slices.flatMap((slice) => slice.pids),
        pids,
        'it greets the next agent',
      );
      t.same((await allocationOf(name))?.findings, [], 'the audit has no doubt of it');
      await cluster.kubectl('delete', 'pod', name, '--wait=true', '--timeout=60s');
    });
});
