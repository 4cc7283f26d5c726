import { credentials } from '@grpc/grpc-js';
import { Command, InvalidArgumentError, Option } from 'commander';
import { StartupError } from '../host/startup-error.js';
import { parseCores, parseMemory } from '../manifests/container-value.js';
import type { ContainerLimits__Output } from '../rpc/gen/vgpu/ContainerLimits.js';
import { limitsProto } from '../rpc/proto.js';
import { callUnary } from '../rpc/unary.js';
import { refuseWords } from './default-subcommand.js';
import { displaySocketOption, withNode } from './display-client.js';
import { CONTAINER_NAME, namedContainer, withOperator } from './named-container.js';
import { outputOption, print, type Output } from './output.js';
import { mib, table } from './terminal-text.js';

interface Connection {
  readonly displaySocket: string;
}

interface PrintOptions extends Connection {
  readonly output: Output;
}

interface SetOptions extends PrintOptions {
  readonly memory?: number;
  readonly cores?: number;
  readonly share?: number;
  readonly soft?: number;
}

const TIMEOUT_MS = 5_000;

type Client = InstanceType<ReturnType<typeof limitsProto>['vgpu']['Limits']>;

/** `gpu-manager limits`: shows and changes the limits of running containers on this node. */
export function limitsCommand(): Command {
  const command = new Command('limits').description('show and set the limits of running containers on this node');
  command
    .command('list', { isDefault: true })
    .description('show the limits, the allocation and the use of each container')
    .addOption(displaySocketOption())
    .addOption(outputOption())
    .allowExcessArguments()
    .action((options: PrintOptions, self: Command) => {
      refuseWords(self);
      return connected(options, async (client) => {
        await show(options, await list(client));
      });
    });
  command
    .command('set')
    .description('lower the limits of a running container')
    .argument('<container>', CONTAINER_NAME)
    .option(
      '--memory <amount>',
      'memory limit over all GPUs of the container: blocks of 256 MiB, or bytes with a unit (4GiB)',
      memory,
    )
    .option('--cores <cores>', 'cores of each GPU that belong to the container', parsedCores)
    .addOption(new Option('--share <cores>', 'the earlier name of --cores').argParser(parsedCores).conflicts('cores'))
    .option('--soft <cores>', 'cores that the container may use while other containers leave the GPU idle', parsedCores)
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((name: string, options: SetOptions) =>
      connected(options, async (client) => {
        const { memory: memoryBytes, cores: share = options.share, soft } = options;
        if (memoryBytes === undefined && share === undefined && soft === undefined)
          throw new StartupError('give at least one of --memory, --cores and --soft');
        const { allocation } = namedContainer(await list(client), name);
        const request = {
          allocation,
          memory_bytes: memoryBytes ?? 0,
          share: share ?? 0,
          soft_limit: soft ?? 0,
        };
        const { notes } = await callUnary(client, 'Set', request, TIMEOUT_MS);
        await showChanged(options, client, allocation, notes);
      }),
    );
  command
    .command('release')
    .description('remove the limits that were set; the container gets its allocation or its limit annotations again')
    .argument('<container>', CONTAINER_NAME)
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((name: string, options: PrintOptions) =>
      connected(options, async (client) => {
        const { allocation } = namedContainer(await list(client), name);
        const { notes } = await callUnary(client, 'Release', { allocation }, TIMEOUT_MS);
        await showChanged(options, client, allocation, notes);
      }),
    );
  return command;
}

async function connected(options: Connection, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new (limitsProto().vgpu.Limits)(`unix:${options.displaySocket}`, credentials.createInsecure());
  await withOperator(options.displaySocket, client, work);
}

async function list(client: Client): Promise<readonly ContainerLimits__Output[]> {
  const { containers } = await callUnary(client, 'List', {}, TIMEOUT_MS);
  return containers;
}

async function showChanged(
  options: PrintOptions,
  client: Client,
  allocation: string,
  notes: readonly string[] = [],
): Promise<void> {
  for (const note of notes) process.stderr.write(`gpu-manager: ${note}\n`);
  await show(
    options,
    (await list(client)).filter((container) => container.allocation === allocation),
  );
}

async function show(
  { output, displaySocket }: PrintOptions,
  containers: readonly ContainerLimits__Output[],
): Promise<void> {
  const { gpus } = await withNode(displaySocket, (node) => node.snapshot());
  const indexes = new Map(gpus.map(({ uuid, index }) => [uuid, index]));
  await print(output, {
    document: () => containers.map((container) => asDocument(container, indexes)),
    table: () => asTable(containers, indexes, false),
    wide: () => asTable(containers, indexes, true),
  });
}

const HEADINGS = ['CONTAINER', 'GPU', 'SHARE', 'UP TO', 'MEMORY', 'USED', 'USE', 'ALLOCATION'];
const MORE_HEADINGS = ['GPU UUID', 'POD UID'];

/** Indexes of this node's GPUs, by UUID. */
type GpuIndexes = ReadonlyMap<string, number>;

function asTable(containers: readonly ContainerLimits__Output[], indexes: GpuIndexes, wide: boolean): string {
  const rows = containers.flatMap((container) =>
    container.devices.map((device) => [
      `${container.namespace}/${container.pod}/${container.container}`,
      String(indexes.get(device.gpu_uuid) ?? '-'),
      less(device.share, device.allocated_share),
      device.soft_limit === 0 ? '-' : String(device.soft_limit),
      less(limit(device.memory_bytes), limit(device.allocated_memory_bytes)),
      mib(Number(device.used_memory_bytes)),
      `${device.used_percent.toFixed(0)} %`,
      `${container.allocation}${container.set_by_operator ? ' (set)' : ''}${container.unenforced ? ' (unenforced)' : ''}`,
      ...(wide ? [device.gpu_uuid, container.pod_uid || '-'] : []),
    ]),
  );
  return table(wide ? [...HEADINGS, ...MORE_HEADINGS] : HEADINGS, rows);
}

/** The present limit, with the allocated amount if that is higher. */
function less(held: number | string, given: number | string): string {
  return held === given ? String(held) : `${held} of ${given}`;
}

function limit(bytes: string): string {
  return Number(bytes) === 0 ? '-' : mib(Number(bytes));
}

function asDocument(container: ContainerLimits__Output, indexes: GpuIndexes) {
  const bytesOf = (bytes: string): number | null => (Number(bytes) === 0 ? null : Number(bytes));
  return {
    allocation: container.allocation,
    podUid: container.pod_uid,
    namespace: container.namespace,
    pod: container.pod,
    container: container.container,
    setByOperator: container.set_by_operator,
    unenforced: container.unenforced,
    devices: container.devices.map((device) => ({
      gpuIndex: indexes.get(device.gpu_uuid) ?? null,
      gpuUuid: device.gpu_uuid,
      memoryBytes: bytesOf(device.memory_bytes),
      allocatedMemoryBytes: bytesOf(device.allocated_memory_bytes),
      share: device.share,
      allocatedShare: device.allocated_share,
      softLimit: device.soft_limit === 0 ? null : device.soft_limit,
      usedMemoryBytes: Number(device.used_memory_bytes),
      usedPercent: device.used_percent,
      generation: device.generation,
    })),
  };
}

function memory(text: string): number {
  const bytes = parseMemory(text);
  if (bytes === null)
    throw new InvalidArgumentError('Expected blocks of 256 MiB such as 16, or an amount with a unit such as 4GiB.');
  return bytes;
}

function parsedCores(text: string): number {
  const value = parseCores(text);
  if (value === null) throw new InvalidArgumentError('Expected a number of cores from 1 to 100.');
  return value;
}
