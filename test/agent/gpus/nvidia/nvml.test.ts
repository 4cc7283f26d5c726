import { test } from 'tap';
import { CallGate } from '../../../../src/agent/gpus/nvidia/call-gate.js';
import type { FunctionCall, Library } from '../../../../src/agent/gpus/nvidia/library.js';
import { power, temperature, utilization } from '../../../../src/agent/gpus/nvidia/load.js';
import { Nvml } from '../../../../src/agent/gpus/nvidia/nvml.js';
import { NVML } from '../../../../src/agent/gpus/nvidia/nvml-code.js';
import { systemClock } from '../../../../src/host/clock.js';

/** A library that knows every function, and answers each list with these codes. */
function nvmlOf(codes: Readonly<Record<string, number>> = {}) {
  const lists: string[][] = [];
  const library = {
    has: () => true,
    async callAll(calls: readonly FunctionCall[]) {
      lists.push(calls.map(({ name }) => name.replace('nvmlDeviceGet', '')));
      return calls.map(({ name }) => codes[name] ?? NVML.SUCCESS);
    },
  } as unknown as Library;
  const gate = new CallGate({ clock: systemClock, timeoutMs: 5_000, limit: 2 });
  return { nvml: new Nvml(library, gate, () => undefined), lists };
}

test('questions about a GPU that are asked at the same time are one list of calls', async (t) => {
  const { nvml, lists } = nvmlOf({ nvmlDeviceGetPowerUsage: 15 });
  const late = Promise.resolve().then(() => nvml.askAll<[number]>('GPU 0', [temperature(1n)]));
  const [[used, watts], [other], [heat]] = await Promise.all([
    nvml.askAll<[number, number]>('GPU 0', [utilization(1n), power(1n)]),
    nvml.askAll<[number]>('GPU 1', [utilization(2n)]),
    late,
  ]);
  t.same(lists, [['UtilizationRates', 'PowerUsage', 'Temperature'], ['UtilizationRates']]);
  t.same(await Promise.all([used, other, heat]), [0, 0, 0]);
  await t.rejects(watts, { code: 'gpu-lost' }, 'each answer settles by itself');
  const [later] = await nvml.askAll<[number]>('GPU 0', [temperature(1n)]);
  t.equal(await later, 0);
  t.equal(lists.length, 3, 'a later question is a list of its own');
});
