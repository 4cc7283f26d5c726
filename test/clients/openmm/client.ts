import type { Client } from '../client.js';

export const client: Client = {
  title: 'OpenMM',
  version: '8.6.1',
  way: 'linked with libcuda.so.1 and NVRTC',
  programs: (workshop) => {
    const python = workshop.python('openmm');
    return [{ name: 'CUDA platform, 500 steps', command: [python.interpreter, workshop.source('openmm', 'box.py')] }];
  },
};
