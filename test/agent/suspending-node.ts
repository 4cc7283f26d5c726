import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { credentials, type ServiceError } from '@grpc/grpc-js';
import type { SliceNote } from '../../src/agent/slices/ports.js';
import { packageFile } from '../../src/host/package-files.js';
import { silentLog } from '../../src/host/log.js';
import { suspendProto } from '../../src/rpc/proto.js';
import { callUnary } from '../../src/rpc/unary.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { eventually } from '../harness/eventually.js';
import { buildProgram, tenantEnvironment, TenantProcess, tenantSkipReason } from '../harness/gpu-machine/tenant.js';
import { MAIN } from '../harness/programs.js';
import { scratchDirectory } from '../scratch.js';
import { libraryPath, notBuilt, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { cards } from './gpus.js';
import { runPod, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';

export const skip = notBuilt || tenantSkipReason;
const MACHINE = new SimulatedMachine(cards(1));
export const NATIVE = packageFile('native/build');
const run = promisify(execFile);
export const MIB = 2 ** 20;
export const GPU = 'GPU-00000000-0000-0000-0000-000000000000';
/** What a context and a module take on a simulated GPU. */
export const CONTEXT_MIB = 258;

/** What ends with a test, or a benchmark. */
export interface Ending {
  teardown(action: () => unknown): void;
}

/** A node with one GPU, and a pod that has half of it. */
export async function suspendingNode(t: Ending, allowSuspend: boolean) {
  const directory = await scratchDirectory(t);
  const program = buildProgram('test/harness/gpu-machine/recall.c', directory, 'recall');
  const notes: SliceNote[] = [];
  const node = new SimulatedNode({
    directory,
    gpus: cards(1),
    log: silentLog(),
    knowsPods: true,
    seams: { sliceNotices: { note: (_owner, note) => void notes.push(note) } },
    config: {
      simStatePath: MACHINE.statePath,
      simNodePath: MACHINE.nodePath,
      nvmlPath: libraryPath,
      nativePath: NATIVE,
      allowSuspend,
    },
  });
  await node.start();
  t.teardown(() => node.stop());
  const pod = simplePod(50, 30);
  const given = await runPod(node, pod);
  const environment = tenantEnvironment(MACHINE, { directory: sliceDirectory(given), gpu: 0 });
  const command = async (...args: readonly string[]): Promise<string> => {
    const done = await run(process.execPath, [MAIN, ...args, '--display-socket', node.config.displaySocket]).catch(
      (error: { readonly stderr: string }) => ({ stdout: error.stderr }),
    );
    return done.stdout;
  };
  const client = new (suspendProto().vgpu.Suspend)(`unix:${node.config.displaySocket}`, credentials.createInsecure());
  t.teardown(() => client.close());
  /** How many bytes were moved, or why none. */
  const operate = async (call: 'Suspend' | 'Resume', held = false): Promise<string> => {
    const [container] = (await callUnary(client, 'List', {}, 15_000, { waitForReady: true })).containers;
    try {
      const { bytes } = await callUnary(client, call, { allocation: container?.allocation, held }, 120_000);
      return `${Number(bytes) / MIB} MiB`;
    } catch (error) {
      return (error as ServiceError).details;
    }
  };
  return {
    node,
    notes,
    pod,
    record: join(sliceDirectory(given), 'suspended.json'),
    command,
    /** So that only `resume` lets it run again, unless it is not `held`. */
    suspend: (held = true) => operate('Suspend', held),
    resume: () => operate('Resume'),
    listed: async () => (await callUnary(client, 'List', {}, 15_000, { waitForReady: true })).containers[0],
    /** Starts a process of the pod; without `inside`, one that belongs to no container. */
    start: async (args: readonly string[], inside = true): Promise<TenantProcess> => {
      const outside = { ...environment, VGPU_SANDBOX_DIRECTORY: undefined, LD_LIBRARY_PATH: join(NATIVE, 'sim') };
      const tenant = new TenantProcess(program, args, inside ? environment : outside);
      t.teardown(() => tenant.kill());
      await eventually(() => tenant.output.includes('holds\n'), 'the program holds its memory');
      return tenant;
    },
    /** Resolves when the agent knows so many processes of the pod. */
    seen: (count: number) =>
      eventually(() => {
        const slice = node.agent.vgpu.observe().find(({ owner }) => owner.podUid === pod.uid);
        return slice?.processes === count;
      }, `${count} processes have greeted`),
    usedMib: (): number => Math.round(usedBytes() / MIB),
    remembers: async (tenant: TenantProcess): Promise<boolean> => {
      const before = tenant.output.length;
      tenant.say('go');
      await eventually(() => tenant.output.length > before, 'the program answers');
      return tenant.output.endsWith('\n5eed\n');
    },
  };
}

export const SIM = { env: { ...process.env, GPU_SIM_STATE: MACHINE.statePath, GPU_SIM_NODE: MACHINE.nodePath } };

export function simulator(...args: readonly string[]): string {
  return execFileSync(join(NATIVE, 'gpu-sim'), args, { ...SIM, encoding: 'utf8' });
}

/** How much memory of the GPU is in use, by the driver's own count. */
function usedBytes(): number {
  const gpu = simulator('status')
    .split('\n')
    .find((line) => line.includes(GPU));
  return (JSON.parse(gpu ?? '{}') as { readonly usedBytes: number }).usedBytes;
}
