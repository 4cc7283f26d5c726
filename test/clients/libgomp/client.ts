import type { Client } from '../client.js';

export const client: Client = {
  title: 'libgomp (OpenMP offloading of GCC)',
  version: '12.2.0',
  way: 'dlopen of libcuda, by its exported names',
  quick: true,
  limits: 'the simulated driver computes nothing, so the kernels leave their data as it is',
  programs: (workshop) => {
    workshop.debianVersion('gcc-12-offload-nvptx');
    return [
      {
        name: 'memory and target regions, also in a worker thread',
        command: [workshop.gcc('libgomp', 'offload.c', ['-fopenmp', '-foffload=nvptx-none', '-pthread'])],
        environment: { OMP_TARGET_OFFLOAD: 'mandatory' },
      },
    ];
  },
};
