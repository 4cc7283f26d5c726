import type { Client } from '../client.js';

export const client: Client = {
  title: 'tinygrad',
  version: '0.14.0',
  way: 'dlopen of libcuda and NVRTC',
  programs: (workshop) => {
    const python = workshop.python('tinygrad');
    return [
      {
        name: 'tensors, NVRTC, graphs',
        command: [python.interpreter, workshop.source('tinygrad', 'memory.py')],
        environment: { CACHELEVEL: '0' },
        libraries: [python.packageFolder('nvidia/cuda_nvrtc/lib')],
      },
    ];
  },
};
