import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { issue } from '../../src/kube/admission/webhook-identity.js';
import { until } from '../harness/eventually.js';
import type { TestCluster } from './cluster.js';
import { kubernetesHome } from './kubernetes-version.js';

const PORT = { webhooks: 24_643, health: 24_681, visibility: 24_682 } as const;
/** Kueue reads the certificates of its metrics and of its visibility server here, whatever its configuration says. */
const FIXED = { metrics: '/etc/kueue', visibility: '/visibility' } as const;

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly webhooks?: readonly Webhook[];
  readonly spec?: {
    readonly conversion?: { readonly webhook?: { clientConfig: object } };
  };
}

interface Webhook {
  clientConfig: { readonly service?: { readonly path?: string }; readonly url?: string; readonly caBundle?: string };
}

/** Reason why Kueue cannot run here, or null. */
export function whyNoKueue(cluster: TestCluster): string | null {
  if (!cluster.version.atLeast(30)) return 'Kueue 0.19 needs a newer Kubernetes';
  return existsSync(directory('kueue')) ? null : 'Kueue is not built: run scripts/build-engines kueue';
}

function directory(name: string): string {
  return join(kubernetesHome(), 'engines/kueue', name);
}

/** Kueue's manager as a process beside the cluster: its webhooks and its definitions name it by address. */
export class KueueProcess {
  readonly #cluster: TestCluster;
  readonly #directory: string;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
    this.#directory = join(cluster.directory, 'kueue');
  }

  /** Installs Kueue's manifests and starts it. `more`: further fields of its Configuration. */
  async start(more: object = {}): Promise<void> {
    const at = (name: string): string => join(this.#directory, name);
    const folders = ['webhooks', 'metrics/metrics/certs', 'visibility'];
    for (const name of folders) mkdirSync(at(name), { recursive: true });
    const identity = await issue(['127.0.0.1', 'localhost']);
    for (const name of folders) {
      writeFileSync(at(`${name}/tls.crt`), identity.certificate);
      writeFileSync(at(`${name}/tls.key`), identity.key);
    }
    const rendered = await this.#cluster.kubectl('kustomize', directory('config/default'));
    const manifests = parseAllDocuments(rendered).flatMap((document) =>
      local(document.toJS() as Manifest | null, Buffer.from(identity.authority).toString('base64')),
    );
    writeFileSync(at('manifests.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }));
    await this.#cluster.kubectl('apply', '--server-side', '--force-conflicts', '-f', at('manifests.json'));
    await this.restart(more);
  }

  /** Starts the manager again, with these further fields of its Configuration. */
  async restart(more: object = {}): Promise<void> {
    const at = (name: string): string => join(this.#directory, name);
    const configuration = {
      apiVersion: 'config.kueue.x-k8s.io/v1beta2',
      kind: 'Configuration',
      namespace: 'kueue-system',
      health: { healthProbeBindAddress: `127.0.0.1:${PORT.health}` },
      metrics: { bindAddress: '0' },
      webhook: { port: PORT.webhooks, host: '127.0.0.1', certDir: at('webhooks') },
      visibilityServer: { bindAddress: '127.0.0.1', bindPort: PORT.visibility },
      leaderElection: { leaderElect: false },
      internalCertManagement: { enable: false },
      clientConnection: { qps: 300, burst: 500 },
      integrations: { frameworks: ['batch/job', 'pod'] },
      ...more,
    };
    writeFileSync(at('configuration.yaml'), JSON.stringify(configuration));
    await this.#cluster.processes.stop('kueue');
    for (const folder of Object.values(FIXED)) mkdirSync(folder, { recursive: true });
    // A mount namespace of its own: these folders of the machine stay empty.
    const command = [
      ...Object.entries(FIXED).map(([name, folder]) => `mount --bind ${at(name)} ${folder}`),
      `exec ${directory('kueue')} --config ${at('configuration.yaml')} --kubeconfig ${this.#cluster.kubeconfig} --zap-log-level=2`,
    ].join(' && ');
    this.#cluster.processes.start('kueue', 'unshare', ['-m', '--propagation', 'private', 'sh', '-c', command]);
    await until('Kueue to be ready', async () => (await fetch(`http://127.0.0.1:${PORT.health}/readyz`)).ok, 120_000);
  }

  async stop(): Promise<void> {
    await this.#cluster.processes.stop('kueue');
    for (const folder of Object.values(FIXED)) if (existsSync(folder)) rmdirSync(folder);
  }

  /** Names of the Workloads that wait in a queue, first to last, from Kueue's visibility server. */
  async waitingIn(clusterQueue: string): Promise<readonly string[]> {
    const path = `/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/${clusterQueue}/pendingworkloads`;
    const { users } = JSON.parse(readFileSync(this.#cluster.kubeconfig, 'utf8')) as {
      readonly users: readonly [{ readonly user: { readonly token: string } }];
    };
    const text = await new Promise<string>((resolve, reject) => {
      get(
        {
          host: '127.0.0.1',
          port: PORT.visibility,
          path,
          rejectUnauthorized: false,
          headers: { authorization: `Bearer ${users[0].user.token}` },
        },
        (response) => {
          let body = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
          response.on('end', () =>
            response.statusCode === 200 ? resolve(body) : reject(new Error(`${response.statusCode ?? 0} ${body}`)),
          );
        },
      ).on('error', reject);
    });
    const { items } = JSON.parse(text) as {
      readonly items: readonly {
        readonly metadata: { readonly ownerReferences?: readonly { readonly name: string }[] };
        readonly positionInClusterQueue: number;
      }[];
    };
    return [...items]
      .sort((a, b) => a.positionInClusterQueue - b.positionInClusterQueue)
      .map(({ metadata }) => metadata.ownerReferences?.[0]?.name ?? '');
  }
}

/** A manifest for a manager outside of the cluster; nothing for one of the manager's own objects. */
function local(manifest: Manifest | null, caBundle: string): readonly Manifest[] {
  if (manifest === null) return [];
  if (['Deployment', 'ConfigMap', 'Secret', 'Service', 'APIService'].includes(manifest.kind)) return [];
  const url = `https://127.0.0.1:${PORT.webhooks}`;
  for (const webhook of manifest.webhooks ?? [])
    webhook.clientConfig = { url: `${url}${webhook.clientConfig.service?.path ?? ''}`, caBundle };
  const conversion = manifest.spec?.conversion?.webhook;
  if (conversion !== undefined) conversion.clientConfig = { url: `${url}/convert`, caBundle };
  return [manifest];
}
