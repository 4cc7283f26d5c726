import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { KubeApi, KubeClient } from './client.js';
import { WatchInformer, type Informer, type InformerOptions, type InformerTiming } from './informer.js';

/** An API client whose collections can be watched. */
export interface WatchableApi extends KubeApi {
  informer<T>(
    options: Pick<
      InformerOptions<T>,
      'path' | 'labelSelector' | 'fieldSelector' | 'pageSize' | 'isMetadataOnly' | 'keep'
    >,
  ): Informer<T>;
}

/** Large clusters have a hundred thousand pods, so lists are read in pages. */
const PAGE_SIZE = 500;

/** Requests and informers of one client. */
export function watchableApi(
  client: KubeClient,
  clock: Clock,
  log: Log,
  timing: Partial<InformerTiming> = {},
): WatchableApi {
  return {
    request: (request) => client.request(request),
    informer: (options) => new WatchInformer({ client, clock, log, timing, pageSize: PAGE_SIZE, ...options }),
  };
}
