/**
 * An extender with 5,000 nodes of 16 GPUs, no two nodes in the same state. It measures the turns of its event loop
 * while a test sends it calls: `start` and `stop` on its channel.
 */
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { Extender } from '../../src/scheduler/extender.js';
import { seededRandom } from '../../bench/openb/random.js';
import { LoopMeter } from '../harness/loop-meter.js';
import { FakeApi } from '../scheduler/fake-api.js';
import { node, pod } from '../scheduler/objects.js';

const GPUS = 16;
const random = seededRandom(7);
const whole = (most: number): number => Math.floor(random() * most);

const api = new FakeApi();
for (let at = 0; at < Number(process.argv[2]); at++) {
  const blocks = at % 2 === 0 ? 64 : null;
  const name = `n${at}`;
  api.setNode(
    node(
      name,
      Array.from({ length: GPUS }, () => blocks ?? 32 + whole(64)),
      { freeCores: Array.from({ length: GPUS }, (_, gpu) => (gpu < 10 || at % 3 === 0 ? 100 : 30 + whole(70))) },
    ),
  );
  for (let victim = 0; victim < 3; victim++)
    api.setPod(pod(`v${at}-${victim}`, [[40 + whole(50), 1 + whole(20)]], { nodeName: name }));
}
const extender = new Extender(
  {
    address: '127.0.0.1',
    port: 0,
    tls: null,
    policy: 'fragmentation',
    version: 'hostile',
    reservationTtlMs: 30_000,
    settleTimeoutMs: 0,
    startDelayMs: 0,
    offer: process.argv[3] === 'all' ? 'all' : 'best',
  },
  { source: api, limits: api, writer: api, clock: systemClock, log: silentLog(), election: null },
);
await extender.start();
const meter = new LoopMeter();
process.on('message', (order: string) => {
  if (order === 'start') meter.start();
  process.send?.(order === 'stop' ? meter.stop() : 0);
});
process.once('disconnect', () => process.exit());
process.send?.(extender.port);
