import type { Client } from '../client.js';

export const client: Client = {
  title: 'Dr.Jit',
  version: '1.5.0',
  way: 'dlopen of libcuda.so, dlsym',
  quick: true,
  limits: 'the simulated driver computes nothing',
  programs: (workshop) => [
    {
      name: 'memory, a share, also in a worker thread',
      command: [workshop.python('drjit').interpreter, workshop.source('drjit', 'memory.py')],
      computeCapability: '9.0',
    },
  ],
};
