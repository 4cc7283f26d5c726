import koffi from 'koffi';
import type { Socket } from 'node:net';

/** The process at the other end of a unix socket, as the kernel recorded it at the connect. */
export interface PeerCredentials {
  /** Pid in our pid namespace; null if the peer's process is not visible from it. */
  readonly pid: number | null;
  readonly uid: number;
}

// unix(7): SO_PEERCRED fills `struct ucred { pid_t pid; uid_t uid; gid_t gid; }`. The numbers are valid for x86 and
// arm.
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const UCRED_BYTES = 12;

type GetSockOpt = (fd: number, level: number, option: number, value: Buffer, length: [number]) => number;

let bound: GetSockOpt | null = null;

function getsockopt(): GetSockOpt {
  bound ??= koffi
    .load('libc.so.6')
    .func(
      'int getsockopt(int fd, int level, int option, _Out_ uint8_t *value, _Inout_ uint32_t *length)',
    ) as GetSockOpt;
  return bound;
}

/** The descriptor of a connection, which is missing in Node's types. */
interface WithHandle {
  readonly _handle?: { readonly fd?: number } | null;
}

/**
 * The peer of an accepted connection; null if it is closed already. Throws if the C library is missing, because
 * processes could then not be identified.
 */
export function peerCredentials(socket: Socket): PeerCredentials | null {
  const fd = (socket as unknown as WithHandle)._handle?.fd;
  if (fd === undefined || fd < 0) return null;
  const value = Buffer.alloc(UCRED_BYTES);
  if (getsockopt()(fd, SOL_SOCKET, SO_PEERCRED, value, [UCRED_BYTES]) !== 0) return null;
  const pid = value.readInt32LE(0);
  return { pid: pid > 0 ? pid : null, uid: value.readUInt32LE(4) };
}
