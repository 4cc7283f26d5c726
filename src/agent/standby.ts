import { join } from 'node:path';
import type { AgentConfig } from './config.js';
import type { Clock } from '../host/clock.js';
import { FileLock } from '../host/file-lock.js';
import type { Log } from '../host/log.js';
import { plain } from '../http/answer.js';
import { CertificateFiles } from '../http/certificate-files.js';
import { Listener, type Route } from '../http/listener.js';

type StandbyConfig = Pick<AgentConfig, 'checkpointPath' | 'queryAddress' | 'queryPort' | 'tls'>;

export const LOCK_FILE = 'agent.lock';
const RETRY_MS = 20;

/**
 * Waits until no other agent works on this node's state, then answers the lock that keeps others away; null when
 * `stopped` resolves first. Meanwhile probes are answered: a DaemonSet that surges ends the agent before this one as
 * soon as this one is ready to take over.
 */
export async function takeOver(
  config: StandbyConfig,
  clock: Clock,
  log: Log,
  stopped: Promise<unknown>,
): Promise<FileLock | null> {
  const path = join(config.checkpointPath, LOCK_FILE);
  const first = await FileLock.tryAcquire(path);
  if (first !== null) return first;
  log.info({ lock: path }, 'another agent runs on this node; standing by to take over');
  const probes = await answerProbes(config, clock, log);
  // Timers and sockets do not keep Node alive by themselves.
  const alive = setInterval(() => undefined, 1 << 30);
  let isStopped = false;
  void stopped.then(() => (isStopped = true));
  try {
    while (!isStopped) {
      const lock = await FileLock.tryAcquire(path);
      if (lock !== null) return lock;
      await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
    }
    return null;
  } finally {
    clearInterval(alive);
    await probes();
  }
}

/**
 * Answers probes on the agent's port; the returned function ends that. Where both agents share a network, the other one
 * answers.
 */
async function answerProbes(
  { queryAddress, queryPort, tls }: StandbyConfig,
  clock: Clock,
  log: Log,
): Promise<() => Promise<void>> {
  const probe: Route = { method: 'GET', isOpen: true, answer: () => plain(200, 'standing by') };
  const listener = new Listener({
    address: queryAddress,
    port: queryPort,
    tls: tls === null ? null : new CertificateFiles({ ...tls, clock, log }),
    route: (path) => (path === '/healthz' || path === '/readyz' ? probe : null),
    log,
  });
  try {
    await listener.start();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return async () => undefined;
    throw error;
  }
  return () => listener.stop();
}
