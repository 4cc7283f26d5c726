import type { Client } from '../client.js';

export const client: Client = {
  title: 'Taichi',
  version: '1.7.4',
  way: 'dlopen of libcuda, by its exported names',
  programs: (workshop) => {
    const { interpreter } = workshop.python('taichi');
    return [{ name: 'arrays, a kernel', command: [interpreter, workshop.source('taichi', 'memory.py')] }];
  },
};
