import { execFileSync } from 'node:child_process';
import { test } from 'tap';
import { parseMatrix } from '../../../../src/gpu/topology/matrix-text.js';
import { kernelDriver } from '../../../../src/agent/gpus/nvidia/kernel-driver.js';
import { NvidiaDriver } from '../../../../src/agent/gpus/nvidia/nvidia-driver.js';
import { driverContract } from '../contract.js';

/** The test only reads; it loads no kernel modules. */
const open = () => new NvidiaDriver({ kernel: { ...kernelDriver(), ensureLoaded: async () => null } });

/** Reason why no real GPU can be tested here; false where one can. */
async function missingGpu(): Promise<string | false> {
  const driver = open();
  try {
    return (await driver.inventory()).gpus.length > 0 ? false : 'NVML knows no GPU';
  } catch (error) {
    return (error as Error).message.replace(/ \(.*/u, '');
  } finally {
    await driver.close();
  }
}

const skip = await missingGpu();

if (skip === false) driverContract('nvidia, a real GPU', async () => open());

test('a real GPU is described as nvidia-smi describes it', { skip }, async (t) => {
  const fields = 'index,uuid,name,pci.bus_id,memory.total,compute_cap';
  const lines = execFileSync('nvidia-smi', [`--query-gpu=${fields}`, '--format=csv,noheader,nounits'])
    .toString()
    .trim()
    .split('\n');
  const driver = open();
  const { gpus, excluded } = await driver.inventory();
  await driver.close();
  const cards = [...gpus, ...excluded.map(({ gpu }) => gpu)].sort((a, b) => a.index - b.index);
  t.same(
    cards.map((gpu) => [
      String(gpu.index),
      gpu.uuid,
      gpu.model,
      gpu.pciBusId,
      String(Math.round(gpu.memoryBytes / 1024 ** 2)),
      gpu.computeCapability,
    ]),
    lines.map((line) => line.split(', ')),
  );
});

test('the topology from NVML is the one that nvidia-smi prints', { skip }, async (t) => {
  const printed = parseMatrix(execFileSync('nvidia-smi', ['topo', '-m']).toString());
  const driver = open();
  const { gpus, topology } = await driver.inventory();
  await driver.close();
  t.ok(printed.ok);
  if (!printed.ok || printed.gpus.length !== gpus.length) return;
  t.same(topology.nvlinks, printed.topology.nvlinks);
});
