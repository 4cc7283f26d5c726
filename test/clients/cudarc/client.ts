import { join } from 'node:path';
import type { Client } from '../client.js';
import { cargoTestReport } from '../suites.js';

const FEATURES = 'std,driver,nvrtc,cuda-12080,fallback-dynamic-loading';

export const client: Client = {
  title: 'cudarc',
  version: '0.19.10',
  way: 'dlopen of libcuda, by its exported names',
  quick: true,
  limits:
    'tests that look at what a kernel computed fail alone and sliced alike: the simulated driver computes nothing',
  programs: (workshop) => [
    { name: 'memory, a share, copies', command: [join(workshop.cargo('cudarc'), 'cudarc-client')] },
    {
      name: 'its own driver tests',
      command: [workshop.crateTests('cudarc', 'cudarc', FEATURES), 'driver', '--test-threads=2'],
      libraries: [workshop.python('cudarc').packageFolder('nvidia/cuda_nvrtc/lib')],
      mayFail: true,
      // These tests compare times, which depend on the load of this machine.
      describe: ({ stdout }) => cargoTestReport(stdout, /_faster|_par_launch|_concurrent_reads/),
    },
  ],
};
