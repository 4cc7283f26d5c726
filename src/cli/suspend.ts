import { credentials } from '@grpc/grpc-js';
import { Command, Option } from 'commander';
import type { SuspendableContainer__Output } from '../rpc/gen/vgpu/SuspendableContainer.js';
import { suspendProto } from '../rpc/proto.js';
import { callUnary } from '../rpc/unary.js';
import { displaySocketOption } from './display-client.js';
import { CONTAINER_NAME, namedContainer, withOperator } from './named-container.js';
import { outputOption, print, type Output } from './output.js';
import { mib, table } from './terminal-text.js';

interface Options {
  readonly displaySocket: string;
  readonly output: Output;
}

const LIST_MS = 15_000;
/** The agent itself limits each step; 140 GiB at 1 GiB/s, locks, and waiting for room fit. */
const WORK_MS = 600_000;

type Client = InstanceType<ReturnType<typeof suspendProto>['vgpu']['Suspend']>;

/** `gpu-manager suspend`: moves the GPU memory of a container to the host, or shows what is suspended. */
export function suspendCommand(): Command {
  return new Command('suspend')
    .description("move a running container's GPU memory to the host, or show which containers are suspended or can be")
    .argument('[container]', CONTAINER_NAME)
    .addOption(
      new Option('--hold', 'its calls wait until "gpu-manager resume"; without it, the next call resumes it').default(
        false,
      ),
    )
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((name: string | undefined, options: Options & { readonly hold: boolean }) =>
      connected(options, async (client) => {
        if (name === undefined) await show(options, await list(client));
        else await change(client, 'Suspend', name, options, options.hold);
      }),
    );
}

/** `gpu-manager resume`: moves it back. */
export function resumeCommand(): Command {
  return new Command('resume')
    .description("move a suspended container's memory back to the GPU")
    .argument('<container>', CONTAINER_NAME)
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((name: string, options: Options) =>
      connected(options, (client) => change(client, 'Resume', name, options)),
    );
}

async function connected(options: Options, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new (suspendProto().vgpu.Suspend)(`unix:${options.displaySocket}`, credentials.createInsecure());
  await withOperator(options.displaySocket, client, work);
}

async function list(client: Client): Promise<readonly SuspendableContainer__Output[]> {
  return (await callUnary(client, 'List', {}, LIST_MS)).containers;
}

const WHERE = { Suspend: 'on the host', Resume: 'on the GPU again' } as const;

async function change(
  client: Client,
  call: keyof typeof WHERE,
  name: string,
  { output }: Options,
  held = false,
): Promise<void> {
  const { allocation, namespace, pod, container } = namedContainer(await list(client), name);
  const { bytes, processes } = await callUnary(client, call, { allocation, held }, WORK_MS);
  const of = processes === 1 ? '1 process' : `${processes} processes`;
  await print(output, {
    document: () => ({ allocation, namespace, pod, container, bytes: Number(bytes), processes }),
    table: () => `${namespace}/${pod}/${container}: ${mib(Number(bytes))} of ${of} ${WHERE[call]}\n`,
  });
}

async function show({ output }: Options, containers: readonly SuspendableContainer__Output[]): Promise<void> {
  const asTable = (): string =>
    table(
      ['CONTAINER', 'STEP', 'SINCE', 'BY', 'ON THE HOST', 'WANTED SINCE', 'WHY NOT', 'ALLOCATION'],
      containers.map((one) => [
        `${one.namespace}/${one.pod}/${one.container}`,
        one.step,
        one.step === 'running' ? '-' : new Date(Number(one.since_ms)).toISOString(),
        one.step === 'running' ? '-' : `${one.by}${one.held ? ', held' : ''}`,
        one.step === 'running' ? '-' : mib(Number(one.host_bytes)),
        Number(one.wants_since_ms) === 0 ? '-' : new Date(Number(one.wants_since_ms)).toISOString(),
        one.obstacles.join('; ') || '-',
        one.allocation,
      ]),
    );
  await print(output, {
    document: () =>
      containers.map(({ since_ms, host_bytes, wants_since_ms, by, held, ...one }) => ({
        ...one,
        sinceMs: one.step === 'running' ? null : Number(since_ms),
        ...(one.step === 'running' ? {} : { by, held }),
        hostBytes: Number(host_bytes),
        wantsSinceMs: Number(wants_since_ms) === 0 ? null : Number(wants_since_ms),
      })),
    table: asTable,
  });
}
