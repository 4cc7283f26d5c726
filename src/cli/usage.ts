import { Command } from 'commander';
import type { AllocationSnapshot, NodeSnapshot } from '../agent/node/view.js';
import { displaySocketOption, withNode } from './display-client.js';
import { outputOption, print, type Output } from './output.js';
import { mib, table } from './terminal-text.js';

/** `gpu-manager usage`: requests and use of the containers of this node. */
export function usageCommand(): Command {
  return new Command('usage')
    .description('print the requests and the use of the containers of this node')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((options: { readonly displaySocket: string; readonly output: Output }) =>
      withNode(options.displaySocket, (node) =>
        print(options.output, {
          document: () => node.usages(),
          table: async () => usageTable(await node.snapshot()),
          wide: async () => usageTable(await node.snapshot(), true),
        }),
      ),
    );
}

const HEADINGS = ['CONTAINER', 'GPU', 'CORES', 'OF', 'MEMORY', 'OF', 'THROTTLED', 'PIDS'];

const MORE_HEADINGS = ['GPU UUID', 'POD UID', 'CLAIM', 'ALLOCATION'];

/** One row for each container on each of its GPUs; `wide` adds columns that identify GPU, pod, claim and allocation. */
export function usageTable({ allocations }: NodeSnapshot, wide = false): string {
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
      ...(wide
        ? [slice.gpuUuid, allocation.owners.at(-1)?.podUid || '-', claimNames(allocation) || '-', allocation.id]
        : []),
    ]),
  );
  return table(wide ? [...HEADINGS, ...MORE_HEADINGS] : HEADINGS, rows);
}

/** The claims of an allocation, each once; empty for one of the device plugin. */
function claimNames({ claims = [] }: AllocationSnapshot): string {
  return [...new Set(claims.map(({ namespace, name }) => `${namespace}/${name}`))].join(',');
}

/**
 * `namespace/pod/container` of the current container, or a substitute; marked where its limits are not enforced, where
 * it is suspended, and where it got its GPUs by a claim, with the number of other containers that use them at the same
 * time.
 */
export function containerName({ id, owners, claims = [], unenforced, suspension }: AllocationSnapshot): string {
  const owner = owners.at(-1);
  const name =
    owner === undefined || owner.pod === '' ? `allocation ${id}` : `${owner.namespace}/${owner.pod}/${owner.container}`;
  const byClaim = claims.length === 0 ? [] : [owners.length > 1 ? `claim, +${owners.length - 1}` : 'claim'];
  const marks = [
    ...byClaim,
    ...(unenforced ? ['unenforced'] : []),
    ...(suspension === undefined ? [] : [suspension.step]),
  ];
  return marks.length === 0 ? name : `${name} (${marks.join(', ')})`;
}
