import { systemClock } from '../host/clock.js';
import type { Part } from '../host/lifecycle.js';
import type { Log } from '../host/log.js';
import { packageFile } from '../host/package-files.js';
import { StartupError } from '../host/startup-error.js';
import { VERSION } from '../host/version.js';
import { CertificateFiles } from '../http/certificate-files.js';
import { isLoopback } from '../http/loopback.js';
import { SelfSigned } from '../http/self-signed.js';
import type { TlsSource } from '../http/tls.js';
import { AgentReader } from '../kube/agent-reader.js';
import { openKubeClient } from '../kube/open-client.js';
import type { Kubeconfig } from '../kube/operators-kubeconfig.js';
import { watchableApi } from '../kube/watchable-api.js';
import { readPageFiles } from '../page/page-files.js';
import { ClusterFeed } from './cluster-feed.js';
import { ClusterModel } from './cluster-model.js';
import { ClusterUse } from './cluster-use.js';
import { ClusterWatch } from './cluster-watch.js';
import { ConsoleServer } from './console-server.js';
import { Explanations } from './explanations.js';
import { History } from './history.js';
import { NodeDocuments } from './node-documents.js';
import { Prometheus, type PrometheusOptions } from './prometheus.js';
import { ClusterReaders, openReaders } from './readers.js';
import { Shapes, type ShapesOptions } from './shapes.js';
import { Usage } from './usage.js';

export interface ConsoleConfig {
  readonly address: string;
  readonly port: number;
  /** Null: the service account of the pod that the console runs in. */
  readonly kubeconfig: Kubeconfig | null;
  /** Whether readers need a token of the cluster and see what their rights allow. */
  readonly tokenReview: boolean;
  /** Files of the certificate; null: none is given. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Name of the cluster on the page. */
  readonly clusterName: string;
  /** Namespace of the agents. */
  readonly agentNamespace: string;
  /** Null: no history. */
  readonly prometheus: PrometheusOptions | null;
  /** Whether the cluster is simulated, so that everybody may see it on any address. */
  readonly isSimulated?: boolean;
}

/** Folder of the console's page; it uses the shared parts of src/page. */
const CONSOLE_PAGE = packageFile('src/console/page/');

/** The composition root of `gpu-manager console`: the parts in the order in which they start. */
export async function buildConsole(
  config: ConsoleConfig,
  log: Log,
  readLedger: ShapesOptions['readLedger'],
): Promise<{ readonly parts: readonly Part[]; readonly port: () => number }> {
  const { address, port, tokenReview, isSimulated = false } = config;
  if (!tokenReview && !isLoopback(address) && !isSimulated)
    throw new StartupError(
      `--no-token-review shows the whole cluster to everybody who reaches ${address}; use it with a loopback address such as 127.0.0.1`,
    );
  const clock = systemClock;
  const client = await openKubeClient(config.kubeconfig, clock);
  const api = watchableApi(client, clock, log);
  const model = new ClusterModel();
  const watch = new ClusterWatch(api, clock, model, config.agentNamespace);
  const feed = new ClusterFeed({
    ...{ model, clock, log },
    state: () => ({
      ...{ version: VERSION, cluster: config.clusterName, late: watch.late, absent: watch.absent },
      history: config.prometheus !== null,
    }),
  });
  const reader = new AgentReader({ api: client, clock });
  const use = new ClusterUse({ reader, model, isWatched: () => feed.readers > 0, clock });
  const prometheus = config.prometheus === null ? null : new Prometheus(config.prometheus);
  const usage = new Usage({ reader, model, prometheus, clock });
  const namespaces = (): ReturnType<ClusterModel['namespaces']> => {
    const present = model.namespaces();
    return new Map([...present, ['pods', new Set([...(present.get('pods') ?? []), ...usage.namespaces])]]);
  };
  const server = new ConsoleServer({
    ...{ address, port, model, feed, usage, log },
    documents: new NodeDocuments({
      ...{ reader, clock },
      agentOf: (node) => model.agentOf(node),
    }),
    explanations: new Explanations({ api: client, clock }),
    shapes: new Shapes({ api: client, clock, readLedger }),
    history: prometheus === null ? null : new History({ prometheus, model, clock }),
    readers: tokenReview ? new ClusterReaders(client, clock, namespaces) : openReaders(client),
    notReady: () => (watch.synced ? [] : ['the cluster has not been listed yet']),
    page: await readPageFiles(CONSOLE_PAGE),
    certificate: await certificateOf(config, log),
  });
  const parts: Part[] = [
    { name: 'api-client', start: async () => undefined, stop: async () => client.close() },
    { name: 'watches', start: async () => watch.start(), stop: () => watch.stop() },
    {
      name: 'console',
      start: async () => {
        await server.start();
        log.info(
          {
            address,
            port: server.port,
            tls: config.tls !== null || !isLoopback(address),
            tokenReview,
            version: VERSION,
          },
          'the console started',
        );
      },
      stop: () => server.stop(),
    },
    { name: 'use', start: async () => use.start(), stop: async () => use.stop() },
  ];
  return { parts, port: () => server.port };
}

/** Tokens never travel in plain text: on other addresses than loopback, the console makes a certificate for itself. */
async function certificateOf({ tls, address, isSimulated }: ConsoleConfig, log: Log): Promise<TlsSource | null> {
  const clock = systemClock;
  if (tls === null)
    return isLoopback(address) || isSimulated === true ? null : new SelfSigned({ names: ['gpu-console'], clock, log });
  const files = new CertificateFiles({ ...tls, clientCaFile: null, clock, log });
  await files.read().catch((error: unknown) => {
    throw new StartupError(`the TLS certificate cannot be used: ${(error as Error).message}`);
  });
  return files;
}
