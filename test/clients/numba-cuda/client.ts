import type { Client } from '../client.js';
import { unittestReport } from '../suites.js';

export const client: Client = {
  title: 'numba-cuda',
  version: '0.30.4',
  way: 'dlopen, cuGetProcAddress',
  limits:
    'tests that look at what a kernel computed fail alone and sliced alike: the simulated driver computes nothing',
  programs: (workshop) => {
    const python = workshop.python('numba-cuda');
    return [
      {
        name: 'memory, a share, streams',
        command: [python.interpreter, workshop.source('numba-cuda', 'memory.py')],
      },
      {
        name: 'its own driver tests',
        command: [python.interpreter, '-m', 'numba.runtests', '-v', 'numba.cuda.tests.cudadrv'],
        mayFail: true,
        timeoutMs: 580_000,
        // One test allocates a part of the GPU's memory on the host, so it depends on how much memory each has.
        describe: ({ stdout, stderr }) => unittestReport(`${stdout}\n${stderr}`, /_undersubscribe/),
      },
    ];
  },
};
