/**
 * A runtime that sends random bytes to its NRI plugins: chunks, messages and requests of any kind, in any order,
 * truncated, changed and announced larger than they are. `GPU_MANAGER_FUZZ=100000` makes that many connections;
 * `GPU_MANAGER_FUZZ_SEED` repeats one run.
 */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'tap';
import { UnixListener } from '../../src/host/unix-socket.js';
import { nriProto, ttrpcProto } from '../../src/rpc/proto.js';
import { encodeMessage, MESSAGE_LIMIT_BYTES } from '../../src/rpc/ttrpc/message.js';
import { eventually } from '../harness/eventually.js';
import { generator } from '../generator.js';
import { scratchDirectory } from '../scratch.js';
import { underAttack } from './besieged.js';
import { timeLimit } from '../harness/time-factor.js';
import { cases } from '../cases.js';

const CONNECTIONS = Number(process.env.GPU_MANAGER_FUZZ ?? cases(1_000, 10_000));
const SEED = Number(process.env.GPU_MANAGER_FUZZ_SEED ?? 1 + Math.floor(Math.random() * 2 ** 31));
const AT_ONCE = 24;
const MIB = 2 ** 20;
const { Plugin } = nriProto().nri.pkg.api.v1alpha1;
const EVENTS = [3, 11, 'REMOVE_POD_SANDBOX', 'CREATE_CONTAINER'] as const;
const SERVICE = 'nri.pkg.api.v1alpha1.Plugin';

function fuzzer(random: () => number) {
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
  const noise = (length: number): Buffer => Buffer.from(Array.from({ length }, () => below(256)));
  const text = (): string => pick(['', 'a', '=', 'LD_LIBRARY_PATH=/x', 'x'.repeat(below(3_000)), '\0\n', '/etc/vcuda']);
  const pod = () => ({ id: pick(['s1', 's2', '']), uid: pick(['known', 'known', 'other', '']), name: text() });
  const container = () => ({
    id: pick(['c1', 'c2', `c${below(10_000)}`]),
    pod_sandbox_id: pick(['s1', 's2', 's3']),
    name: pick(['main', '']),
    env: Array.from({ length: below(5) }, text),
    mounts: Array.from({ length: below(5) }, () => ({ destination: text(), source: text(), options: [text()] })),
    linux: pick([null, { resources: { cpu: { cpus: text() } } }]),
  });
  const { Configure, Synchronize, CreateContainer, StopContainer, StateChange } = Plugin.service;
  const body = (): readonly [string, Buffer] =>
    pick<() => readonly [string, Buffer]>([
      () => ['Configure', Configure.requestSerialize({ runtime_name: text() })],
      () => [
        'Synchronize',
        Synchronize.requestSerialize({
          pods: Array.from({ length: below(4) }, pod),
          containers: Array.from({ length: below(20) }, container),
          more: random() < 0.5,
        }),
      ],
      () => ['CreateContainer', CreateContainer.requestSerialize({ pod: pod(), container: container() })],
      () => ['CreateContainer', CreateContainer.requestSerialize({ pod: null, container: null })],
      () => ['StopContainer', StopContainer.requestSerialize({ pod: null, container: container() })],
      () => ['RemoveContainer', StopContainer.requestSerialize({ container: container() })],
      () => ['RemovePodSandbox', StopContainer.requestSerialize({ pod: pod() })],
      () => [
        'StateChange',
        StateChange.requestSerialize({
          event: pick([...EVENTS, below(2 ** 31) as 1]),
          pod: pod(),
          container: container(),
        }),
      ],
      () => ['Shutdown', Buffer.alloc(0)],
      () => [pick(['CreateContainer', 'Synchronize', 'Configure']), noise(below(60))],
      () => [text(), noise(below(20))],
    ])();
  let stream = 1;
  const message = (): Buffer =>
    pick([
      () => {
        const [method, payload] = body();
        const request = { service: random() < 0.95 ? SERVICE : text(), method, payload };
        stream += 2;
        return encodeMessage({ streamId: stream, type: 1, payload: ttrpcProto().ttrpc.Request.serialize(request) });
      },
      () => encodeMessage({ streamId: below(2 ** 32), type: pick([1, 2, 3, below(256)]), payload: noise(below(60)) }),
      // An answer to the registration, or to no request.
      () => {
        const status = pick([null, { code: below(20), message: text() }]);
        return encodeMessage({
          streamId: pick([1, 3]),
          type: 2,
          payload: ttrpcProto().ttrpc.Response.serialize({ status }),
        });
      },
      () => {
        const announced = encodeMessage({ streamId: stream, type: pick([1, 2]), payload: noise(below(3_000)) });
        announced.writeUInt32BE(pick([MESSAGE_LIMIT_BYTES, MESSAGE_LIMIT_BYTES + 1, 2 ** 32 - 1, below(5_000)]), 0);
        return announced;
      },
      () => noise(below(40)),
    ])();
  const chunk = (): Buffer => {
    const payload = random() < 0.9 ? message() : Buffer.concat([message(), message()]);
    const header = Buffer.alloc(8);
    header.writeUInt32BE(pick([1, 1, 1, 1, 2, 2, 0, below(2 ** 32)]), 0);
    header.writeUInt32BE(random() < 0.95 ? payload.length : pick([0, 2 ** 32 - 1, below(9_000)]), 4);
    return Buffer.concat([header, payload]);
  };
  return {
    connection(): { readonly writes: readonly Buffer[]; readonly end: 'destroy' | 'end' } {
      stream = 1;
      let bytes = Buffer.concat(Array.from({ length: 1 + below(12) }, chunk));
      if (random() < 0.2 && bytes.length > 0) bytes[below(bytes.length)] = below(256);
      if (random() < 0.2) bytes = bytes.subarray(0, below(bytes.length + 1));
      const cut = random() < 0.5 ? below(bytes.length + 1) : bytes.length;
      return { writes: [bytes.subarray(0, cut), bytes.subarray(cut)], end: pick(['destroy', 'end']) };
    },
  };
}

