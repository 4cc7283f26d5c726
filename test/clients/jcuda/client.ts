import type { Client } from '../client.js';

export const client: Client = {
  title: 'JCuda',
  version: '12.6.0',
  way: 'linked with libcuda.so.1, by JNI',
  programs: (workshop) => {
    const classPath = workshop.maven('jcuda');
    return [
      {
        name: 'memory, a share, copies',
        command: [
          workshop.tool('java', 'default-jdk-headless'),
          '-cp',
          classPath,
          workshop.source('jcuda', 'Memory.java'),
        ],
      },
    ];
  },
};
