import { join } from 'node:path';
import type { AgentConfig } from './config.js';
import type { Clock } from '../host/clock.js';
import { FileLock } from '../host/file-lock.js';
import { keptAlive } from '../host/keep-alive.js';
import type { Log } from '../host/log.js';
import { wait } from '../host/pause.js';
import { AddressInUse } from '../http/listen.js';
import { Listener } from '../http/listener.js';
import { probeListener } from '../http/probe-listener.js';
import { displayTls } from './display/index.js';

type StandbyConfig = Pick<
  AgentConfig,
  'checkpointPath' | 'queryAddress' | 'queryPort' | 'probes' | 'tls' | 'tlsSelfSigned' | 'nodeName'
>;

export const LOCK_FILE = 'agent.lock';
const RETRY_MS = 20;

/**
 * Waits until no other agent uses this node's state, then returns the lock that excludes others; null if `stopped`
 * resolves first. Meanwhile it answers probes: a DaemonSet with surge ends the old agent as soon as this one is ready.
 */
export async function lockNode(
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
  let isStopped = false;
  void stopped.then(() => (isStopped = true));
  try {
    return await keptAlive(async () => {
      while (!isStopped) {
        const lock = await FileLock.tryAcquire(path);
        if (lock !== null) return lock;
        await wait(clock, RETRY_MS);
      }
      return null;
    });
  } finally {
    await probes();
  }
}

/**
 * Answers probes on the agent's ports; the returned function ends this. If both agents share a network namespace, the
 * old one answers.
 */
async function answerProbes(config: StandbyConfig, clock: Clock, log: Log): Promise<() => Promise<void>> {
  const { queryAddress: address, queryPort: port, probes } = config;
  const listeners = [
    new Listener({
      address,
      port,
      tls: displayTls(config, clock, log),
      notReady: () => [],
      route: () => null,
      log,
    }),
    ...(probes === null ? [] : [probeListener({ ...probes, notReady: () => [], log })]),
  ];
  const started: Listener[] = [];
  for (const listener of listeners) {
    try {
      await listener.start();
      started.push(listener);
    } catch (error) {
      if (!(error instanceof AddressInUse)) throw error;
    }
  }
  return async () => {
    await Promise.all(started.map((listener) => listener.stop()));
  };
}
