import { join } from 'node:path';
import type { Client } from '../client.js';

export const client: Client = {
  title: 'nvml-wrapper',
  version: '0.13.0',
  way: 'dlopen of NVML',
  quick: true,
  programs: (workshop) => [
    { name: 'opened and closed three times', command: [join(workshop.cargo('nvml-wrapper'), 'nvml-wrapper-client')] },
  ],
};
