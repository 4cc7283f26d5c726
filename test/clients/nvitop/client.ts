import type { Client } from '../client.js';
import type { Output } from '../machine.js';
import { refuseTraceback } from '../printed.js';

export const client: Client = {
  title: 'nvitop',
  version: '1.7.2',
  way: 'nvidia-ml-py',
  quick: true,
  programs: (workshop) => [
    {
      name: 'nvitop -1',
      command: [workshop.python('nvitop').program('nvitop'), '-1', '--ascii'],
      environment: { COLUMNS: '80', TERM: 'dumb' },
      describe,
    },
  ],
};

/** The table of nvitop: the GPUs and the memory of each. */
function describe(output: Output): string {
  refuseTraceback(output);
  const gpus = [...output.stdout.matchAll(/^\|\s+(\d+)\s+(\S.*?)\s{2,}/gm)].map(
    ([, index, name]) => `is GPU ${index}: ${name}`,
  );
  const totals = [...output.stdout.matchAll(/\/ (\d+)MiB/g)].map(([, mib], index) => `total GPU ${index}: ${mib}`);
  return [...gpus, ...totals].join('\n');
}
