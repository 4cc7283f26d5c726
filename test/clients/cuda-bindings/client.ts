import type { Client } from '../client.js';

const VERSION = '13.5.0';

export const client: Client = {
  title: 'cuda-bindings (cuda.bindings.driver)',
  version: VERSION,
  way: 'dlopen, cuGetProcAddress',
  quick: true,
  programs: (workshop) => {
    const { interpreter } = workshop.python('cuda-bindings');
    const python = (file: string): string[] => [interpreter, workshop.source('cuda-bindings', file)];
    return [
      { name: 'every way to memory, a share', command: python('memory.py') },
      { name: 'worker threads without a context', command: python('worker.py') },
      { name: 'two GPUs with the context of the other one', command: python('two_gpus.py'), gpus: 2 },
      { name: 'three processes', command: python('container.py'), processes: 3 },
      { name: 'memory shared between processes', command: python('sharing.py') },
    ];
  },
};
