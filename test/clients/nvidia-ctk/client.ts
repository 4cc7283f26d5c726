import { join } from 'node:path';
import type { Client } from '../client.js';
import { printedLines } from '../printed.js';

/** The version of the simulated driver. */
const DRIVER_VERSION = '580.95.05';

export const client: Client = {
  title: 'nvidia-ctk',
  version: '1.20.1',
  way: 'go-nvml',
  programs: (workshop) => {
    const ctk = join(
      workshop.go('nvidia-ctk', ['github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk']),
      'nvidia-ctk',
    );
    return [
      {
        name: 'nvidia-ctk cdi generate',
        command: [workshop.source('nvidia-ctk', 'generate.sh'), ctk, DRIVER_VERSION],
        describe: printedLines,
      },
    ];
  },
};
