import { createServer } from 'node:net';
import { join } from 'node:path';
import { credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { test } from 'tap';
import { displayProto } from '../../src/rpc/proto.js';
import { UnixRpcServer } from '../../src/rpc/rpc-server.js';
import { callUnary, unary } from '../../src/rpc/unary.js';
import { scratchDirectory } from '../scratch.js';

const { GPUDisplay } = displayProto().display;

function display(answer: () => Promise<string>) {
  return {
    definition: GPUDisplay.service,
    handlers: {
      Version: unary(async () => ({ version: await answer() })),
      PrintGraph: unary(async () => ({ graph: '' })),
      PrintUsages: unary(async () => ({ usage: {} })),
    },
  };
}

function client(path: string, authority: string) {
  return new GPUDisplay(`unix:${path}`, credentials.createInsecure(), { 'grpc.default_authority': authority });
}

test('without the rewriter, Node refuses a socket path as authority', async (t) => {
  const path = join(await scratchDirectory(t), 'plain.sock');
  const server = new Server();
  server.addService(GPUDisplay.service, {
    Version: (_: unknown, callback: (error: null, answer: { version: string }) => void) =>
      callback(null, { version: '1' }),
  });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  const caller = client(path, path);
  await t.rejects(callUnary(caller, 'Version', {}, 5_000), { message: /RST_STREAM with code 1/ });
  caller.close();
  server.forceShutdown();
});

for (const authority of ['/var/lib/kubelet/device-plugins/vcore.sock', 'unix:/x', 'localhost']) {
  test(`the server answers every call of a client that sends ${authority} as authority`, async (t) => {
    const path = join(await scratchDirectory(t), 'a.sock');
    let calls = 0;
    const server = new UnixRpcServer(path, [display(async () => `answer ${++calls}`)]);
    await server.start();
    const caller = client(path, authority);
    for (let call = 1; call <= 20; call += 1) {
      t.equal((await callUnary(caller, 'Version', {}, 5_000)).version, `answer ${call}`);
    }
    caller.close();
    await server.stop();
  });
}

test('the server rewrites long header blocks that span several frames', async (t) => {
  const path = join(await scratchDirectory(t), 'a.sock');
  const server = new UnixRpcServer(path, [display(async () => 'served')]);
  await server.start();
  const caller = client(path, `/${'very-long-path/'.repeat(400)}`);
  t.equal((await callUnary(caller, 'Version', {}, 5_000)).version, 'served');
  caller.close();
  await server.stop();
});

test('bytes that are not HTTP/2 end only their own connection', async (t) => {
  const path = join(await scratchDirectory(t), 'a.sock');
  const server = new UnixRpcServer(path, [display(async () => 'still here')]);
  await server.start();
  const { connect } = await import('node:net');
  for (const garbage of [
    Buffer.alloc(4096, 0xff),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(10)),
    Buffer.alloc(24),
  ]) {
    const socket = connect(path);
    socket.on('error', () => undefined);
    socket.resume();
    socket.end(garbage);
    await new Promise((resolve) => socket.on('close', resolve));
  }
  const caller = client(path, '/x/y.sock');
  t.equal((await callUnary(caller, 'Version', {}, 5_000)).version, 'still here');
  caller.close();
  await server.stop();
});

test('a handler that rejects answers its caller with an error, and the server stays alive', async (t) => {
  const path = join(await scratchDirectory(t), 'a.sock');
  let fails = true;
  const server = new UnixRpcServer(path, [
    display(async () => {
      if (fails) throw new Error('the disk is full');
      return 'recovered';
    }),
  ]);
  await server.start();
  const caller = client(path, 'localhost');
  await t.rejects(callUnary(caller, 'Version', {}, 5_000), { code: 13, details: 'the disk is full' });
  fails = false;
  t.equal((await callUnary(caller, 'Version', {}, 5_000)).version, 'recovered');
  caller.close();
  await server.stop();
});

test('the server replaces a stale socket file, and removes its file when it stops', async (t) => {
  const directory = await scratchDirectory(t);
  const path = join(directory, 'a.sock');
  const stale = createServer();
  await new Promise<void>((resolve) => stale.listen(path, resolve));
  const server = new UnixRpcServer(path, [display(async () => 'x')]);
  await server.start();
  const caller = client(path, 'localhost');
  t.equal((await callUnary(caller, 'Version', {}, 5_000)).version, 'x');
  caller.close();
  await server.stop();
  const { readdir } = await import('node:fs/promises');
  t.same(await readdir(directory), []);
  stale.close();
});
