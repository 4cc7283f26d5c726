import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { credentials } from '@grpc/grpc-js';
import { ABI_VERSION, GREETING, GREETING_MAGIC } from '../../../src/abi/vgpu-abi.js';
import { vcudaProto } from '../../../src/rpc/proto.js';
import { callUnary } from '../../../src/rpc/unary.js';
import { eventually } from '../../harness/eventually.js';

/** The bytes that the control library sends after it has connected. */
export function greetingBytes(pid: number, slot: number, startTicks = 0): Buffer {
  const bytes = Buffer.alloc(GREETING.structSize);
  bytes.writeBigUInt64LE(GREETING_MAGIC, GREETING.magic);
  bytes.writeUInt32LE(ABI_VERSION, GREETING.version);
  bytes.writeUInt32LE(GREETING.structSize, GREETING.size);
  bytes.writeUInt32LE(pid, GREETING.pid);
  bytes.writeUInt32LE(slot, GREETING.slot);
  bytes.writeBigUInt64LE(BigInt(startTicks), GREETING.startTicks);
  return bytes;
}

/** A connection that sends `bytes` and stays open. */
export async function say(path: string, bytes: Uint8Array): Promise<Socket> {
  const socket = connect(path);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.resume();
  if (bytes.length > 0) socket.write(bytes);
  return socket;
}

/** Resolves when the other end has closed, with an error or without. */
export async function closed(socket: Socket): Promise<void> {
  await eventually(() => socket.destroyed, 'the other end to close');
}

export interface Registration {
  readonly pod_uid?: string;
  readonly container_name?: string;
  readonly container_id?: string;
}

/** Registers as the `gpu-client` of the original does, which sends the path of the socket as authority. */
export async function register(path: string, registration: Registration): Promise<void> {
  const { VCUDAService } = vcudaProto().vcuda;
  const client = new VCUDAService(`unix:${path}`, credentials.createInsecure(), {
    'grpc.default_authority': '/etc/vcuda/vcuda.sock',
    'grpc.use_local_subchannel_pool': 1,
  });
  try {
    await callUnary(
      client,
      'RegisterVDevice',
      { bus_id: '', pod_uid: '', container_name: '', container_id: '', ...registration },
      20_000,
    );
  } finally {
    client.close();
  }
}

/** Field 22 of the calling process's stat. */
export function ownStartTicks(): number {
  const text = readFileSync('/proc/self/stat', 'latin1');
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19]);
}
