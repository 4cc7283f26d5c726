/**
 * The control library's greeting on `vcuda.sock`, which each process sends once; `native/include/vgpu_abi.h` defines
 * it. HTTP/2 clients of the same socket begin with "PRI", so the first byte distinguishes the protocols. Its content is
 * not trusted: the peer credentials of the socket identify the process.
 */
import { ABI_VERSION, GREETING, GREETING_MAGIC, MAX_PROCESSES } from './vgpu-abi.js';

/** The slot of the usage file that the peer names as its own. */
export interface Greeting {
  /** Pid in the container; the host's pid is in the socket's peer credentials. */
  readonly pid: number;
  readonly slot: number;
  readonly startTicks: number;
}

export type GreetingDecoded =
  | { readonly ok: true; readonly greeting: Greeting }
  | { readonly ok: false; readonly code: 'incomplete' | 'other'; readonly reason: string };

/** Whether a connection that began with `bytes` (at least one) sends a greeting instead of gRPC. */
export function looksLikeGreeting(bytes: Buffer): boolean {
  return bytes[0] === Number(GREETING_MAGIC & 0xffn);
}

/** Reads the first `GREETING.structSize` bytes of a connection. `incomplete`: more bytes are needed. */
export function decodeGreeting(bytes: Buffer): GreetingDecoded {
  if (bytes.length < GREETING.structSize)
    return { ok: false, code: 'incomplete', reason: `${bytes.length} bytes received` };
  if (bytes.readBigUInt64LE(GREETING.magic) !== GREETING_MAGIC)
    return { ok: false, code: 'other', reason: 'not a greeting' };
  const version = bytes.readUInt32LE(GREETING.version);
  if (version !== ABI_VERSION) return { ok: false, code: 'other', reason: `greeting of version ${version}` };
  const slot = bytes.readUInt32LE(GREETING.slot);
  if (slot >= MAX_PROCESSES) return { ok: false, code: 'other', reason: `slot ${slot} does not exist` };
  const startTicks = Number(bytes.readBigUInt64LE(GREETING.startTicks) & 0xff_ffff_ffffn);
  return { ok: true, greeting: { pid: bytes.readUInt32LE(GREETING.pid), slot, startTicks } };
}
