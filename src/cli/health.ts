import { credentials } from '@grpc/grpc-js';
import { Command } from 'commander';
import { StartupError } from '../host/startup-error.js';
import type { GpuHealth__Output } from '../rpc/gen/vgpu/GpuHealth.js';
import { healthProto } from '../rpc/proto.js';
import { callUnary } from '../rpc/unary.js';
import { refuseWords } from './default-subcommand.js';
import { displaySocketOption, withAgent } from './display-client.js';
import { outputOption, print, type Output } from './output.js';
import { age, table } from './terminal-text.js';

interface Connection {
  readonly displaySocket: string;
}

const TIMEOUT_MS = 5_000;

type Client = InstanceType<ReturnType<typeof healthProto>['vgpu']['Health']>;

/** `gpu-manager health`: the errors of this node's GPUs and their times; operators clear them with it. */
export function healthCommand(): Command {
  const command = new Command('health').description('show the health of the GPUs of this node, and clear it');
  command
    .command('list', { isDefault: true })
    .description('show the health of each GPU and its latest changes, also from before the start of the agent')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .allowExcessArguments()
    .action((options: Connection & { readonly output: Output }, self: Command) => {
      refuseWords(self);
      return connected(options, async (client) => {
        const gpus = await list(client);
        await print(options.output, {
          document: () => gpus.map(asDocument),
          table: () => asText(gpus, Date.now()),
        });
      });
    });
  command
    .command('clear')
    .description('clear the health history of a GPU; the kubelet is offered the GPU again at once')
    .argument('<gpu>', 'index or UUID')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((name: string, options: Connection & { readonly output: Output }) =>
      connected(options, async (client) => {
        const { uuid } = choose(await list(client), name);
        await callUnary(client, 'Clear', { uuid }, TIMEOUT_MS);
        const cleared = (await list(client)).filter((gpu) => gpu.uuid === uuid);
        await print(options.output, {
          document: () => cleared.map(asDocument),
          table: () => asText(cleared, Date.now()),
        });
      }),
    );
  return command;
}

async function connected(options: Connection, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new (healthProto().vgpu.Health)(`unix:${options.displaySocket}`, credentials.createInsecure());
  await withAgent(options.displaySocket, client, work);
}

async function list(client: Client): Promise<readonly GpuHealth__Output[]> {
  return (await callUnary(client, 'List', {}, TIMEOUT_MS)).gpus;
}

function choose(gpus: readonly GpuHealth__Output[], name: string): GpuHealth__Output {
  const found = gpus.find(({ uuid, index }) => uuid === name || String(index) === name);
  if (found === undefined)
    throw new StartupError(
      `no GPU ${name} on this node; it has ${gpus.map(({ index }) => index).join(', ') || 'none'}`,
    );
  return found;
}

/** One table of the GPUs, one of their health changes. */
function asText(gpus: readonly GpuHealth__Output[], nowMs: number): string {
  const states = gpus.map(({ index, uuid, status, reason, since_ms, until_ms }) => [
    String(index),
    uuid,
    status,
    age(nowMs - Number(since_ms)),
    Number(until_ms) === 0 ? '-' : `in ${age(Number(until_ms) - nowMs)}`,
    reason === '' ? '-' : reason,
  ]);
  const changes = gpus
    .flatMap(({ index, changes: ofGpu }) => ofGpu.map((change) => ({ index, ...change })))
    .sort((a, b) => Number(a.at_ms) - Number(b.at_ms))
    .map(({ index, at_ms, status, reason }) => [new Date(Number(at_ms)).toISOString(), String(index), status, reason]);
  const shown = table(['GPU', 'UUID', 'STATUS', 'FOR', 'ENDS', 'REASON'], states);
  return changes.length === 0 ? shown : `${shown}\n${table(['TIME', 'GPU', 'STATUS', 'REASON'], changes)}`;
}

function asDocument(gpu: GpuHealth__Output) {
  return {
    index: gpu.index,
    uuid: gpu.uuid,
    status: gpu.status,
    reason: gpu.reason === '' ? null : gpu.reason,
    sinceMs: Number(gpu.since_ms),
    untilMs: Number(gpu.until_ms) === 0 ? null : Number(gpu.until_ms),
    changes: gpu.changes.map(({ at_ms, status, reason }) => ({
      atMs: Number(at_ms),
      status,
      reason: reason === '' ? null : reason,
    })),
  };
}
