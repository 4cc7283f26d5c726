import type Docker from 'dockerode';
import { systemClock } from '../../host/clock.js';
import { within } from '../../host/within.js';
import {
  LABEL,
  podOf,
  queryLabels,
  RuntimeError,
  type Container,
  type ContainerQuery,
  type ContainerRuntime,
  type ContainerState,
  type InspectedContainer,
  type RuntimeVersion,
} from './container.js';

/** Label by which cri-dockerd, and the kubelet before 1.24, mark a pod's sandbox. */
const TYPE_LABEL = 'io.kubernetes.docker.type';
const SANDBOX = 'podsandbox';
const RESTARTS_LABEL = 'annotation.io.kubernetes.container.restartCount';

const CONTAINER_ID = /^[0-9a-f]{12,64}$/;

const STATES: Readonly<Record<string, ContainerState>> = {
  created: 'created',
  running: 'running',
  paused: 'running',
  restarting: 'created',
  removing: 'exited',
  exited: 'exited',
  dead: 'exited',
};

/** A docker daemon at `endpoint`. */
export class DockerRuntime implements ContainerRuntime {
  readonly endpoint: string;
  readonly #docker: Docker;
  readonly #timeoutMs: number;

  private constructor(endpoint: string, docker: Docker, timeoutMs: number) {
    this.endpoint = endpoint;
    this.#docker = docker;
    this.#timeoutMs = timeoutMs;
  }

  /** Rejects with a {@link RuntimeError} if no docker daemon answers there. */
  static async connect(endpoint: string, options: { readonly timeoutMs?: number } = {}): Promise<DockerRuntime> {
    // Loaded on demand: it takes 200 ms and 23 MB, which nodes without docker save.
    const { default: Client } = await import('dockerode');
    const timeoutMs = options.timeoutMs ?? 5_000;
    // dockerode's own time limit closes the connection with the same error as a daemon that died, so the time limit of
    // the agent must expire first.
    const runtime = new DockerRuntime(
      endpoint,
      new Client({ socketPath: endpoint, timeout: timeoutMs + 1_000 }),
      timeoutMs,
    );
    await runtime.version();
    return runtime;
  }

  async version(): Promise<RuntimeVersion> {
    const { Version } = await this.#call(() => this.#docker.version());
    return { name: 'docker', version: Version, protocol: 'docker' };
  }

  async list(query: ContainerQuery = {}): Promise<Container[]> {
    const label = Object.entries(queryLabels(query)).map(([key, value]) => `${key}=${value}`);
    const containers = await this.#call(() => this.#docker.listContainers({ all: true, filters: { label } }));
    return containers
      .filter(({ Labels }) => Labels[TYPE_LABEL] !== SANDBOX)
      .map(({ Id, Names, Labels, State, Created }) =>
        translate({ id: Id, name: Names[0] ?? '', labels: Labels, state: State, createdAtMs: Created * 1000 }),
      );
  }

  async inspect(containerId: string): Promise<InspectedContainer | null> {
    // The daemon would also accept a name, or treat the part after a slash as another method.
    if (!CONTAINER_ID.test(containerId)) return null;
    try {
      const { Id, Name, Config, State, Created } = await this.#call(() =>
        this.#docker.getContainer(containerId).inspect(),
      );
      if (Config.Labels[TYPE_LABEL] === SANDBOX) return null;
      const container = translate({
        id: Id,
        name: Name,
        labels: Config.Labels,
        state: State.Status,
        createdAtMs: Date.parse(Created),
      });
      return { ...container, pid: container.state === 'running' && State.Pid > 0 ? State.Pid : null };
    } catch (error) {
      if (error instanceof RuntimeError && statusOf(error.cause) === 404) return null;
      throw error;
    }
  }

  close(): void {
    // No connection to close: every request opens its own.
  }

  async #call<T>(request: () => Promise<T>): Promise<T> {
    const late = () => new TimeLimit(`no answer within ${this.#timeoutMs} ms`);
    try {
      return await within(request(), this.#timeoutMs, systemClock, late);
    } catch (error) {
      const code = error instanceof TimeLimit ? 'timeout' : statusOf(error) === undefined ? 'unavailable' : 'refused';
      throw new RuntimeError(code, this.endpoint, error);
    }
  }
}

class TimeLimit extends Error {}

function statusOf(error: unknown): number | undefined {
  return (error as { statusCode?: number }).statusCode;
}

interface Described {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: string;
  readonly createdAtMs: number;
}

function translate({ id, name, labels, state, createdAtMs }: Described): Container {
  return {
    id,
    name: labels[LABEL.containerName] ?? name.replace(/^\//, ''),
    pod: podOf(labels),
    labels,
    state: STATES[state] ?? 'unknown',
    attempt: Number(labels[RESTARTS_LABEL] ?? 0) || 0,
    createdAtMs,
  };
}
