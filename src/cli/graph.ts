import { Command } from 'commander';
import type { GpuSnapshot, NodeSnapshot, TreeSnapshot } from '../agent/node/view.js';
import { CORES_PER_GPU } from '../gpu/resources.js';
import { LEVEL_MEANING } from '../gpu/topology/level.js';
import { displaySocketOption, withNode } from './display-client.js';
import { outputOption, print, type Output } from './output.js';
import { mib, printable, table } from './terminal-text.js';

const TKESTACK = 'tkestack';

interface Options {
  readonly displaySocket: string;
  readonly extended?: true;
  readonly output: Output | typeof TKESTACK;
}

/** `gpu-manager graph`: the topology of the node's GPUs and their free capacity. */
export function graphCommand(): Command {
  return new Command('graph')
    .description("print the topology of this node's GPUs, and their free capacity")
    .option('--extended', 'with -o tkestack: include NVLinks, models, and whether each GPU may be chosen')
    .addOption(outputOption({ format: TKESTACK, meaning: 'the text of tkestack gpu-manager' }))
    .addOption(displaySocketOption())
    .action((options: Options) =>
      withNode(options.displaySocket, async (node) => {
        const original = await node.graph(options.extended === true || options.output === 'wide');
        if (options.output === TKESTACK) {
          process.stdout.write(original);
          return;
        }
        const snapshot = await node.snapshot();
        const { gpus, tree, nvlinks } = snapshot;
        await print(options.output, {
          document: () => ({ graph: original, gpus, tree, nvlinks }),
          table: () => graphText(snapshot),
          wide: () => graphText(snapshot, true),
        });
      }),
    );
}

/** A table of the GPUs, then how they are connected; `wide` adds UUIDs and bus ids. */
function graphText({ gpus, tree, nvlinks }: NodeSnapshot, wide = false): string {
  if (gpus.length === 0) return 'no GPUs\n';
  const headings = ['GPU', 'MODEL', 'FREE CORES', 'FREE MEMORY', 'NUMA', 'HEALTH'];
  const rows = gpus.map((gpu) => [
    String(gpu.index),
    printable(gpu.model),
    `${CORES_PER_GPU - gpu.allocatedCores} of ${CORES_PER_GPU}`,
    `${mib(gpu.memoryBytes - gpu.allocatedMemoryBytes)} of ${mib(gpu.memoryBytes)}`,
    gpu.numaNode === null ? '-' : String(gpu.numaNode),
    healthText(gpu),
    ...(wide ? [gpu.uuid, gpu.pciBusId] : []),
  ]);
  const links = nvlinks.map(([a, b, count]) => `GPU ${gpus[a]?.index} and GPU ${gpus[b]?.index}: ${count} NVLinks\n`);
  return [
    table(wide ? [...headings, 'UUID', 'PCI BUS ID'] : headings, rows),
    ...(gpus.length > 1 ? ['\n', ...tree.map((group) => treeText(group, gpus, 0))] : []),
    ...(links.length > 0 ? ['\n', ...links] : []),
  ].join('');
}

function healthText({ health, usable }: GpuSnapshot): string {
  if (health.status !== 'healthy') return `${health.status}: ${printable(health.reason ?? '')}`;
  return usable ? 'healthy' : 'healthy, not offered';
}

/** Groups of the PCIe tree, each indented below the one that holds it. */
function treeText({ level, positions, children }: TreeSnapshot, gpus: readonly GpuSnapshot[], depth: number): string {
  const indent = '  '.repeat(depth);
  const names = positions.map((position) => gpus[position]?.index).join(', ');
  if (level === 'X') return `${indent}GPU ${names}\n`;
  const below = children.some((child) => child.level !== 'X');
  return [
    `${indent}GPUs ${names}: ${LEVEL_MEANING[level]} (${level})\n`,
    ...(below ? children.map((child) => treeText(child, gpus, depth + 1)) : []),
  ].join('');
}
