import type { Clock } from '../host/clock.js';
import { agentPods, type AgentPod } from '../kube/agent-pods.js';
import type { AgentReader } from '../kube/agent-reader.js';
import type { KubeApi } from '../kube/client.js';
import { KubeError } from '../kube/failure.js';
import { list, record, text, type JsonRecord } from '../kube/json.js';
import type { Scope } from './scope.js';

/** The document of a node's agent, or why there is none. */
export type NodeDocument =
  { readonly ok: true; readonly document: JsonRecord } | { readonly ok: false; readonly reason: string };

/** The list of agents is read again after this. */
const AGENTS_MS = 15_000;
/** One answer of an agent serves all readers within this time. */
const DOCUMENT_MS = 1_000;
const MAX_DOCUMENTS = 256;

export interface NodeDocumentsOptions {
  readonly api: KubeApi;
  readonly reader: Pick<AgentReader, 'read'>;
  readonly clock: Clock;
}

/** Reads the documents of agents through the API server's proxy, on demand. */
export class NodeDocuments {
  readonly #options: NodeDocumentsOptions;
  #agents: { readonly untilMs: number; readonly found: Promise<ReadonlyMap<string, AgentPod>> } | null = null;
  readonly #documents = new Map<string, { readonly untilMs: number; readonly document: Promise<NodeDocument> }>();

  constructor(options: NodeDocumentsOptions) {
    this.#options = options;
  }

  /** The document of a node, with the containers that a reader may see. Never rejects. */
  async read(node: string, scope: Scope): Promise<NodeDocument> {
    const now = this.#options.clock.now();
    const kept = this.#documents.get(node);
    const entry =
      kept !== undefined && now < kept.untilMs ? kept : { untilMs: now + DOCUMENT_MS, document: this.#fetch(node) };
    if (entry !== kept) {
      this.#documents.delete(node);
      if (this.#documents.size >= MAX_DOCUMENTS) this.#documents.clear();
      this.#documents.set(node, entry);
    }
    const read = await entry.document;
    return read.ok ? { ok: true, document: shownTo(scope, read.document) } : read;
  }

  async #fetch(node: string): Promise<NodeDocument> {
    try {
      const agent = (await this.#agentsOf()).get(node);
      if (agent === undefined) return { ok: false, reason: `no agent runs on ${node}` };
      const answer = await this.#options.reader.read(agent, '/api/node');
      if (!answer.ok) return { ok: false, reason: answer.message };
      const document = record(answer.body);
      return Array.isArray(document.cards) && Array.isArray(document.allocations)
        ? { ok: true, document }
        : { ok: false, reason: `the agent ${agent.name} answered with something else than the document of a node` };
    } catch (error) {
      if (error instanceof KubeError) return { ok: false, reason: error.message };
      throw error;
    }
  }

  #agentsOf(): Promise<ReadonlyMap<string, AgentPod>> {
    const { api, clock } = this.#options;
    if (this.#agents === null || clock.now() >= this.#agents.untilMs) {
      const found = agentPods(api, null);
      this.#agents = { untilMs: clock.now() + AGENTS_MS, found };
      found.catch(() => (this.#agents = null));
    }
    return this.#agents.found;
  }
}

/** The document without containers of namespaces that the reader does not see. */
function shownTo({ namespaces }: Scope, document: JsonRecord): JsonRecord {
  const allocations = list(document.allocations)
    .map(record)
    .filter(({ owners }) => {
      const named = list(owners).map((owner) => text(record(owner).namespace));
      return namespaces === null || (named.length > 0 && named.every((namespace) => namespaces.has(namespace)));
    });
  return { ...document, allocations };
}
