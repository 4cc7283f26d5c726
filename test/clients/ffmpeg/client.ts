import type { Client } from '../client.js';
import type { Output } from '../machine.js';

export const client: Client = {
  title: 'FFmpeg',
  version: '5.1',
  way: 'dlopen of libcuda, closed and opened again',
  limits: 'NVDEC and NVENC are libraries of their own, which the simulated driver does not have',
  programs: (workshop) => {
    const ffmpeg = workshop.tool('ffmpeg', 'ffmpeg');
    const device = ['-hide_banner', '-v', 'verbose', '-init_hw_device', 'cuda=gpu:0'];
    return [
      { name: 'devices made again and again', command: ['python3', workshop.source('ffmpeg', 'devices.py')] },
      {
        name: '-init_hw_device cuda',
        command: [ffmpeg, ...device, '-f', 'lavfi', '-i', 'nullsrc=s=64x64:d=0.1', '-f', 'null', '-'],
        describe,
      },
    ];
  },
};

function describe({ stderr }: Output): string {
  const complaint = stderr.split('\n').find((line) => /cannot load|not dynamically load|failed/i.test(line));
  if (complaint !== undefined) throw new Error(complaint.replace(/ @ 0x[0-9a-f]+/, ''));
  return `is a device made: ${stderr.includes('AVHWDeviceContext') || !stderr.includes('rror')}`;
}
