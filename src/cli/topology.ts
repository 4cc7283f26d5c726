import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Command, InvalidArgumentError } from 'commander';
import { fileReason } from '../host/file-reason.js';
import { StartupError } from '../host/startup-error.js';
import { endAnyway } from './end-anyway.js';
import { wholeNumberBetween } from './flag-values.js';
import { outputOption, print, type Output } from './output.js';
import type { GpuSlot } from '../gpu/placement/slot.js';
import { whatIf, type WhatIf } from '../gpu/placement/what-if.js';
import { CORES_PER_GPU } from '../gpu/resources.js';
import { LEVELS, LEVEL_MEANING } from '../gpu/topology/level.js';
import { parseMatrix } from '../gpu/topology/matrix-text.js';
import { pairLabel, printMatrix } from '../gpu/topology/matrix-print.js';
import type { Topology } from '../gpu/topology/topology.js';
import { printTree } from '../gpu/topology/tree-print.js';
import type { GpuDetails } from '../agent/gpus/driver.js';
import { kernelDriver } from '../agent/gpus/nvidia/kernel-driver.js';
import { NvidiaDriver } from '../agent/gpus/nvidia/nvidia-driver.js';
import { defaultGpu, parseSimNode, printSimNode } from '../agent/gpus/sim/node.js';

interface Options {
  readonly free?: readonly number[];
  readonly count?: number;
  readonly output: Output;
  readonly asNode?: true;
  readonly nvmlLibrary?: string;
}

/** The GPUs of a real or described machine. */
interface Machine {
  readonly gpus: readonly GpuDetails[];
  /** False for a bare matrix, which only has names of GPUs. */
  readonly described: boolean;
  readonly topology: Topology;
  readonly notes: readonly string[];
}

/** `gpu-manager topology`: shows how GPUs are connected, and which of them a request would get. */
export function topologyCommand(): Command {
  return new Command('topology')
    .description('show how GPUs are connected and which GPUs a request for whole GPUs would get')
    .argument(
      '[file]',
      'output of "nvidia-smi topo -m", or the description of a simulated node; - reads standard input; default: this machine',
    )
    .option('--free <indexes>', 'free GPUs, for example 0,1,4; default: all', indexList)
    .option('-k, --count <n>', 'number of requested GPUs; default: every number', wholeNumberBetween(1, 4_096))
    .addOption(outputOption())
    .option('--as-node', 'print the description of a simulated node with this topology')
    .option('--nvml-library <path>', 'path of libnvidia-ml.so.1; default: search the usual places')
    .action(async (file: string | undefined, options: Options) => {
      if (options.asNode === true) {
        process.stdout.write(await asNode(file));
        return;
      }
      const machine = file === undefined ? await thisMachine(options.nvmlLibrary) : read(file, await contentOf(file));
      const slots = slotsOf(machine, options.free);
      const counts = options.count === undefined ? upTo(slots.filter((slot) => slot.usable).length) : [options.count];
      const answers = whatIf(machine.topology, slots, counts);
      await print(options.output, {
        document: () => documentOf(machine, slots, answers),
        table: () => asText(machine, slots, answers),
      });
      const wanted = options.count;
      if (wanted !== undefined && answers[0] === null) {
        throw new Error(`${wanted} GPUs are not available: ${slots.filter((slot) => slot.usable).length} are free`);
      }
    });
}

async function contentOf(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw new StartupError(`topology: ${file}: ${fileReason(error)}`);
  }
}

async function asNode(file: string | undefined): Promise<string> {
  if (file === undefined) throw new StartupError('topology: --as-node needs a file');
  const parsed = parseSimNode(await contentOf(file));
  if (!parsed.ok) throw new StartupError(`topology: ${file}: ${parsed.reason}`);
  return printSimNode(parsed.node);
}

function read(file: string, content: string): Machine {
  const json = content.trimStart().startsWith('{');
  const parsed = json ? parseSimNode(content) : parseMatrix(content);
  if (!parsed.ok) throw new StartupError(`topology: ${file}: ${parsed.reason}`);
  if ('node' in parsed) return { gpus: parsed.node.gpus, topology: parsed.node.topology, described: true, notes: [] };
  // Names stay as in the matrix, because --free refers to them.
  const gpus = parsed.gpus.map((gpu) => ({ ...defaultGpu(gpu.index), numaNode: gpu.numaNode }));
  return { gpus, topology: parsed.topology, described: false, notes: [] };
}

