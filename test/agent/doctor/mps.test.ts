import { test } from 'tap';
import { examineMps } from '../../../src/agent/doctor/mps.js';
import type { SmGpus } from '../../../src/agent/gpus/index.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { simulatedConfig } from '../../../src/simulation/simulated-node.js';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { scratchDirectory } from '../../scratch.js';

test('the doctor says which GPUs are shared in multiprocessors, and why others are not', async (t) => {
  const directory = await scratchDirectory(t);
  const examine = async (driverVersion: string, smGpus: SmGpus, mpsControlPath = process.execPath) => {
    await writeFile(join(directory, 'gpus'), JSON.stringify({ driverVersion, gpus: [{}, {}] }));
    const config = simulatedConfig(directory, { smGpus, mpsControlPath });
    const found = await examineMps({ config, clock: systemClock, log: silentLog() });
    return found.map(({ state, what }) => `${state}: ${what}`);
  };
  t.same(await examine('615.10.01', 'none', '/nowhere'), []);
  t.match(await examine('615.10.01', 'every'), [/^ok: .* is there$/, /^ok: .* multiprocessors of GPU 0, 1$/]);
  t.match(await examine('610.43.02', 'every'), [
    /^ok/,
    /^warning: --sm-gpus: driver 610.43.02 .* expected 615 or later/,
  ]);
  t.match(await examine('615.10.01', new Set(['GPU-absent']), '/nowhere'), [
    /^failed: --mps-control: \/nowhere: /,
    /^warning: --sm-gpus: this node has no GPU GPU-absent/,
  ]);
});
