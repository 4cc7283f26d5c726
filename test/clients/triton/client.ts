import type { Client } from '../client.js';

export const client: Client = {
  title: 'Triton',
  version: '3.9.0',
  way: 'a module compiled at run time with -lcuda',
  limits: 'its kernels need PyTorch, and with it the CUDA runtime',
  programs: (workshop) => {
    const { interpreter } = workshop.python('triton');
    return [
      {
        name: 'its driver module, compiled anew',
        command: [
          'sh',
          '-c',
          `d=$(mktemp -d); TRITON_CACHE_DIR=$d "$@"; c=$?; rm -rf "$d"; exit $c`,
          'sh',
          interpreter,
          workshop.source('triton', 'utils.py'),
        ],
      },
    ];
  },
};
