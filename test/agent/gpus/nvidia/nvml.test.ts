import { test } from 'tap';
import { CallGate } from '../../../../src/agent/gpus/nvidia/call-gate.js';
import type { Library } from '../../../../src/agent/gpus/nvidia/library.js';
import { power, utilization } from '../../../../src/agent/gpus/nvidia/load.js';
import { Nvml } from '../../../../src/agent/gpus/nvidia/nvml.js';
import { NVML } from '../../../../src/agent/gpus/nvidia/nvml-code.js';
import { systemClock } from '../../../../src/host/clock.js';

test('each of several calls is answered by itself', async (t) => {
  const library = {
    has: () => true,
    call: async (name: string) => (name === 'nvmlDeviceGetPowerUsage' ? NVML.GPU_IS_LOST : NVML.SUCCESS),
  } as unknown as Library;
  const gate = new CallGate({ clock: systemClock, timeoutMs: 5_000, limit: 2 });
  const nvml = new Nvml(library, gate, () => undefined);
  const [used, watts] = nvml.askAll<[number, number]>('GPU 0', [utilization(1n), power(1n)]);
  t.equal(await used, 0);
  await t.rejects(watts, { code: 'gpu-lost' });
});
