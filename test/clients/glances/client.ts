import type { Client } from '../client.js';
import type { Output } from '../machine.js';
import { refuseTraceback } from '../printed.js';

export const client: Client = {
  title: 'Glances',
  version: '4.5.8',
  way: 'nvidia-ml-py',
  quick: true,
  programs: (workshop) => [
    {
      name: 'glances --stdout gpu',
      command: [workshop.python('glances').program('glances'), '--stdout', 'gpu', '--stop-after', '2'],
      describe,
    },
  ],
};

/** The GPUs that Glances lists, each as a dictionary of Python. */
function describe(output: Output): string {
  refuseTraceback(output);
  const [first = ''] = output.stdout.split('\n').filter((line) => line.startsWith('gpu: '));
  const gpus = [...first.matchAll(/'gpu_id': '([^']*)', 'name': '([^']*)'/g)];
  return [`is GPUs: ${gpus.length}`, ...gpus.map(([, id = '', name = '']) => `is ${id}: ${name}`)].join('\n');
}
