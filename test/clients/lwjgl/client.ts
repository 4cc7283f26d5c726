import type { Client } from '../client.js';

export const client: Client = {
  title: 'LWJGL',
  version: '3.3.6',
  way: 'dlopen of libcuda.so, dlsym',
  programs: (workshop) => [
    {
      name: 'memory, a share, copies',
      command: [
        workshop.tool('java', 'default-jdk-headless'),
        '-cp',
        workshop.maven('lwjgl'),
        workshop.source('lwjgl', 'Memory.java'),
      ],
    },
  ],
};
