/**
 * How much of the agent's time the containers of a node can take together. Rates are counted with a clock that the test
 * moves; the cost of one connection and one registration is measured as a multiple of accepting a bare connection, so
 * that no figure depends on the machine.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'tap';
import { ConnectionRate } from '../../src/agent/slices/compat/connection-rate.js';
import { REGISTRATION_PACE, RegistrationPace } from '../../src/agent/slices/compat/registration-pace.js';
import { SOCKET_LIMITS } from '../../src/agent/slices/compat/slice-socket.js';
import { greetingBytes, register, say } from '../agent/slices/container-client.js';
import { ManualClock } from '../manual-clock.js';
import { scratchDirectory } from '../scratch.js';
import { besieged } from './besieged.js';

const MINUTE_MS = 60_000;
/** A collection or a busy machine makes one measurement longer, and seldom five. */
const TRIES = 5;
/** In bare connections. */
const MOST = { greeting: 8, registration: 60 };

test('the agent serves a container that connects constantly at a limited rate', (t) => {
  const rate = new ConnectionRate(SOCKET_LIMITS.rate, 0);
  let served = 0;
  for (let now = 0; now < 10 * MINUTE_MS; now += 5) if (rate.take(now).ok) served += 1;
  t.ok(
    served <= SOCKET_LIMITS.rate.burst + 600 * SOCKET_LIMITS.rate.perSecond,
    `the agent served ${served} connections in ten minutes`,
  );
  t.end();
});

test('a hundred containers that register constantly wait for each other, and no other container waits long', async (t) => {
  const clock = new ManualClock();
  const pace = new RegistrationPace(clock, REGISTRATION_PACE);
  let served = 0;
  const hostile = async (): Promise<void> => {
    for (;;) {
      await pace.turn();
      served += 1;
      if (clock.now() > 1_000_000 + 10 * MINUTE_MS) return;
    }
  };
  for (let container = 0; container < 100; container += 1) void hostile();
  const move = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    }
  };
  await move(MINUTE_MS);
  const most = REGISTRATION_PACE.burst + 61 * REGISTRATION_PACE.perSecond;
  t.ok(served <= most && served > 0.9 * most, `the agent served ${served} registrations in a minute, at most ${most}`);
  let waitedMs = 0;
  const began = clock.now();
  void pace.turn().then(() => (waitedMs = clock.now() - began));
  await move(20_000);
  t.ok(waitedMs > 0 && waitedMs <= 8_000, `a new container waits ${waitedMs} ms`);
});

test('a greeting and a registration cost a limited number of bare connections', async (t) => {
  const program = await besieged(t, { unlimited: true });
  const bare = join(await scratchDirectory(t), 'bare.sock');
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.resume();
  });
  server.listen(bare);
  await once(server, 'listening');
  t.teardown(() => server.close());
  const rounds = 300;
  const greet = async (path: string): Promise<void> => {
    const socket = await say(path, greetingBytes(1, 0));
    await new Promise((resolve) => setTimeout(resolve, 1));
    socket.destroy();
    await once(socket, 'close');
  };
  const inProgram = async (action: () => Promise<void>, times = rounds): Promise<number> => {
    await action();
    const before = await program.usage();
    for (let round = 0; round < times; round += 1) await action();
    return ((await program.usage()).cpuUs - before.cpuUs) / times;
  };
  const accepting = async (): Promise<number> => {
    // Both ends are in this process: each measurement includes the cost of the other end, so this one includes it
    // at most twice.
    const before = process.cpuUsage();
    for (let round = 0; round < rounds; round += 1) {
      const socket = connect(bare);
      await once(socket, 'connect');
      socket.destroy();
      await once(socket, 'close');
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / rounds;
  };
  await accepting();
  const ratios = { greeting: Infinity, registration: Infinity };
  for (let tries = 0; tries < TRIES && !isCheap(ratios); tries++) {
    const bareUs = await accepting();
    const greetingUs = await inProgram(() => greet(program.socketOf()));
    const registrationUs = await inProgram(() => register(program.socketOf(), { container_id: 'c1' }), 60);
    ratios.greeting = Math.min(ratios.greeting, greetingUs / bareUs);
    ratios.registration = Math.min(ratios.registration, registrationUs / bareUs);
    t.comment(
      `bare ${bareUs.toFixed(0)} us of CPU, greeting x${(greetingUs / bareUs).toFixed(1)}, registration x${(registrationUs / bareUs).toFixed(1)}`,
    );
    // One container over a long time, and all containers together, in thousandths of a core of this machine.
    const onePermille =
      (SOCKET_LIMITS.rate.perSecond * greetingUs + SOCKET_LIMITS.registrations.perSecond * registrationUs) / 1_000;
    const registrationsPermille = (REGISTRATION_PACE.perSecond * registrationUs) / 1_000;
    t.comment(
      `one hostile container ${onePermille.toFixed(1)} permille of a core, registrations of all ${registrationsPermille.toFixed(1)}`,
    );
  }
  t.ok(isCheap(ratios), `in bare connections: ${JSON.stringify({ ...ratios, most: MOST })}`);
});

function isCheap({ greeting, registration }: typeof MOST): boolean {
  return greeting < MOST.greeting && registration < MOST.registration;
}
