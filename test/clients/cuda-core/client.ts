import type { Client } from '../client.js';

export const client: Client = {
  title: 'cuda.core',
  version: '1.2.2',
  way: 'dlopen, cuGetProcAddress',
  quick: true,
  programs: (workshop) => {
    const { interpreter } = workshop.python('cuda-core');
    return [
      {
        name: 'memory resources, kernels, graphs, a share',
        command: [interpreter, workshop.source('cuda-core', 'memory.py')],
      },
      {
        name: 'checkpoint and restore of another process',
        command: [interpreter, workshop.source('cuda-core', 'checkpoint.py')],
      },
    ];
  },
};
