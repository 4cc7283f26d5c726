import { Command } from 'commander';
import type { AllocationSnapshot, NodeSnapshot } from '../agent/display/view.js';
import { DISPLAY_SOCKET_OPTION, outputOption, withNode, type Output } from './display-client.js';
import { mib, table } from './terminal-text.js';

/** `gpu-manager usage`: what the containers of this node asked for and use. */
export function usageCommand(): Command {
  return new Command('usage')
    .description('print the requests and the use of the containers of this node')
    .addOption(outputOption())
    .option(...DISPLAY_SOCKET_OPTION)
    .action((options: { readonly displaySocket: string; readonly output: Output }) =>
      withNode(options.displaySocket, async (node) => {
        process.stdout.write(
          options.output === 'json'
            ? `${JSON.stringify(await node.usages(), null, 2)}\n`
            : usageTable(await node.snapshot()),
        );
      }),
    );
}

const HEADINGS = ['CONTAINER', 'GPU', 'CORES', 'OF', 'MEMORY', 'OF', 'THROTTLED', 'PIDS'];

/** One row for each container on each of its GPUs. */
export function usageTable({ allocations }: NodeSnapshot): string {
  const rows = allocations.flatMap((allocation) =>
    allocation.slices.map((slice) => [
      containerName(allocation),
      String(slice.gpuIndex),
      `${slice.usedPercent.toFixed(0)} %`,
      `${slice.share} %`,
      `${mib(slice.usedMemoryBytes)}${slice.hostBackedBytes === 0 ? '' : ` + ${mib(slice.hostBackedBytes)} on the host`}`,
      mib(slice.memoryLimitBytes ?? slice.gpuMemoryBytes),
      slice.counters === null ? '-' : `${slice.counters.throttledSeconds.toFixed(1)} s`,
      slice.pids.join(',') || '-',
    ]),
  );
  return table(HEADINGS, rows);
}

/** `namespace/pod/container` of the current container, or a substitute; marked where its limits are not enforced. */
export function containerName({ id, owners, unenforced }: AllocationSnapshot): string {
  const owner = owners.at(-1);
  const name =
    owner === undefined || owner.pod === '' ? `allocation ${id}` : `${owner.namespace}/${owner.pod}/${owner.container}`;
  return unenforced ? `${name} (unenforced)` : name;
}
