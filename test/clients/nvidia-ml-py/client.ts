import type { Client } from '../client.js';

export const client: Client = {
  title: 'nvidia-ml-py',
  version: '13.615.71',
  way: 'dlopen of NVML',
  quick: true,
  programs: (workshop) => {
    const { interpreter } = workshop.python('nvidia-ml-py');
    return [{ name: 'every call', command: [interpreter, workshop.source('nvidia-ml-py', 'every_call.py')] }];
  },
};
