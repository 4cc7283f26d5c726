import { connect } from 'node:net';
import { test } from 'tap';
import { register } from '../agent/slices/container-client.js';
import { cases } from '../cases.js';
import { attack, besieged } from './besieged.js';
import {
  END_HEADERS,
  END_STREAM,
  entered,
  FRAME,
  frame,
  indexed,
  literal,
  METHOD,
  PREFACE,
  requestFields,
  reset,
  settings,
} from './http2-frames.js';

const MIB = 2 ** 20;

for (const [what, fields] of [
  ['without a content type', requestFields({ 'content-type': null })],
  ['of another content type', requestFields({ 'content-type': 'text/html' })],
  ['for a method that does not exist', requestFields({ ':path': '/x' })],
  ['for the method that does', requestFields()],
] as const) {
  test(`a request ${what} that is reset in the same write ends only itself`, async (t) => {
    const program = await besieged(t);
    for (const path of [program.socketOf(), program.displaySocket]) {
      await attack(
        path,
        [Buffer.concat([PREFACE, settings(), frame(FRAME.headers, END_HEADERS, 1, fields), reset(1)])],
        50,
      );
      await attack(
        path,
        [Buffer.concat([PREFACE, settings(), frame(FRAME.headers, END_HEADERS | END_STREAM, 1, fields), reset(1)])],
        50,
      );
    }
    t.equal((await program.usage()).failures, 0);
    await register(program.socketOf(), { container_id: 'c1' });
    t.equal(program.ended(), null);
  });
}

/** A long field that is added once, and then referred to by one byte each. */
function bomb(authority: string, value: string, references: number): Buffer {
  const block = Buffer.concat([
    requestFields({ ':authority': authority }),
    entered('x', value),
    Buffer.concat(Array.from({ length: references }, () => indexed(62))),
  ]);
  const frames = [frame(FRAME.headers, 0, 1, block.subarray(0, 16_000))];
  for (let at = 16_000; at < block.length; at += 16_000)
    frames.push(frame(FRAME.continuation, 0, 1, block.subarray(at, at + 16_000)));
  frames.push(frame(FRAME.continuation, END_HEADERS, 1));
  return Buffer.concat([PREFACE, settings(), ...frames]);
}

test('fields that a table multiplies cost no memory, for any authority', async (t) => {
  const program = await besieged(t, { unlimited: true });
  await register(program.socketOf(), { container_id: 'c1' });
  const before = await program.usage();
  const connections = cases(16, 64);
  for (const authority of ['localhost', '/etc/vcuda/vcuda.sock']) {
    for (const path of [program.socketOf(), program.displaySocket]) {
      await Promise.all(
        Array.from({ length: connections / 4 }, () =>
          attack(path, [bomb(authority, 'v'.repeat(4_000), 12_000)], 2_000),
        ),
      );
      // As many as fit into the 128 fields that Node accepts, one request at a time: the table lasts for all of them.
      const requests = Array.from({ length: 60 }, (_, index) =>
        frame(
          FRAME.headers,
          END_HEADERS | END_STREAM,
          2 * index + 3,
          Buffer.concat([
            requestFields({ ':authority': authority, ':path': null }),
            indexed(62),
            literal(':path', METHOD),
            ...Array.from({ length: 100 }, () => indexed(62)),
          ]),
        ),
      );
      const opening = frame(
        FRAME.headers,
        END_HEADERS,
        1,
        Buffer.concat([requestFields({ ':authority': authority }), entered('x', 'v'.repeat(4_000))]),
      );
      await Promise.all(
        Array.from({ length: connections / 4 }, () =>
          attack(path, [Buffer.concat([PREFACE, settings(), opening, ...requests])], 2_000),
        ),
      );
    }
  }
  const after = await program.usage();
  const grown = (after.peakBytes - before.peakBytes) / connections / MIB;
  t.comment(`the server takes ${grown.toFixed(2)} MiB a connection`);
  t.ok(grown < 8, `the server takes ${grown.toFixed(2)} MiB a connection`);
  t.equal(after.failures, 0);
});

test('an HPACK bomb costs at most as much as one and a half registrations', async (t) => {
  const program = await besieged(t, { unlimited: true });
  const path = program.socketOf();
  const rounds = 40;
  const cost = async (action: () => Promise<void>): Promise<number> => {
    for (let round = 0; round < 10; round += 1) await action();
    const before = await program.usage();
    for (let round = 0; round < rounds; round += 1) await action();
    return ((await program.usage()).cpuUs - before.cpuUs) / rounds;
  };
  const registering = await cost(() => register(path, { container_id: 'c1' }));
  const bombing = await cost(() => attack(path, [bomb('/etc/x', 'v'.repeat(4_000), 12_000)], 2_000));
  t.comment(`a registration takes ${Math.round(registering)} us of CPU, a bomb ${Math.round(bombing)} us`);
  t.ok(bombing < 1.5 * registering, `the bomb takes ${bombing} us, a registration ${registering} us`);
});

test('the server does not read bytes beyond the limit of a connection', async (t) => {
  const program = await besieged(t);
  const flood = Buffer.concat([
    PREFACE,
    settings(),
    ...Array.from({ length: 2_000 }, () => frame(FRAME.ping, 0, 0, Buffer.alloc(8))),
  ]);
  const socket = connect(program.socketOf());
  socket.on('error', () => undefined);
  const answered = await new Promise<number>((resolve) => {
    socket.on('close', () => resolve(socket.bytesRead));
    socket.resume();
    socket.write(flood);
  });
  t.ok(answered < 17 * 1_000, `the server sends ${answered} bytes of answers to at most 963 pings`);
  t.equal((await program.usage()).failures, 0);
});
