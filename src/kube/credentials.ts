import { readFile } from 'node:fs/promises';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../host/clock.js';

/** Server and credentials of a request. */
export interface Access {
  readonly agent: HttpAgent | HttpsAgent;
  readonly headers: Readonly<Record<string, string>>;
  /** Makes connections without a client certificate, for callers with a token of their own; absent if it cannot. */
  readonly plainAgent?: HttpAgent | HttpsAgent;
}

/** Access to one API server. Tokens and certificates change, so it is read before every request. */
export interface Credentials {
  /** Base URL, with a path if the server is behind a proxy that needs one. */
  readonly server: URL;
  /** Rejects if the credentials cannot be read. */
  access(): Promise<Access>;
  /** The server refused them: they are read again for the next request. */
  distrust(): void;
  close(): void;
}

/**
 * Idle time after which the peer of a connection is probed. HTTP agents and requests set the same value, because
 * otherwise each of them changes it.
 */
export const KEEP_ALIVE_MS = 15_000;

/** Bound tokens are replaced well before they expire; the kubelet writes the new one into the same file. */
const REREAD_MS = 60_000;

export interface InClusterOptions {
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory?: string;
}

/**
 * The service account of the pod that the program runs in. Read without the Kubernetes client library, which would cost
 * 70 MB of memory for two files. Rejects outside a pod.
 */
export async function inClusterCredentials(options: InClusterOptions): Promise<Credentials> {
  const directory = options.directory ?? '/var/run/secrets/kubernetes.io/serviceaccount';
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = options.environment;
  if (host === undefined || port === undefined)
    throw new Error(
      'not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; give --kubeconfig or --standalone',
    );
  const server = new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`);
  const agents = new Agents();
  const read = async (): Promise<Access> => {
    const [token, ca] = await Promise.all([
      readFile(join(directory, 'token'), 'utf8'),
      readFile(join(directory, 'ca.crt'), 'utf8'),
    ]);
    const agent = agents.for(ca, () => new HttpsAgent({ ca, keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS }));
    return { agent, headers: { authorization: `Bearer ${token.trim()}` }, plainAgent: agent };
  };
  const source = rereading(read, options.clock);
  await source.access();
  return { server, ...source, close: () => agents.close() };
}

/** A context of kubeconfig files, with the namespace that it names. */
export interface KubeconfigContext extends Credentials {
  /** Null if the context names none. */
  readonly namespace: string | null;
}

/**
 * A context of a kubeconfig, the current one if none is named, with all authentication of the Kubernetes client
 * library: certificates, tokens, exec plugins, OIDC, proxies. Of several files, the first that has a name defines it,
 * as in kubectl. The library is loaded only here. Rejects if a file is invalid.
 */
export async function kubeconfigCredentials(
  files: string | readonly string[],
  clock: Clock,
  context: string | null = null,
): Promise<KubeconfigContext> {
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  const [path = '', ...others] = [files].flat();
  const config = new KubeConfig();
  config.loadFromFile(path);
  for (const file of others) {
    const other = new KubeConfig();
    other.loadFromFile(file);
    for (const cluster of other.clusters) if (config.getCluster(cluster.name) === null) config.addCluster(cluster);
    for (const user of other.users) if (config.getUser(user.name) === null) config.addUser(user);
    for (const each of other.contexts) if (config.getContextObject(each.name) === null) config.addContext(each);
    // The library's text for a file without a current context.
    if ((config.getCurrentContext() ?? '') === '') config.setCurrentContext(other.getCurrentContext());
  }
  if (context !== null) {
    const names = config.getContexts().map(({ name }) => name);
    if (!names.includes(context)) throw new Error(`no context "${context}"; there are ${names.join(', ') || 'none'}`);
    config.setCurrentContext(context);
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error(`${path}: no current context`);
  const server = new URL(cluster.server);
  const agents = new Agents();
  const read = async (): Promise<Access> => {
    const applied: Applied = { headers: {} };
    await config.applyToHTTPSOptions(applied);
    const { headers, auth, agent: made, ...certificates } = applied;
    const agent = agents.for(JSON.stringify(certificates), () => {
      if (!(made instanceof HttpAgent)) throw new Error(`${path}: no connection to ${server.href}`);
      return kept(made);
    });
    const basic: Record<string, string> =
      auth === undefined ? {} : { authorization: `Basic ${Buffer.from(auth).toString('base64')}` };
    return { agent, headers: { ...headers, ...basic }, ...withoutCertificate(agent) };
  };
  const source = rereading(read, clock);
  await source.access();
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace ?? null;
  return { server, namespace, ...source, close: () => agents.close() };
}

/**
 * The library's agents open a connection per request: replaces them by an equal agent that keeps connections, except
 * for proxies.
 */
function kept(agent: HttpAgent): Access['agent'] {
  if (agent.constructor === HttpsAgent)
    return new HttpsAgent({ ...(agent as HttpsAgent).options, keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS });
  return agent.constructor === HttpAgent ? new HttpAgent({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS }) : agent;
}

/** An agent that trusts the same servers and opens a connection per request, without a certificate of its own. */
function withoutCertificate(agent: Access['agent']): Pick<Access, 'plainAgent'> {
  if (agent.constructor === HttpAgent) return { plainAgent: agent };
  if (agent.constructor !== HttpsAgent) return {};
  const { ca, rejectUnauthorized, servername } = agent.options;
  return { plainAgent: new HttpsAgent({ ca, rejectUnauthorized, servername }) };
}

/** Values that the library sets: headers, an agent, and the agent's certificates. */
interface Applied {
  headers: Record<string, string>;
  auth?: string;
  agent?: unknown;
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
}

/**
 * One agent for each set of certificates. An older one keeps its open connections, including watches, until they end.
 */
class Agents {
  readonly #made = new Set<Access['agent']>();
  #current: { readonly certificates: string; readonly agent: Access['agent'] } | null = null;

  for(certificates: string, make: () => Access['agent']): Access['agent'] {
    if (this.#current?.certificates === certificates) return this.#current.agent;
    const agent = make();
    this.#made.add(agent);
    this.#current = { certificates, agent };
    return agent;
  }

  close(): void {
    for (const agent of this.#made) agent.destroy();
  }
}

/** Caches the result of `read` for a minute, or until the server refuses it; concurrent callers share one read. */
function rereading(read: () => Promise<Access>, clock: Clock): Pick<Credentials, 'access' | 'distrust'> {
  let current: Promise<Access> | null = null;
  let readAt = 0;
  return {
    access() {
      if (current !== null && clock.now() - readAt < REREAD_MS) return current;
      readAt = clock.now();
      current = read();
      current.catch(() => (current = null));
      return current;
    },
    distrust: () => (current = null),
  };
}
