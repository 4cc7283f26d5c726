import { credentials } from '@grpc/grpc-js';
import type { JournalEntry } from '../agent/node/journal.js';
import type { ProcessDocument } from '../agent/node/process-document.js';
import type { NodeSnapshot } from '../agent/node/view.js';
import { float } from '../agent/display/gateway-json.js';
import { displayProto, nodeProto } from '../rpc/proto.js';
import { callUnary } from '../rpc/unary.js';

const TIMEOUT_MS = 5_000;

/** An agent that starts again is found within a second, and not within two minutes. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 500, 'grpc.max_reconnect_backoff_ms': 1_000 };

/** A client of this node's agent. Rejects with grpc-js's ServiceError if the agent does not answer. */
export class NodeClient {
  readonly #display;
  readonly #node;

  constructor(socketPath: string) {
    const { GPUDisplay } = displayProto().display;
    const { Node } = nodeProto().vgpu;
    this.#display = new GPUDisplay(`unix:${socketPath}`, credentials.createInsecure(), RECONNECT);
    this.#node = new Node(`unix:${socketPath}`, credentials.createInsecure(), RECONNECT);
  }

  async graph(extended: boolean): Promise<string> {
    const answer = extended
      ? await callUnary(this.#node, 'Graph', {}, TIMEOUT_MS)
      : await callUnary(this.#display, 'PrintGraph', {}, TIMEOUT_MS);
    return answer?.graph ?? '';
  }

  /** By pod UID, as in the original's answer. */
  async usages(): Promise<object> {
    return shortest((await callUnary(this.#display, 'PrintUsages', {}, TIMEOUT_MS))?.usage ?? {});
  }

  async version(): Promise<string> {
    return (await callUnary(this.#display, 'Version', {}, TIMEOUT_MS))?.version ?? '';
  }

  async snapshot(): Promise<NodeSnapshot> {
    return JSON.parse((await callUnary(this.#node, 'Show', {}, TIMEOUT_MS)).json) as NodeSnapshot;
  }

  async processes(allocation: string): Promise<ProcessDocument> {
    return JSON.parse((await callUnary(this.#node, 'Processes', { allocation }, TIMEOUT_MS)).json) as ProcessDocument;
  }

  /** Events with a higher number, oldest first. */
  async events(after: number): Promise<readonly JournalEntry[]> {
    const { json } = await callUnary(this.#node, 'Events', { after }, TIMEOUT_MS);
    return (JSON.parse(json) as { readonly events: readonly JournalEntry[] }).events;
  }

  close(): void {
    this.#display.close();
    this.#node.close();
  }
}

/** A message with its 32 bit floats as the decimals that the HTTP service prints: 0.3, and not 0.30000001192092896. */
function shortest<T>(value: T): T {
  if (typeof value === 'number') return Number(float(value)) as T;
  if (Array.isArray(value)) return value.map(shortest) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, shortest<unknown>(entry)])) as T;
}
