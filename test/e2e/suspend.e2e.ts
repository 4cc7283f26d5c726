import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { SUSPEND_IDLE_KEY } from '../../src/gpu/annotations.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { filesNeededBy } from '../containers/program-files.js';
import { nativeSkipReason, simulatedHost } from '../containers/simulated-host.js';
import { until } from '../harness/eventually.js';
import { buildProgram } from '../harness/gpu-machine/tenant.js';
import { KUBECTL_GPU } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';
import { scratchDirectory } from '../scratch.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { importImage } from './image.js';
import { podManifest } from './pods.js';

/** The steps of docs/guides/notebooks-that-give-back.md; a program that holds memory stands for the notebook. */

const IMAGE = 'docker.io/local/notebook:1';
const PROGRAM = '/recall';
const HELD_MIB = 512;

const cluster = new TestCluster();
const run = promisify(execFile);

tap.setTimeout(timeLimit(600_000));

/** The part of the agent's `/api/node` that this file reads. */
interface NodeDocument {
  readonly gpus: readonly { readonly index: number; readonly usedMemoryBytes: number }[];
  readonly allocations: readonly {
    readonly owners: readonly { readonly pod: string }[];
    readonly suspension?: { readonly step: string; readonly by: string; readonly held: boolean };
    readonly slices: readonly { readonly gpuIndex: number; readonly usedMemoryBytes: number }[];
  }[];
}

const gpuNodes = (): readonly string[] => readdirSync('/dev').filter((name) => name.startsWith('nvidia'));
const skip = nativeSkipReason() || (gpuNodes().length > 0 && 'this machine has GPUs of its own');

test('an idle notebook gives its GPU memory back, and a cell gets it again', { skip }, async (t) => {
  t.teardown(() => {
    for (const name of gpuNodes()) rmSync(join('/dev', name), { recursive: true, force: true });
  });
  const scratch = await scratchDirectory(t);
  const program = buildProgram('test/harness/gpu-machine/recall.c', scratch, 'recall');
  const { files, config } = await simulatedHost(scratch);
  importImage(cluster.containerdSocket, IMAGE, [
    ...files,
    { from: program, to: PROGRAM },
    ...(await filesNeededBy([program])).filter(({ to }) => files.every((known) => known.to !== to)),
  ]);
  const machine = join(cluster.directory, 'gpu-sim');
  mkdirSync(machine, { recursive: true });
  const agent = new AgentProcess(cluster, '{"gpus":[{}]}', [
    '--allow-suspend',
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

  const allocation = async (): Promise<NodeDocument['allocations'][number] | undefined> => {
    const document = (await (await fetch(`http://localhost:${agent.port}/api/node`)).json()) as NodeDocument;
    return document.allocations.find(({ owners }) => owners.some(({ pod }) => pod === 'notebook'));
  };
  const usedMib = async (): Promise<number> => ((await allocation())?.slices[0]?.usedMemoryBytes ?? 0) / 2 ** 20;
  const steps = (step: string | undefined): Promise<unknown> =>
    until(`the notebook to be ${step ?? 'running'}`, async () => {
      const found = await allocation();
      return found !== undefined && found.suspension?.step === step;
    });
  const words = async (): Promise<number> =>
    ((await cluster.kubectl('logs', 'notebook')).match(/^5eed$/gmu) ?? []).length;
  /** Runs a cell, and waits until it has read the memory that was written at the start. */
  const cell = async (): Promise<void> => {
    const before = await words();
    await cluster.kubectl('exec', 'notebook', '--', 'sh', '-c', 'echo go > /tmp/cells');
    await until('the cell to end', async () => (await words()) > before);
  };
  const gpu = (...args: readonly string[]): Promise<string> =>
    run(process.execPath, [KUBECTL_GPU, ...args], { env: { ...process.env, KUBECONFIG: cluster.kubeconfig } }).then(
      ({ stdout }) => stdout,
      (error: { readonly stdout: string; readonly stderr: string }) => error.stdout + error.stderr,
    );

  const command = [
    'export GPU_SIM_STATE=/simulated CUDA_VISIBLE_DEVICES=$NVIDIA_VISIBLE_DEVICES',
    'mkfifo /tmp/cells',
    `exec ${PROGRAM} ${HELD_MIB} <> /tmp/cells`,
  ].join('; ');
  const container = { name: 'main', cores: 50, memoryBlocks: 16, image: IMAGE, command };
  await cluster.apply(podManifest('notebook', [{ ...container, directories: { '/simulated': machine } }]));
  await until('the notebook to hold its memory', async () => (await usedMib()) >= HELD_MIB);

  // By hand, until a cell runs.
  t.match(await gpu('suspend', 'notebook'), /pod\/notebook: main.* on the host\n$/);
  await steps('suspended');
  await until('the GPU to be free', async () => (await usedMib()) === 0);
  t.match((await allocation())?.suspension, { by: 'pod', held: false });
  await cell();
  await steps(undefined);
  await until('the notebook to have its memory again', async () => (await usedMib()) >= HELD_MIB);

  // Held: a cell waits, also while the agent restarts.
  t.match(await gpu('suspend', 'notebook', '--hold'), /vcuda-suspend=held@/);
  await steps('suspended');
  const before = await words();
  await cluster.kubectl('exec', 'notebook', '--', 'sh', '-c', 'echo go > /tmp/cells');
  await agent.restart('SIGKILL');
  await steps('suspended');
  t.equal(await words(), before);
  t.match(await gpu('resume', 'notebook'), /vcuda-suspend=running@/);
  await until('the cell to end', async () => (await words()) > before);
  await steps(undefined);

  // When idle, and again with the next cell.
  await cluster.kubectl('annotate', 'pod', 'notebook', `${SUSPEND_IDLE_KEY}=2s`);
  await steps('suspended');
  t.match((await allocation())?.suspension, { by: 'idle', held: false });
  await cell();
  const events = await cluster.kubectl('get', 'events', '-o', 'jsonpath={.items[*].reason}');
  t.match(events, /GPUSuspended/);
  t.match(events, /GPUResumed/);
  await cluster.removePods('notebook');
});
