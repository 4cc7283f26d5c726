import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { KubeClient } from '../kube/client.js';
import { ObjectWatch, type WatchTiming } from '../kube/object-watch.js';
import type { WatchableApi } from './api.js';

/** Large clusters have a hundred thousand pods: a page at a time. */
const PAGE_SIZE = 500;

/** The API server as the quota service needs it: our client, and collections followed by our watch. */
export function quotaApi(client: KubeClient, clock: Clock, log: Log, timing: Partial<WatchTiming> = {}): WatchableApi {
  return {
    request: (request) => client.request(request),
    follow: (options) => new ObjectWatch({ client, clock, log, timing, pageSize: PAGE_SIZE, ...options }),
  };
}
