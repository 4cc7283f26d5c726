/**
 * A program with as many NRI plugins as requested, each of which connects to the socket again and again, as the agent
 * does, but without pauses. `usage` on its standard input answers with a line of figures.
 *
 *     nri-program.js SOCKET PLUGINS [patient]
 */
import { KnownContainers } from '../../src/agent/nri/known-containers.js';
import { NriPlugin } from '../../src/agent/nri/nri-plugin.js';
import type { GivenSlice } from '../../src/agent/nri/ports.js';
import { systemClock, type Clock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { obeyOrders } from './orders.js';

const [socketPath = '', plugins = '1', patient] = process.argv.slice(2);
let failures = 0;
const log = Object.assign(silentLog(), { error: () => void (failures += 1) });
/** Pauses between two connections are a thousandth of the agent's; a patient plugin waits as the agent does. */
const clock: Clock =
  patient === 'patient'
    ? systemClock
    : { ...systemClock, after: (delayMs, action) => systemClock.after(delayMs / 1_000, action) };

const GIVEN: GivenSlice = {
  slice: '0123456789abcdef',
  environment: { LD_LIBRARY_PATH: '/usr/local/nvidia/lib64' },
  mounts: [{ hostPath: '/vm/0123456789abcdef', containerPath: '/etc/vcuda', writable: false }],
  numaNodes: [0],
};
const slices = {
  givenTo: (podUid: string) => (podUid === 'known' ? GIVEN : null),
  isSameSource: (meant: string, mounted: string) => meant === mounted,
};
for (let index = 0; index < Number(plugins); index += 1) {
  await new NriPlugin({
    socketPath,
    slices,
    containers: new KnownContainers(slices),
    events: {
      corrected: () => undefined,
      stopped: () => undefined,
      removed: () => undefined,
      synchronized: () => undefined,
    },
    affinity: async () => ({ kind: 'none', reason: 'off' }),
    clock,
    log,
  }).start();
}
await obeyOrders(() => failures);
