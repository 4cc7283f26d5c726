import { request, type Agent } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

/** Longest wait for a service. */
const LONGEST_MS = 240_000;
const BETWEEN_MS = 100;

/** Resolves when the webhooks at this port of the loopback interface are ready; rejects if they never are. */
export async function whenReady(port: number, agent: Agent): Promise<void> {
  const until = performance.now() + LONGEST_MS;
  while (performance.now() < until) {
    const isReady = await new Promise<boolean>((resolve) => {
      request({ host: '127.0.0.1', port, path: '/readyz', agent }, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      })
        .on('error', () => resolve(false))
        .end();
    });
    if (isReady) return;
    await delay(BETWEEN_MS);
  }
  throw new Error('the quota service did not become ready');
}
