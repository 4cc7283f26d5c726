import type { Client } from '../client.js';
import type { Output } from '../machine.js';

export const client: Client = {
  title: 'hashcat',
  version: '6.2.6',
  way: 'dlopen of libcuda, NVML and NVRTC',
  limits: 'its self test fails on the simulated driver, which computes nothing',
  programs: (workshop) => {
    const hashcat = workshop.tool('hashcat', 'hashcat');
    const nvrtc = workshop.python('hashcat').packageFolder('nvidia/cuda_nvrtc/lib');
    return [
      {
        name: 'hashcat -I',
        command: [workshop.source('hashcat', 'with_nvrtc.sh'), nvrtc, hashcat, '-I'],
        libraries: [nvrtc],
        describe,
      },
    ];
  },
};

/** The part of its list that is about CUDA. */
function describe({ stdout }: Output): string {
  const cuda = /^CUDA Info:\n=+\n([\s\S]*?)(?:\n\S+ Info:|$(?![\s\S]))/m.exec(stdout)?.[1];
  if (cuda === undefined) throw new Error('lists no CUDA device');
  return [...cuda.matchAll(/^\s*(\S+?)\.*: (.*)$/gm)]
    .map(([, what = '', value = '']) => {
      const mib = /^(\d+) MB/.exec(value)?.[1];
      if (mib === undefined) return `is ${what}: ${value}`;
      return what === 'Memory.Total' ? `total ${what}: ${mib}` : '';
    })
    .join('\n');
}
