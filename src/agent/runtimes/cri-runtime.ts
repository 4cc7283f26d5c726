import { credentials, makeGenericClientConstructor, status, type ServiceError } from '@grpc/grpc-js';
import type { RuntimeServiceClient } from '../../rpc/gen/runtime/v1/RuntimeService.js';
import type { Container__Output } from '../../rpc/gen/runtime/v1/Container.js';
import { criProto } from '../../rpc/proto.js';
import { callUnary } from '../../rpc/unary.js';
import {
  podOf,
  queryLabels,
  RuntimeError,
  type CdiConfiguration,
  type Container,
  type ContainerQuery,
  type ContainerRuntime,
  type ContainerState,
  type InspectedContainer,
  type RuntimeVersion,
} from './container.js';

/** Versions of the protocol, newest first. Their messages have the same fields; only the service's name differs. */
const CRI_VERSIONS = ['v1', 'v1alpha2'] as const;
export type CriVersion = (typeof CRI_VERSIONS)[number];

export interface CriOptions {
  readonly timeoutMs?: number;
  /** Versions to try, in order. */
  readonly versions?: readonly CriVersion[];
}

const STATES: Readonly<Record<string, ContainerState>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
};

/** A client of the Kubernetes container runtime interface at `endpoint`: containerd, cri-o and others. */
export class CriRuntime implements ContainerRuntime {
  readonly endpoint: string;
  readonly #client: RuntimeServiceClient;
  readonly #protocol: CriVersion;
  readonly #timeoutMs: number;

  private constructor(endpoint: string, protocol: CriVersion, timeoutMs: number) {
    this.endpoint = endpoint;
    this.#protocol = protocol;
    this.#timeoutMs = timeoutMs;
    this.#client = createClient(endpoint, protocol);
  }

  /** Negotiates a version with the runtime; rejects with a {@link RuntimeError} if it supports none. */
  static async connect(endpoint: string, options: CriOptions = {}): Promise<CriRuntime> {
    let refusal: unknown;
    for (const protocol of options.versions ?? CRI_VERSIONS) {
      const runtime = new CriRuntime(endpoint, protocol, options.timeoutMs ?? 5_000);
      try {
        await runtime.version();
        return runtime;
      } catch (error) {
        runtime.close();
        refusal = error;
        if (!(error instanceof RuntimeError && error.code === 'refused')) break;
      }
    }
    throw refusal;
  }

  async version(): Promise<RuntimeVersion> {
    const answer = await this.#call('Version', { version: '0.1.0' });
    return { name: answer.runtime_name, version: answer.runtime_version, protocol: `cri-${this.#protocol}` };
  }

  async cdi(): Promise<CdiConfiguration> {
    const { info } = await this.#call('Status', { verbose: true });
    return cdiIn(Object.values(info));
  }

  async list(query: ContainerQuery = {}): Promise<Container[]> {
    const answer = await this.#call('ListContainers', { filter: { label_selector: queryLabels(query) } });
    return answer.containers.map(translate);
  }

  async inspect(containerId: string): Promise<InspectedContainer | null> {
    try {
      const answer = await this.#call('ContainerStatus', { container_id: containerId, verbose: true });
      if (answer.status === null) return null;
      const container = translate(answer.status);
      return { ...container, pid: container.state === 'running' ? pidIn(answer.info) : null };
    } catch (error) {
      const cause = error instanceof RuntimeError ? (error.cause as Partial<ServiceError>) : {};
      if (cause.code === status.NOT_FOUND) return null;
      throw error;
    }
  }

  close(): void {
    this.#client.close();
  }

  /** Calls a method of the service; gRPC errors become RuntimeErrors. */
  async #call<Name extends 'Version' | 'Status' | 'ListContainers' | 'ContainerStatus'>(
    name: Name,
    request: Parameters<typeof callUnary<RuntimeServiceClient, Name>>[2],
  ) {
    try {
      const answer = await callUnary(this.#client, name, request, this.#timeoutMs);
      if (answer === undefined) throw new Error('an empty answer');
      return answer as NonNullable<typeof answer>;
    } catch (error) {
      throw new RuntimeError(errorCode(error), this.endpoint, error);
    }
  }
}

/** The fields of containerd's configuration, in one of the texts. */
function cdiIn(texts: readonly string[]): CdiConfiguration {
  for (const text of texts) {
    try {
      const { enableCDI, cdiSpecDirs } = JSON.parse(text) as { enableCDI?: unknown; cdiSpecDirs?: unknown };
      if (typeof enableCDI !== 'boolean' && !Array.isArray(cdiSpecDirs)) continue;
      return {
        enabled: typeof enableCDI === 'boolean' ? enableCDI : null,
        directories: Array.isArray(cdiSpecDirs) ? cdiSpecDirs.map(String) : null,
      };
    } catch {
      // Other runtimes write other formats.
    }
  }
  return { enabled: null, directories: null };
}

/**
 * containerd's answer while it starts and its socket already accepts calls; there is no specific gRPC status for it.
 */
const STARTING = /not initialized yet/;

function errorCode(error: unknown): RuntimeError['code'] {
  const { code, details } = error as Partial<ServiceError>;
  if (code === status.UNKNOWN && STARTING.test(details ?? '')) return 'unavailable';
  switch (code) {
    case status.UNAVAILABLE:
    case status.CANCELLED:
      return 'unavailable';
    case status.DEADLINE_EXCEEDED:
      return 'timeout';
    default:
      return 'refused';
  }
}

function createClient(endpoint: string, version: CriVersion): RuntimeServiceClient {
  const { service } = criProto().runtime.v1.RuntimeService;
  const methods = Object.entries(service).map(
    ([name, method]) =>
      [name, { ...method, path: method.path.replace('/runtime.v1.', `/runtime.${version}.`) }] as const,
  );
  const Client = makeGenericClientConstructor(Object.fromEntries(methods), 'RuntimeService');
  const client = new Client(`unix:${endpoint}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': 16 << 20,
    // A separate pool: a new client must not inherit the back-off of one that failed.
    'grpc.use_local_subchannel_pool': 1,
  });
  return client as unknown as RuntimeServiceClient;
}

function translate(
  container: Pick<Container__Output, 'id' | 'metadata' | 'state' | 'created_at' | 'labels'>,
): Container {
  return {
    id: container.id,
    name: container.metadata?.name ?? '',
    pod: podOf(container.labels),
    labels: container.labels,
    state: STATES[container.state] ?? 'unknown',
    attempt: container.metadata?.attempt ?? 0,
    createdAtMs: Math.floor(Number(container.created_at) / 1e6),
  };
}

/** In verbose mode containerd and cri-o add a JSON document under `info` with the pid of the first process. */
function pidIn(info: Readonly<Record<string, string>>): number | null {
  try {
    const { pid } = JSON.parse(info['info'] ?? '{}') as { pid?: unknown };
    return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    // Verbose information has no schema, so the pid may be missing.
    return null;
  }
}
