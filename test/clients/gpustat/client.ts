import type { Client } from '../client.js';
import type { Output } from '../machine.js';
import { refuseTraceback } from '../printed.js';

export const client: Client = {
  title: 'gpustat',
  version: '1.1.1',
  way: 'nvidia-ml-py',
  quick: true,
  programs: (workshop) => [
    { name: 'gpustat --json', command: [workshop.python('gpustat').program('gpustat'), '--json'], describe },
  ],
};

function describe(output: Output): string {
  refuseTraceback(output);
  const { gpus } = JSON.parse(output.stdout) as { readonly gpus: Record<string, unknown>[] };
  return gpus
    .flatMap((gpu, index) =>
      Object.entries(gpu)
        .filter(([key]) => !/temperature|utilization|memory|power.draw|processes/.test(key))
        .map(([key, value]) => `is GPU ${index} ${key}: ${String(value)}`)
        .concat(`total GPU ${index}: ${String(gpu['memory.total'])}`),
    )
    .join('\n');
}
