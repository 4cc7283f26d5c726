import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { systemClock } from '../../src/host/clock.js';
import { KubeClient } from '../../src/kube/client.js';
import { kubeconfigCredentials, type Credentials } from '../../src/kube/credentials.js';
import type { KubeApi } from '../../src/kube/client.js';
import { ApiServer, type ApiServerOptions } from '../harness/api-server/api-server.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { eventually } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';

const repository = fileURLToPath(new URL('../../../', import.meta.url));

/** Objects of a file of this repository. */
export function manifestsOf(path: string): readonly KubeObject[] {
  return parseAllDocuments(readFileSync(`${repository}${path}`, 'utf8')).map(
    (document) => document.toJS() as KubeObject,
  );
}

export const CRDS = manifestsOf('etc/quota/crds.yaml');

/** A programmable API server with the engine's resources. */
export async function quotaServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const server = new ApiServer(options);
  await server.start();
  for (const definition of CRDS) server.seed('customresourcedefinitions', definition);
  return server;
}

/** Plain HTTP without credentials. */
function openAccess(url: string): Credentials {
  const agent = new Agent({ keepAlive: true });
  return {
    server: new URL(url),
    access: async () => ({ agent, headers: {} }),
    distrust: () => undefined,
    close: () => agent.destroy(),
  };
}

export function clientTo(url: string): KubeClient {
  const timeoutMs = timeLimit(60_000);
  return new KubeClient({ credentials: openAccess(url), clock: systemClock, userAgent: 'test', timeoutMs });
}

/** A real API server and its client, if `KUBECONFIG_E2E` names one. */
export const REAL_KUBECONFIG = process.env.KUBECONFIG_E2E;

export async function realClient(): Promise<KubeClient> {
  return new KubeClient({
    credentials: await kubeconfigCredentials(REAL_KUBECONFIG ?? '', systemClock),
    clock: systemClock,
    userAgent: 'gpu-manager/test',
  });
}

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Creates the engine's resource definitions on a real API server, and waits until it serves them. */
export async function installDefinitions(api: KubeApi): Promise<void> {
  for (const definition of CRDS) {
    await api.request({ method: 'POST', path: DEFINITIONS, body: definition });
    const { group, names } = definition.spec as { readonly group: string; readonly names: { readonly plural: string } };
    await eventually(
      async () => (await api.request({ method: 'GET', path: `/apis/${group}/v1/${names.plural}` })).ok,
      `${names.plural} to be served`,
    );
  }
}

/** Deletes all objects of a collection. */
export async function emptied(api: KubeApi, collection: string): Promise<void> {
  await api.request({ method: 'DELETE', path: collection });
}
