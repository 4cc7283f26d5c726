/**
 * Random connections to every socket that a container, or a program of the node, can reach: frames of any kind, in any
 * order, truncated, changed and reset. `GPU_MANAGER_FUZZ=100000` makes that many; `GPU_MANAGER_FUZZ_SEED` repeats one
 * run.
 */
import { connect } from 'node:net';
import { test } from 'tap';
import { register, greetingBytes } from '../agent/slices/container-client.js';
import { generator } from '../generator.js';
import { besieged } from './besieged.js';
import {
  END_HEADERS,
  END_STREAM,
  entered,
  FRAME,
  frame,
  indexed,
  literal,
  message,
  METHOD,
  PREFACE,
  registration,
  requestFields,
  reset,
  settings,
  word,
} from './http2-frames.js';
import { timeLimit } from '../harness/time-factor.js';
import { cases } from '../cases.js';

const CONNECTIONS = Number(process.env.GPU_MANAGER_FUZZ ?? cases(1_000, 10_000));
const SEED = Number(process.env.GPU_MANAGER_FUZZ_SEED ?? 1 + Math.floor(Math.random() * 2 ** 31));
const AT_ONCE = 48;
const MIB = 2 ** 20;

type Random = () => number;

function fuzzer(random: Random) {
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
  const noise = (length: number): Buffer => Buffer.from(Array.from({ length }, () => below(256)));
  const stream = (): number => pick([0, 1, 1, 1, 3, 3, 5, 2, 2 ** 31 - 1, below(2 ** 32)]);
  const block = (): Buffer =>
    pick([
      () => requestFields(),
      () => requestFields({ ':authority': '/etc/vcuda/vcuda.sock' }),
      () => requestFields({ 'content-type': null }),
      () => requestFields({ ':path': pick(['/x', '', '/vcuda.VCUDAService/', '/display.GPUDisplay/Version', '\x7f']) }),
      () => requestFields({ ':method': null }),
      () => requestFields({ ':authority': null }),
      () =>
        Buffer.concat([
          requestFields(),
          entered('x', 'v'.repeat(below(5_000))),
          ...Array.from({ length: below(300) }, () => indexed(62)),
        ]),
      () => Buffer.concat([requestFields(), indexed(below(200))]),
      () =>
        Buffer.concat([
          requestFields(),
          literal(pick(['', 'X', 'connection', 'te', ':status', '\n']), pick(['', '\0', 'v'])),
        ]),
      () => Buffer.of(0x20 | below(32), ...noise(below(4))),
      () => noise(below(60)),
      () => Buffer.alloc(0),
    ])();
  const body = (): Buffer =>
    pick([
      () => message(registration(pick(['c1', '../..', '', 'c'.repeat(100)]))),
      () => message(Buffer.alloc(0)),
      () => message(noise(below(50))),
      () => message(noise(5), below(2 ** 32)),
      () => message(noise(5), 5, 1),
      () => Buffer.concat([message(registration('c1')), message(registration('c2'))]),
      () => noise(below(20)),
    ])();
  const one = (): Buffer =>
    pick([
      () => Buffer.concat([frame(FRAME.headers, pick([END_HEADERS, END_HEADERS | END_STREAM]), 1, block()), reset(1)]),
      () => frame(FRAME.headers, pick([END_HEADERS, END_HEADERS | END_STREAM, 0, below(256)]), stream(), block()),
      () => frame(FRAME.headers, END_HEADERS, 1, block()),
      () => frame(FRAME.data, pick([END_STREAM, 0, below(256)]), stream(), body()),
      () => reset(stream(), below(20)),
      () => settings(),
      () => frame(FRAME.settings, pick([0, 1]), pick([0, 1]), noise(pick([0, 6, 12, 5]))),
      () =>
        frame(FRAME.settings, 0, 0, Buffer.concat([Buffer.of(0, below(8)), word(pick([0, 1, 2 ** 31, 2 ** 32 - 1]))])),
      () => frame(FRAME.continuation, pick([END_HEADERS, 0]), stream(), block()),
      () => frame(FRAME.ping, pick([0, 1]), 0, noise(pick([8, 8, 7, 0]))),
      () => frame(FRAME.windowUpdate, 0, stream(), word(pick([0, 1, 65_536, 2 ** 31 - 1]))),
      () => frame(FRAME.goaway, 0, 0, noise(8)),
      () => frame(FRAME.priority, 0, stream(), noise(5)),
      () => frame(FRAME.pushPromise, END_HEADERS, stream(), noise(below(20))),
      () => frame(10 + below(246), below(256), stream(), noise(below(40))),
      () => noise(below(100)),
    ])();
  return {
    /** What one connection writes, element by element, and whether it closes properly. */
    connection(): { readonly writes: readonly Buffer[]; readonly end: 'destroy' | 'end' | 'wait' } {
      const start = pick([
        PREFACE,
        PREFACE,
        PREFACE,
        PREFACE,
        PREFACE,
        Buffer.alloc(0),
        greetingBytes(1, below(600)),
        noise(below(40)),
      ]);
      const parts = [start, ...(random() < 0.7 ? [settings()] : []), ...Array.from({ length: below(8) }, one)];
      let bytes = Buffer.concat(parts);
      if (random() < 0.2 && bytes.length > 0) bytes[below(bytes.length)] = below(256);
      if (random() < 0.2) bytes = bytes.subarray(0, below(bytes.length + 1));
      const cut = random() < 0.3 ? below(bytes.length + 1) : bytes.length;
      return {
        writes: [bytes.subarray(0, cut), bytes.subarray(cut)].filter(({ length }) => length > 0),
        end: pick(['destroy', 'end', 'wait', 'wait']),
      };
    },
    pick,
  };
}

