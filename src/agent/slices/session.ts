import type { Greeting } from '../../abi/greeting.js';
import type { PeerCredentials } from '../../host/peer-credentials.js';
import { processStat } from '../../host/process-stat.js';

/** A process of a container that greeted and whose connection is open. */
export interface Session {
  /** Allocation whose socket it came by. */
  readonly allocation: string;
  /** Of the host; null where the agent cannot see the container's processes. */
  readonly pid: number | null;
  readonly uid: number;
  /** When the process started, as the host has it; null when it could not be read. */
  readonly startTicks: number | null;
  readonly greeting: Greeting;
}

export function newSession(allocation: string, peer: PeerCredentials, greeting: Greeting): Session {
  const stat = peer.pid === null ? null : processStat(peer.pid);
  return { allocation, pid: peer.pid, uid: peer.uid, startTicks: stat?.startTicks ?? null, greeting };
}
