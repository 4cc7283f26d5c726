import type { Client } from '../client.js';

export const client: Client = {
  title: 'Halide',
  version: '21.0.0',
  way: 'dlopen of libcuda.so.1, dlsym',
  limits: 'kernels do not compute anything on the simulated driver',
  programs: (workshop) => [
    {
      name: 'memory, a share',
      command: [workshop.python('halide').interpreter, workshop.source('halide', 'realize.py')],
    },
  ],
};
