import type { Clock } from '../host/clock.js';
import type { AgentPod } from '../kube/agent-pods.js';
import type { AgentReader } from '../kube/agent-reader.js';
import { list, record, text, type JsonRecord } from '../kube/json.js';
import type { Scope } from './scope.js';

/** The pod and the port of a node's agent. */
export type AgentPlace = Pick<AgentPod, 'namespace' | 'name' | 'scheme' | 'port'>;

/** The document of a node's agent, or why there is none. */
export type NodeDocument =
  | { readonly ok: true; readonly document: JsonRecord; readonly agent: AgentPlace }
  | { readonly ok: false; readonly reason: string };

/** One answer of an agent serves all readers within this time. */
const DOCUMENT_MS = 1_000;
const MAX_DOCUMENTS = 256;

export interface NodeDocumentsOptions {
  readonly reader: Pick<AgentReader, 'read'>;
  /** The agent of a node; null without one. */
  readonly agentOf: (node: string) => AgentPod | null;
  readonly clock: Clock;
}

/** Reads the documents of agents through the API server's proxy, on demand. */
export class NodeDocuments {
  readonly #options: NodeDocumentsOptions;
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
    return read.ok ? { ...read, document: shownTo(scope, read.document) } : read;
  }

  async #fetch(node: string): Promise<NodeDocument> {
    const agent = this.#options.agentOf(node);
    if (agent === null) return { ok: false, reason: `no agent runs on ${node}` };
    const answer = await this.#options.reader.read(agent, '/api/node');
    if (!answer.ok) return { ok: false, reason: answer.message };
    const document = record(answer.body);
    const { namespace, name, scheme, port } = agent;
    return Array.isArray(document.gpus) && Array.isArray(document.allocations)
      ? { ok: true, document, agent: { namespace, name, scheme, port } }
      : { ok: false, reason: `the agent ${name} answered with something else than the document of a node` };
  }
}

/** The document without containers of namespaces that the reader does not see. */
function shownTo({ tables }: Scope, document: JsonRecord): JsonRecord {
  const namespaces = tables.get('pods');
  const allocations = list(document.allocations)
    .map(record)
    .filter(({ owners }) => {
      const named = list(owners).map((owner) => text(record(owner).namespace));
      return (
        namespaces === null || (named.length > 0 && named.every((namespace) => namespaces?.has(namespace) === true))
      );
    });
  return { ...document, allocations };
}