async function thisMachine(library: string | undefined): Promise<Machine> {
  // This command changes nothing, so it loads no kernel modules.
  const kernel = { ...kernelDriver(), ensureLoaded: async () => null };
  const driver = new NvidiaDriver({ kernel, libraryPaths: library === undefined ? undefined : [library] });
  try {
    return { ...(await driver.inventory()), described: true };
  } finally {
    endAnyway();
    // A GPU that hangs is already in the notes.
    await driver.close().catch(() => undefined);
  }
}

function slotsOf(machine: Machine, free: readonly number[] | undefined): GpuSlot[] {
  const unknown = free?.find((index) => !machine.gpus.some((gpu) => gpu.index === index));
  if (unknown !== undefined) {
    throw new StartupError(
      `topology: --free: there is no GPU ${unknown}, only ${machine.gpus.map((gpu) => gpu.index).join(', ')}`,
    );
  }
  return machine.gpus.map((gpu) => {
    const usable = free?.includes(gpu.index) ?? true;
    return {
      gpu,
      usable,
      freeCores: usable ? CORES_PER_GPU : 0,
      freeMemoryBytes: usable ? gpu.memoryBytes : 0,
      processCount: 0,
    };
  });
}

function asText(machine: Machine, slots: readonly GpuSlot[], answers: readonly (WhatIf | null)[]): string {
  const { gpus, topology, notes } = machine;
  const used = LEVELS.slice(1).filter((level) => topology.levels.some((row) => row.includes(level)));
  const free = slots.filter((slot) => slot.usable).map((slot) => slot.gpu.index);
  return [
    printMatrix(
      topology,
      gpus.map((gpu) => gpu.index),
    ),
    ...used.map((level) => `${level.padEnd(4)}  ${LEVEL_MEANING[level]}\n`),
    ...(topology.nvlinks.flat().some((links) => links > 0)
      ? ['NV#   # NVLinks; the PCIe level below them is in the tree\n']
      : []),
    `\n${printTree(topology, (position) => leafText(machine, slots[position] as GpuSlot))}\n`,
    ...notes.map((note) => `note: ${note}\n`),
    `free: ${free.join(', ') || 'none'}\n`,
    ...answers.map((answer) => (answer === null ? '' : `${answerText(answer)}\n`)),
  ].join('');
}

function leafText(machine: Machine, { gpu, usable }: GpuSlot): string {
  const model = machine.described ? ` ${gpu.model} ${gpu.pciBusId}` : '';
  return `GPU${gpu.index}${model}${usable ? '' : ' (not free)'}`;
}

function answerText({ count, gpus, score, pairs, approximate }: WhatIf): string {
  const how = approximate ? ' (approximate: more than 16 GPUs are free, not every set was compared)' : '';
  const connected = count < 2 ? '' : `, score ${score}${how}`;
  return `${count} of them: GPU ${gpus.join(', ')}${connected}${pairs.length > 0 && pairs.length <= 6 ? ` (${pairs.join(', ')})` : ''}`;
}

function documentOf(machine: Machine, slots: readonly GpuSlot[], answers: readonly (WhatIf | null)[]): object {
  const { gpus, topology, notes } = machine;
  return {
    gpus: gpus.map(({ index, uuid, model, pciBusId, numaNode }) =>
      machine.described ? { index, numaNode, uuid, model, pciBusId } : { index, numaNode },
    ),
    links: gpus.map((_, a) => gpus.map((_other, b) => pairLabel(topology, a, b))),
    levels: topology.levels,
    nvlinks: topology.nvlinks,
    notes,
    free: slots.filter((slot) => slot.usable).map((slot) => slot.gpu.index),
    chosen: answers.filter((answer) => answer !== null),
  };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

function indexList(value: string): number[] {
  const parts = value.split(',').filter((part) => part !== '');
  if (parts.some((part) => !/^\d{1,4}$/u.test(part))) throw new InvalidArgumentError('expected GPU indexes as 0,1,4');
  return parts.map(Number);
}