test(
  `${CONNECTIONS} connections to a runtime that sends random bytes end no plugin`,
  { timeout: timeLimit(1_500_000) },
  async (t) => {
    t.comment(`seed ${SEED}`);
    const path = join(await scratchDirectory(t), 'nri.sock');
    const fuzz = fuzzer(generator(SEED));
    let connections = 0;
    const listener = new UnixListener(path, (socket: Socket) => {
      connections += 1;
      socket.on('error', () => undefined);
      socket.resume();
      const { writes, end } = fuzz.connection();
      for (const bytes of writes) if (bytes.length > 0) socket.write(bytes);
      if (end === 'end') socket.end();
      else setTimeout(() => socket.destroy(), 3);
    });
    await listener.start();
    t.teardown(() => listener.stop());
    const program = await underAttack(t, 'nri-program.js', [path, String(AT_ONCE)]);
    const before = await program.usage();
    await eventually(() => connections >= CONNECTIONS || program.ended() !== null, 'the connections', 1_400_000);
    t.equal(program.ended(), null, `the program is alive (seed ${SEED})`);
    const after = await program.usage();
    t.equal(after.failures, 0, 'no handler threw an exception');
    const grown = (after.peakBytes - before.peakBytes) / MIB;
    t.comment(
      `the program takes ${Math.round(grown)} MiB more at its peak and ${Math.round((after.cpuUs - before.cpuUs) / connections)} us of CPU a connection`,
    );
    t.ok(grown < AT_ONCE * 8, `the program takes ${Math.round(grown)} MiB more for ${AT_ONCE} concurrent connections`);
  },
);

test('a runtime that never ends its largest messages takes less than 8 MiB a connection', async (t) => {
  const path = join(await scratchDirectory(t), 'nri.sock');
  let sent = 0;
  const unended = [1, 2, 3].map((connection) => {
    const message = encodeMessage({ streamId: 1, type: 1, payload: Buffer.alloc(MESSAGE_LIMIT_BYTES) });
    const header = Buffer.alloc(8);
    header.writeUInt32BE(connection, 0);
    header.writeUInt32BE(message.length - 1, 4);
    return Buffer.concat([header, message.subarray(0, message.length - 1)]);
  });
  const listener = new UnixListener(path, (socket: Socket) => {
    socket.on('error', () => undefined);
    socket.resume();
    for (const bytes of unended) socket.write(bytes, () => (sent += 1));
  });
  await listener.start();
  t.teardown(() => listener.stop());
  const plugins = 16;
  const program = await underAttack(t, 'nri-program.js', [path, String(plugins), 'patient']);
  const before = await program.usage();
  await eventually(() => sent >= unended.length * plugins || program.ended() !== null, 'the bytes to be taken');
  const held = async (): Promise<number> => ((await program.usage()).heldBytes - before.heldBytes) / plugins / MIB;
  await eventually(async () => (await held()) > 3, 'what came to be held');
  const grown = await held();
  t.comment(`the program takes ${grown.toFixed(1)} MiB a connection`);
  t.ok(grown < 8, `the program takes ${grown.toFixed(1)} MiB a connection`);
  t.equal(program.ended(), null);
});
