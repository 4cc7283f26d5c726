import { execFile, spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server as NetServer, Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Server, ServerCredentials, loadPackageDefinition, status } from '@grpc/grpc-js';
import type { ServiceClientConstructor, UntypedHandleCall } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { test } from 'tap';
import { scratchDirectory } from '../scratch.js';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const program = join(repository, 'native/build/gpu-client');
const built = spawnSync('make', ['-s', '-C', join(repository, 'native'), 'build/gpu-client'], { encoding: 'utf8' });
const skip = built.error === undefined ? false : 'make is not installed';

const definition = loadPackageDefinition(loadSync(join(repository, 'proto/vcuda.proto'), { keepCase: true, defaults: true }));
const { VCUDAService } = definition['vcuda'] as unknown as { VCUDAService: ServiceClientConstructor };

interface Ended {
  readonly code: number | null;
  readonly stderr: string;
}

/** Runs the client with an environment as empty as a container may have. */
function client(...flags: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(program, flags, { env: {} }, (_error, _stdout, stderr) => { resolve({ code: child.exitCode, stderr }); });
  });
}

interface Teardown {
  teardown(action: () => unknown): void;
}

type Register = (call: { request: unknown }, answer: (error: { code: number; details: string } | null, value?: object) => void) => void;

/** A gRPC server with the service of the agent; returns the path of its socket. */
async function agent(t: Teardown, register: Register): Promise<string> {
  const path = join(await scratchDirectory(t), 'vcuda.sock');
  const server = new Server();
  t.teardown(() => { server.forceShutdown(); });
  server.addService(VCUDAService.service, { RegisterVDevice: register as UntypedHandleCall });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => { if (error === null) resolve(); else reject(error); });
  });
  return path;
}

/** A server that handles a connection with the given function. */
async function rawServer(t: Teardown, onConnection: (socket: Socket) => void): Promise<string> {
  const path = join(await scratchDirectory(t), 'vcuda.sock');
  const sockets = new Set<Socket>();
  const server: NetServer = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return path;
}

test('the client builds', { skip }, (t) => {
  t.equal(built.status, 0, built.stderr);
  t.end();
});

test('a registration with the original flags reaches the agent unchanged', { skip }, async (t) => {
  const requests: unknown[] = [];
  const path = await agent(t, (call, answer) => {
    requests.push(call.request);
    answer(null, {});
  });
  const byId = await client('--addr', path, '--bus-id', '', '--pod-uid', 'f2a1', '--cont-id', 'c0ffee');
  t.same(byId, { code: 0, stderr: '' });
  const long = 'n'.repeat(300);
  const byName = await client(`--addr=unix://${path}`, '--pod-uid=f2a1', `--cont-name=${long}`, '--bus-id=0000:3B:00.0');
  t.same(byName, { code: 0, stderr: '' });
  t.same(requests, [
    { bus_id: '', pod_uid: 'f2a1', container_name: '', container_id: 'c0ffee' },
    { bus_id: '0000:3B:00.0', pod_uid: 'f2a1', container_name: long, container_id: '' },
  ]);
});

test('a refusal is printed with its reason', { skip }, async (t) => {
  const path = await agent(t, (_call, answer) => {
    answer({ code: status.PERMISSION_DENIED, details: 'not a process of this container: 100% sure, größte Mühe\n' });
  });
  const { code, stderr } = await client('--addr', path, '--pod-uid', 'f2a1', '--cont-id', 'c0ffee');
  t.equal(code, 5);
  t.match(stderr, 'the agent refused (gRPC status 7): not a process of this container: 100% sure, größte Mühe');
});

test('the exit code distinguishes a missing agent from one that does not answer', { skip }, async (t) => {
  const gone = await client('--addr', '/nonexistent/vcuda.sock', '--pod-uid', 'f2a1', '--cont-id', 'c0ffee');
  t.equal(gone.code, 3);
  t.match(gone.stderr, 'No such file or directory');
  const path = await rawServer(t, () => undefined);
  const silent = await client('--addr', path, '--pod-uid', 'f2a1', '--cont-id', 'c0ffee');
  t.equal(silent.code, 4);
  t.match(silent.stderr, 'within 5 s');
});

test('a socket without permission counts as a missing agent', { skip: skip || (process.getuid?.() === 0 ? 'root may use any socket' : false) }, async (t) => {
  const path = await rawServer(t, () => undefined);
  chmodSync(path, 0);
  t.equal((await client('--addr', path, '--pod-uid', 'f2a1', '--cont-id', 'c0ffee')).code, 3);
});

test('replies that are not gRPC end the call', { skip }, async (t) => {
  const frame = (length: number, type: number, flags: number, stream: number, payload: Buffer): Buffer => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, payload]);
  };
  const replies: readonly Buffer[] = [
    Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
    Buffer.alloc(0),
    frame(0xffffff, 4, 0, 0, Buffer.alloc(0)),
    frame(0, 1, 0x05, 1, Buffer.alloc(0)),
    frame(3, 1, 0x05, 1, Buffer.from([0x00, 0xff, 0xff])),
    frame(1, 1, 0x2d, 1, Buffer.from([0xff])),
    frame(4, 3, 0, 1, Buffer.alloc(4)),
    frame(8, 7, 0, 0, Buffer.alloc(8)),
    frame(6, 1, 0x05, 1, Buffer.from([0x40, 0x84, 0xff, 0xff, 0xff, 0xff])),
  ];
  for (const reply of replies) {
    const path = await rawServer(t, (socket) => { socket.end(reply); });
    const ended = await client('--addr', path, '--pod-uid', 'f2a1', '--cont-id', 'c0ffee');
    t.equal(ended.code, 6, reply.toString('hex').slice(0, 40));
  }
});

test('wrong usage prints an explanation, and nothing is sent', { skip }, async (t) => {
  for (const flags of [[], ['--addr', '/x'], ['--addr', '/x', '--pod-uid', 'u'], ['--pod-uid', 'u', '--cont-id', 'c'], ['--what'], ['--addr', '/x', '--pod-uid', 'u', '--cont-id', 'c', 'more']]) {
    const ended = await client(...flags);
    t.equal(ended.code, 2, flags.join(' '));
    t.match(ended.stderr, 'usage: gpu-client');
  }
});

test('the client needs no libraries', { skip: skip || (spawnSync('readelf', ['-v']).status === 0 ? false : 'readelf is not installed') }, (t) => {
  const headers = spawnSync('readelf', ['-lW', program], { encoding: 'utf8' });
  t.equal(headers.status, 0);
  t.notMatch(headers.stdout, 'INTERP');
  t.end();
});
