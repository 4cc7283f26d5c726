import type { Greeting } from '../../abi/greeting.js';
import type { PeerCredentials } from '../../host/peer-credentials.js';
import { processStat } from '../../host/process-stat.js';

/** A process of a container that sent a greeting and whose connection is open. */
export interface Session {
  /** Allocation of the socket that it connected to. */
  readonly allocation: string;
  /** Pid on the host; null if the agent cannot see the container's processes. */
  readonly pid: number | null;
  readonly uid: number;
  /** Start time of the process on the host; null if it could not be read. */
  readonly startTicks: number | null;
  readonly greeting: Greeting;
}

export function newSession(allocation: string, peer: PeerCredentials, greeting: Greeting): Session {
  const stat = peer.pid === null ? null : processStat(peer.pid);
  return { allocation, pid: peer.pid, uid: peer.uid, startTicks: stat?.startTicks ?? null, greeting };
}
