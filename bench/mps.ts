import { join } from 'node:path';
import { MpsControl, namespaceOf, serverOf } from '../src/agent/slices/mps/mps-control.js';
import { MpsDaemon } from '../src/agent/slices/mps/mps-daemon.js';
import { systemClock } from '../src/host/clock.js';
import { silentLog } from '../src/host/log.js';
import { measured, type BenchOptions } from './report.js';
import { SteeringAgent } from './sim/agent.js';
import { BUILD_DIRECTORY, SimulatedMachine } from './sim/machine.js';

const CONTAINERS = 4;
const CORES = 100 / CONTAINERS;
const SECONDS = 4;
const QUICK_SECONDS = 1;
/** The simulated GPU has 80 multiprocessors. */
const KERNELS = [
  { pattern: 'steps:100:16', name: 'kernels of 100 us on 16 of 80 multiprocessors' },
  { pattern: 'steps:100:40', name: 'kernels of 100 us on 40 of 80 multiprocessors' },
  { pattern: 'steps:400:80', name: 'kernels of 400 us on all multiprocessors' },
] as const;

/**
 * Shares of multiprocessors beside shares of time: four containers of 25 cores on one simulated GPU, all at once or one
 * of them while the others are idle. The baseline is the same with shares of time, kept by the control library, hard.
 *
 *     npm run bench -- mps [--quick]
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const seconds = args.includes('--quick') ? QUICK_SECONDS : SECONDS;
  const machine = await SimulatedMachine.open(1, { driverVersion: '615.10.01' });
  const agent = await SteeringAgent.start(machine);
  const control = new MpsControl(join(BUILD_DIRECTORY, 'nvidia-cuda-mps-control'), join(machine.directory, 'mps'));
  const daemon = new MpsDaemon(control, systemClock, silentLog());
  const gpu = machine.uuidOf(0);
  const server = serverOf(gpu);

  /** Kernels per second of all containers together. */
  async function rate(directories: readonly string[], pattern: string, folders: readonly string[]): Promise<number> {
    const counts = await Promise.all(
      directories.map((slice, at) =>
        machine.finish({
          name: 'tenant',
          args: [String(seconds), pattern],
          gpu: 0,
          slice,
          ...(folders[at] === undefined ? {} : { mpsFolder: folders[at] }),
        }),
      ),
    );
    return counts.reduce((sum, text) => sum + Number(text.trim()), 0) / seconds;
  }

  try {
    const slices = (share: number): Promise<string[]> =>
      Promise.all(Array.from({ length: CONTAINERS }, () => agent.slice({ gpu: 0, share, softLimit: null })));
    const inTime = await slices(CORES);
    await daemon.ensure();
    await control.createServer(server, gpu);
    const folders: string[] = [];
    for (let at = 0; at < CONTAINERS; at++) {
      const name = namespaceOf(String(at));
      await control.createNamespace(server, name);
      await control.setLimits(server, name, { percentage: CORES, priority: 0 });
      folders.push(control.folderOf(server, name));
    }
    const rates = new Map<string, readonly [time: number, alone: number]>();
    for (const { pattern } of KERNELS)
      rates.set(pattern, [await rate(inTime, pattern, []), await rate(inTime.slice(0, 1), pattern, [])]);
    for (const slice of inTime) await agent.remove(slice);
    const inSms = await slices(100);
    for (const { pattern, name } of KERNELS) {
      const [together, alone] = rates.get(pattern) ?? [NaN, NaN];
      report(measured(`four containers, ${name}`, await rate(inSms, pattern, folders), 'kernels/s', together));
      report(measured(`one container, ${name}`, await rate(inSms.slice(0, 1), pattern, folders), 'kernels/s', alone));
    }
    note(`each container has ${CORES} cores: a share of multiprocessors, and in the baseline a hard share of time`);
  } finally {
    await daemon.quit().catch(() => undefined);
    await agent.stop();
    await machine.close();
  }
}
