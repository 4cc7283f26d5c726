import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildConsole, type ConsoleConfig } from '../../src/console/run.js';
import { Lifecycle } from '../../src/host/lifecycle.js';
import { readClusterLedger } from '../../src/quota-controller/ledger/cluster-ledger.js';
import { silentLog } from '../../src/host/log.js';
import { ApiServer, type ApiServerOptions } from '../harness/api-server/api-server.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import type { ReviewedAccess } from '../harness/api-server/reviews.js';
import { scratchDirectory } from '../scratch.js';
import { eventually } from '../harness/eventually.js';

interface Scope {
  teardown(action: () => Promise<void>): void;
}

/** Users of the tests: their token is their name. */
const USERS: Readonly<Record<string, (access: ReviewedAccess) => boolean>> = {
  operator: ({ verb }) => verb === 'list',
  // Lists pods of two namespaces, and no nodes.
  researcher: ({ resource, namespace }) => resource === 'pods' && ['research', 'vision'].includes(namespace),
  // Lists nodes, and pods of one namespace.
  lead: ({ resource, namespace }) => resource === 'nodes' || (resource === 'pods' && namespace === 'research'),
  // Lists nodes, and pods nowhere.
  technician: ({ resource }) => resource === 'nodes',
  // Lists pods, events and claims of one namespace.
  scientist: ({ resource, namespace }) =>
    ['pods', 'events', 'resourceclaims'].includes(resource) && namespace === 'research',
  // Lists quota groups alone, and consumers without what the arbitrator decided.
  accountant: ({ group, resource }) =>
    group === 'quota.gpu-manager.io' && ['bizgroupresourcequotas', 'consumers'].includes(resource),
  // Lists pods of one namespace, and may change its workloads.
  owner: ({ verb, resource, namespace }) =>
    namespace === 'research' &&
    (resource === 'pods'
      ? verb === 'list'
      : ['jobs', 'deployments'].includes(resource) && ['get', 'patch'].includes(verb)),
  stranger: () => false,
};

/** An API server that knows the users by their tokens, and decides about each request by their rights. */
export const STRICT: ApiServerOptions = {
  tokens: new Map(['console', ...Object.keys(USERS)].map((name) => [name, name])),
  authorize: (user, { verb, type: { group, plural: resource }, namespace }) =>
    user === 'console'
      ? ['get', 'list', 'watch'].includes(verb)
      : (USERS[user]?.({ verb, group, resource, namespace: namespace ?? '', path: '' }) ?? false),
};

export const REVIEWS: ApiServerOptions['reviews'] = {
  tokens: new Map(Object.keys(USERS).map((name) => [name, name])),
  allows: (user, access) => USERS[user]?.(access) ?? false,
};

export interface RunningConsole {
  readonly base: string;
  readonly server: ApiServer;
  /** A request with the token of a user. */
  get(path: string, user?: string | null, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

/** A console at a programmable API server, that lists everything before it is returned. */
export async function runningConsole(
  t: Scope,
  seed: (server: ApiServer) => void,
  config: Partial<ConsoleConfig> = {},
  options: ApiServerOptions = {},
): Promise<RunningConsole> {
  const server = new ApiServer({ reviews: REVIEWS, ...options });
  await server.start();
  t.teardown(() => server.stop());
  seed(server);
  const file = join(await scratchDirectory(t), 'kubeconfig');
  await writeFile(file, kubeconfig(server, { token: 'console' }));
  const log = silentLog();
  const { parts, port } = await buildConsole(
    {
      address: '127.0.0.1',
      port: 0,
      kubeconfig: { origin: '--kubeconfig', files: [file] },
      tokenReview: true,
      tls: null,
      clusterName: 'test-cluster',
      agentNamespace: 'kube-system',
      prometheus: null,
      ...config,
    },
    log,
    readClusterLedger,
  );
  const lifecycle = new Lifecycle(parts, log);
  await lifecycle.start();
  t.teardown(() => lifecycle.stop());
  const base = `http://127.0.0.1:${port()}`;
  await eventually(async () => (await fetch(`${base}/readyz`)).ok, 'the console has listed the cluster');
  return {
    base,
    server,
    get: (path, user = 'operator', headers = {}) =>
      fetch(`${base}${path}`, {
        headers: { ...headers, ...(user === null ? {} : { authorization: `Bearer ${user}` }) },
      }),
  };
}
