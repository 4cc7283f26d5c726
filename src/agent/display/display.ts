import { probeListener } from '../../http/probe-listener.js';
import { TokenAccess } from '../../http/token-access.js';
import { displayServer } from './display-server.js';
import { History } from './history.js';
import { HttpServer } from './http-server.js';
import { LiveFeed } from './live-feed.js';
import { nodeMetrics } from './metrics.js';
import { NODE_PAGE } from './node-page.js';
import { readPageFiles } from '../../page/page-files.js';
import type { ProcessDocument, NodeView, NodeRecord, UseRecord } from '../node/index.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { NodeKube } from '../api-server/index.js';
import type { RpcService } from '../../rpc/rpc-server.js';
import { displayTls, type DisplayTlsConfig } from './display-tls.js';
import type { Part } from '../../host/lifecycle.js';

/** The flags of the agent that concern its display. */
export interface DisplayConfig extends DisplayTlsConfig {
  readonly queryAddress: string;
  readonly queryPort: number;
  /** Separate address for `/healthz` and `/readyz`; null: only on the display's address. */
  readonly probes: { readonly address: string; readonly port: number } | null;
  /** Whether HTTP readers of the node's data need a bearer token that the API server authorises. */
  readonly tokenReview: boolean;
  readonly displaySocket: string;
}

export interface DisplayOptions {
  readonly config: DisplayConfig;
  readonly view: NodeView;
  readonly record: NodeRecord;
  readonly use: UseRecord;
  readonly apiServer: NodeKube | null;
  /** The processes of one allocation, for the display's socket. */
  readonly processes: (allocation: string) => Promise<ProcessDocument>;
  /** Further services on the display's socket. */
  readonly services: readonly RpcService[];
  /** Checks the node; null if this process cannot. */
  readonly doctor: (() => Promise<readonly unknown[]>) | null;
  readonly clock: Clock;
  readonly log: Log;
}

/** The operator's interfaces to the agent. */
export interface Display {
  readonly parts: readonly Part[];
  readonly httpPort: () => number;
  /** Null if probes have no separate port. */
  readonly probePort: () => number | null;
}

/** Builds the listeners of the display; they listen when their parts are started. */
export async function openDisplay({
  config,
  view,
  record,
  use,
  apiServer,
  processes,
  services,
  doctor,
  clock,
  log,
}: DisplayOptions): Promise<Display> {
  const { journal } = record;
  const history = new History();
  const http = new HttpServer({
    address: config.queryAddress,
    port: config.queryPort,
    view,
    metrics: nodeMetrics(view, record.times),
    history,
    journal,
    feed: new LiveFeed({ view, history, use, journal, clock, log }),
    use,
    doctor,
    page: () => readPageFiles(NODE_PAGE),
    certificate: displayTls(config, clock, log),
    access:
      config.tokenReview && apiServer !== null
        ? new TokenAccess((token, path) => apiServer.reviewToken(token, path), clock)
        : null,
    log,
  });
  const probes =
    config.probes === null ? null : probeListener({ ...config.probes, notReady: () => view.notReady(), log });
  const socket = displayServer({ socketPath: config.displaySocket, view, journal, processes, others: services });
  return {
    parts: [
      { name: 'display', start: () => socket.start(), stop: () => socket.stop() },
      ...(probes === null ? [] : [{ name: 'probes', start: () => probes.start(), stop: () => probes.stop(0) }]),
      { name: 'http', start: () => http.start(), stop: () => http.stop() },
    ],
    httpPort: () => http.port,
    probePort: () => probes?.port ?? null,
  };
}
