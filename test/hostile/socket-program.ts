/**
 * A program with only the agent's sockets: slices in DIRECTORY, each of whose containers claims every process of this
 * machine that calls. Attacks measure what it uses: `usage` on its standard input answers with a line of figures.
 *
 *     socket-program.js DIRECTORY SLICES [unlimited]
 */
import { join } from 'node:path';
import { systemClock } from '../../src/host/clock.js';
import { LimitPolicy } from '../../src/agent/slices/limits/limit-policy.js';
import { OperatorLimits } from '../../src/agent/slices/limits/operator-limits.js';
import { SliceDirectories } from '../../src/agent/slices/slice-directory.js';
import { SOCKET_LIMITS } from '../../src/agent/slices/compat/slice-socket.js';
import { Slices } from '../../src/agent/slices/slices.js';
import { displayProto } from '../../src/rpc/proto.js';
import { UnixRpcServer } from '../../src/rpc/rpc-server.js';
import { unary } from '../../src/rpc/unary.js';
import { silentLog } from '../../src/host/log.js';
import { NO_LIMIT_ANNOTATIONS, sliceSpec } from '../agent/slices/node-slices.js';
import { obeyOrders } from './orders.js';

const [base = '', slicesText = '1', rate] = process.argv.slice(2);
let failures = 0;
const log = Object.assign(silentLog(), { error: () => void (failures += 1) });
const directories = new SliceDirectories(base);
const callers = new Set<number>();
const slices = new Slices({
  directories,
  knowledge: {
    placeOf: async (pid) => {
      callers.add(pid);
      return { containerId: 'c0'.repeat(32), podUid: null };
    },
    pidsOf: async () => [...callers],
    sliceOf: () => null,
    nameOf: async () => null,
  },
  driverVersion: () => '570.86.10',
  policy: new LimitPolicy(NO_LIMIT_ANNOTATIONS, new OperatorLimits(directories, silentLog())),
  clock: systemClock,
  log,
  ...(rate === 'unlimited'
    ? {
        socketLimits: {
          ...SOCKET_LIMITS,
          rate: { burst: 1e9, perSecond: 1e9, penaltyMs: 0, longestPenaltyMs: 0 },
          registrations: { burst: 1e9, perSecond: 1e9 },
        },
      }
    : {}),
});
await slices.open();
for (let index = 0; index < Number(slicesText); index += 1)
  await slices.start(sliceSpec({ allocation: index.toString(16).padStart(16, '0') }));
const display = new UnixRpcServer(join(base, 'display.sock'), [
  {
    definition: displayProto().display.GPUDisplay.service,
    handlers: { Version: unary(async () => ({ version: 'of a test' })) },
  },
]);
await display.start();
await obeyOrders(() => failures);
