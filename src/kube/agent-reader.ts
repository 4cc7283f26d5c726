import type { Clock } from '../host/clock.js';
import { FORWARDED_TOKEN_HEADER } from '../http/token-access.js';
import type { AgentPod } from './agent-pods.js';
import { accountTokenPath, podProxyPath } from './api-path.js';
import type { KubeApi } from './client.js';
import { failure, type KubeFailure } from './failure.js';
import { record, text, time } from './json.js';
import { AGENT_AUDIENCE } from './token-review.js';

/** Service account of the agents' namespace whose tokens may read the agents. */
export const READER_ACCOUNT = 'gpu-manager-reader';

export interface AgentReaderOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
}

export interface ReadOptions {
  readonly query?: Readonly<Record<string, string>>;
  /** Time limit, if it differs from five seconds. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/** Of a document; that of 256 containers has a tenth of it. An agent can be replaced by root of its node. */
const LARGEST_BYTES = 4 << 20;

/** A document of the agent, or why it was not read: `by` names the component that refused. */
export type AgentAnswer =
  { readonly ok: true; readonly body: unknown } | (KubeFailure & { readonly by: 'API server' | 'agent' | 'proxy' });

/** Requested lifetime of a token, the shortest that API servers grant, and the part of it that is not used. */
const TOKEN_SECONDS = 600;
const MARGIN_MS = 60_000;

/**
 * Reads documents of the agents through the API server's proxy to their pods, with tokens that only the agents accept:
 * the proxy removes the reader's own credentials, so that nodes never see them. Never rejects.
 */
export class AgentReader {
  readonly #options: AgentReaderOptions;
  /** By namespace of the agents. */
  readonly #tokens = new Map<string, Token>();

  constructor(options: AgentReaderOptions) {
    this.#options = options;
  }

  /** Gets a path of the agent, such as `/api/node`, as JSON. */
  async read(agent: AgentPod, path: string, { query, timeoutMs }: ReadOptions = {}): Promise<AgentAnswer> {
    if (agent.problem !== '')
      return { ...failure('unreachable', `the agent ${agent.name} is not ready: ${agent.problem}`), by: 'agent' };
    let headers: Readonly<Record<string, string>> = {};
    if (agent.asksForToken) {
      const token = await this.#tokenOf(agent.namespace);
      if (!token.ok) return { ...token, by: 'API server' };
      headers = { [FORWARDED_TOKEN_HEADER]: token.token };
    }
    const answer = await this.#options.api.request({
      method: 'GET',
      path: podProxyPath(agent, path),
      headers,
      timeoutMs: timeoutMs ?? TIMEOUT_MS,
      largestBytes: LARGEST_BYTES,
      query,
    });
    if (answer.ok) return answer;
    if (answer.code === 'unauthorized') this.#tokens.delete(agent.namespace);
    return refusal(agent, path, answer);
  }

  async #tokenOf(namespace: string): Promise<TokenAnswer> {
    const { clock } = this.#options;
    const kept = this.#tokens.get(namespace);
    if (kept !== undefined && clock.now() < kept.untilMs) return kept.answer;
    const token: Token = { untilMs: clock.now() + MARGIN_MS, answer: this.#newToken(namespace) };
    this.#tokens.set(namespace, token);
    const answer = await token.answer;
    if (!answer.ok) this.#tokens.delete(namespace);
    else token.untilMs = (answer.expiresAtMs ?? clock.now() + TOKEN_SECONDS * 1_000) - MARGIN_MS;
    return answer;
  }

  async #newToken(namespace: string): Promise<TokenAnswer> {
    const answer = await this.#options.api.request({
      method: 'POST',
      path: accountTokenPath(namespace, READER_ACCOUNT),
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences: [AGENT_AUDIENCE], expirationSeconds: TOKEN_SECONDS },
      },
    });
    if (!answer.ok) {
      const { code, message } = answer;
      return failure(code, `no token of the service account ${namespace}/${READER_ACCOUNT}: ${message}`);
    }
    const { token, expirationTimestamp } = record(record(answer.body).status);
    return text(token) === ''
      ? failure('malformed', `the API server made no token of ${namespace}/${READER_ACCOUNT}`)
      : { ok: true, token: text(token), expiresAtMs: time(expirationTimestamp) };
  }
}

interface Token {
  untilMs: number;
  readonly answer: Promise<TokenAnswer>;
}

type TokenAnswer = { readonly ok: true; readonly token: string; readonly expiresAtMs: number | null } | KubeFailure;

/** Says what the proxy's answer means: the proxy and the agent answer on the same connection. */
function refusal(agent: AgentPod, path: string, answer: KubeFailure): AgentAnswer {
  const { code, message } = answer;
  const place = `${agent.namespace}/${agent.name}`;
  if (code === 'not-found' && /^not found$/u.test(message))
    return { ...failure(code, `the agent ${place} has no ${path}: it is of another version`), by: 'agent' };
  if (code === 'forbidden' && message.includes('non-resource URL'))
    return { ...failure(code, `the agent ${place} refuses: ${message}`), by: 'agent' };
  if (code === 'unauthorized' && message.includes('a bearer token of this cluster'))
    return { ...failure(code, `the agent ${place} does not know the token: is it of this version?`), by: 'agent' };
  if (code === 'server-error' && message.includes('error trying to reach service'))
    return {
      ...failure(
        'unreachable',
        `the API server does not reach the agent ${place} on port ${agent.port}: ${message.replace(/^.*reach service: /su, '')}; it must listen for others (--query-addr), and network policies must let the API server in`,
      ),
      by: 'proxy',
    };
  return { ...answer, by: 'API server' };
}
