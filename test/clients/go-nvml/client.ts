import { join } from 'node:path';
import type { Client } from '../client.js';
import { printedLines } from '../printed.js';

const EXAMPLES = 'github.com/NVIDIA/go-nvml/examples';

export const client: Client = {
  title: 'go-nvml',
  version: '0.13.2-0',
  way: 'dlopen of NVML, and by its unversioned names',
  quick: true,
  programs: (workshop) => {
    const folder = workshop.go('go-nvml', ['.', `${EXAMPLES}/devices`, `${EXAMPLES}/compute-processes`]);
    return [
      { name: 'opened and closed three times', command: [join(folder, 'go-nvml')] },
      { name: 'its example devices', command: [join(folder, 'devices')], describe: printedLines },
      { name: 'its example compute-processes', command: [join(folder, 'compute-processes')], describe: printedLines },
    ];
  },
};
