/**
 * What the control library says once on `vcuda.sock`; `native/include/vgpu_abi.h` defines it. HTTP/2 clients of the
 * same socket begin with "PRI", so the first byte tells them apart. Nothing in it is believed: the peer credential of
 * the socket names the process.
 */
import { ABI_VERSION, GREETING, GREETING_MAGIC, MAX_PROCESSES } from './vgpu-abi.js';

/** The line of the usage file that the peer claims to be. */
export interface Greeting {
  /** As the container sees it; the host's pid is the socket's peer credential. */
  readonly pid: number;
  readonly slot: number;
  readonly startTicks: number;
}

export type GreetingDecoded =
  | { readonly ok: true; readonly greeting: Greeting }
  | { readonly ok: false; readonly code: 'incomplete' | 'other'; readonly reason: string };

/** Whether a connection that began with `bytes` (at least one) is a library's greeting rather than gRPC. */
export function looksLikeGreeting(bytes: Buffer): boolean {
  return bytes[0] === Number(GREETING_MAGIC & 0xffn);
}

/** Reads the first `GREETING.structSize` bytes of a connection. `incomplete`: more must be read first. */
export function decodeGreeting(bytes: Buffer): GreetingDecoded {
  if (bytes.length < GREETING.structSize)
    return { ok: false, code: 'incomplete', reason: `${bytes.length} bytes so far` };
  if (bytes.readBigUInt64LE(GREETING.magic) !== GREETING_MAGIC)
    return { ok: false, code: 'other', reason: 'not a greeting' };
  const version = bytes.readUInt32LE(GREETING.version);
  if (version !== ABI_VERSION) return { ok: false, code: 'other', reason: `greeting of version ${version}` };
  const slot = bytes.readUInt32LE(GREETING.slot);
  if (slot >= MAX_PROCESSES) return { ok: false, code: 'other', reason: `slot ${slot} does not exist` };
  const startTicks = Number(bytes.readBigUInt64LE(GREETING.startTicks) & 0xff_ffff_ffffn);
  return { ok: true, greeting: { pid: bytes.readUInt32LE(GREETING.pid), slot, startTicks } };
}