/** The program answers many connections at once: how it reads the bytes shows in its first answer, or in its close. */
const PATIENCE_MS = 400;

function run(path: string, { writes, end }: ReturnType<ReturnType<typeof fuzzer>['connection']>): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on('error', () => undefined);
    let timer = setTimeout(() => socket.destroy(), PATIENCE_MS);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.on('data', () => {
      clearTimeout(timer);
      timer = setTimeout(() => socket.destroy(), 5);
    });
    for (const bytes of writes) socket.write(bytes);
    if (end === 'end') socket.end();
    if (end === 'destroy') socket.write('', () => socket.destroy());
  });
}

test(
  `${CONNECTIONS} random connections end no process and leave no resources in use`,
  { timeout: timeLimit(1_500_000) },
  async (t) => {
    t.comment(`seed ${SEED}, method ${METHOD}`);
    const program = await besieged(t, { unlimited: true });
    const sockets = [program.socketOf(), program.socketOf(), program.displaySocket];
    const fuzz = fuzzer(generator(SEED));
    await register(program.socketOf(), { container_id: 'c1' });
    const before = await program.usage();
    let left = CONNECTIONS;
    const worker = async (): Promise<void> => {
      while (left > 0 && program.ended() === null) {
        left -= 1;
        await run(fuzz.pick(sockets), fuzz.connection());
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    t.equal(program.ended(), null, `the program is alive (seed ${SEED})`);
    const after = await program.usage();
    t.equal(after.failures, 0, 'no handler threw an exception');
    const grown = (after.peakBytes - before.peakBytes) / MIB;
    t.comment(
      `the program takes ${Math.round(grown)} MiB more at its peak and ${Math.round((after.cpuUs - before.cpuUs) / CONNECTIONS)} us of CPU a connection`,
    );
    t.ok(grown < AT_ONCE * 8, `the program takes ${Math.round(grown)} MiB more for ${AT_ONCE} concurrent connections`);
    await register(program.socketOf(), { container_id: 'c1' });
  },
);
