import { test } from 'tap';
import { ContainerProcesses } from '../../../../src/agent/slices/suspend/container-processes.js';
import { systemClock } from '../../../../src/host/clock.js';
import { namespacePids, processStat } from '../../../../src/host/process-stat.js';

const startTicks = processStat(process.pid)?.startTicks ?? 0;
const inner = namespacePids(process.pid).at(-1) ?? 0;

/** A slice without greetings whose usage file names one process, and which the driver lists for this process. */
function seen(slot: object, hasKeptLimits = true) {
  const slice = {
    id: 'a',
    hasKeptLimits,
    sessions: new Set(),
    spec: { devices: [{ uuid: 'GPU-1' }] },
    usage: { ok: true, reader: { processes: () => [slot] } },
  };
  const processes = new ContainerProcesses({
    owners: { learn: async () => undefined, ownerOf: () => ({ allocation: 'a', greeted: false }) } as never,
    source: { processes: async () => [{ pid: process.pid, usedMemoryBytes: 7 }] } as never,
    driverVersion: () => '580',
    clock: systemClock,
  });
  return processes.of(slice as never);
}

test('after a restart of the agent a process that makes no call is known by its pid in the container', async (t) => {
  const slot = { slot: 3, pid: inner, startTicks: startTicks % 2 ** 40, obstacles: [] };
  const known = { pid: process.pid, startTicks, bytes: 7 };
  t.same(await seen(slot), [{ ...known, obstacles: [] }]);
  t.same(await seen({ ...slot, startTicks: 1 }), [{ ...known, obstacles: null }], 'another process had the pid');
  t.same(await seen(slot, false), [{ ...known, obstacles: null }], 'it does not see what the agent publishes');
});
