import { realpath, stat } from 'node:fs/promises';
import { RuntimeError, type ContainerRuntime } from './container.js';
import { CriRuntime } from './cri-runtime.js';
import { DockerRuntime } from './docker-runtime.js';

/** The usual sockets of runtimes, the kubelet's own choice first. */
const CRI_ENDPOINTS = [
  '/run/containerd/containerd.sock',
  '/var/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
  '/var/run/crio/crio.sock',
  '/run/k3s/containerd/containerd.sock',
  '/run/k0s/containerd.sock',
  '/run/cri-dockerd.sock',
  '/var/run/cri-dockerd.sock',
];
const DOCKER_ENDPOINTS = ['/run/docker.sock', '/var/run/docker.sock'];

export interface RuntimeOptions {
  /** `--container-runtime-endpoint`: the only CRI socket to use. */
  readonly criEndpoint?: string;
  /** `--docker-endpoint`: the only docker socket to use. */
  readonly dockerEndpoint?: string;
  /** Longest time that a call may take: `--runtime-request-timeout`. */
  readonly timeoutMs?: number;
  /** Sockets to try if neither flag is given. */
  readonly criEndpoints?: readonly string[];
  readonly dockerEndpoints?: readonly string[];
}

export type EndpointResult =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly code: 'no-unix-socket'; readonly reason: string };

/** Reads `unix:///run/x.sock` or a bare path. */
export function parseEndpoint(endpoint: string): EndpointResult {
  const path = endpoint.replace(/^unix:(\/\/)?(?=\/)/, '');
  if (path.startsWith('/')) return { ok: true, path };
  return {
    ok: false,
    code: 'no-unix-socket',
    reason: `${endpoint} is not a unix socket: give a path, or unix:// and a path`,
  };
}

/**
 * Connects to the runtime that the options name, or else to the runtime of this node that runs Kubernetes pods. A node
 * may have several: docker installs its own containerd, and some nodes use docker to build images although their
 * kubelet uses containerd. The runtime with pods is the kubelet's (the agent itself is in one); while none has pods,
 * the first that answers is used. Rejects with a {@link RuntimeError}, whose message lists the tried endpoints.
 */
export async function connectRuntime(options: RuntimeOptions = {}): Promise<ContainerRuntime> {
  const { timeoutMs } = options;
  const connects: { readonly path: string; readonly connect: (path: string) => Promise<ContainerRuntime> }[] = [];
  const cri = (path: string) => connects.push({ path, connect: (at) => CriRuntime.connect(at, { timeoutMs }) });
  const docker = (path: string) => connects.push({ path, connect: (at) => DockerRuntime.connect(at, { timeoutMs }) });
  if (options.criEndpoint !== undefined) cri(pathOf(options.criEndpoint));
  if (options.dockerEndpoint !== undefined) docker(pathOf(options.dockerEndpoint));
  if (connects.length === 0) {
    (await existing(options.criEndpoints ?? CRI_ENDPOINTS)).forEach(cri);
    (await existing(options.dockerEndpoints ?? DOCKER_ENDPOINTS)).forEach(docker);
  }

  const failures: string[] = [];
  const answering: ContainerRuntime[] = [];
  for (const { path, connect } of connects) {
    try {
      answering.push(await connect(path));
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
  }
  const chosen = answering.length > 1 ? await withPods(answering) : answering[0];
  for (const runtime of answering) if (runtime !== chosen) runtime.close();
  if (chosen !== undefined) return chosen;
  throw new RuntimeError(
    'unavailable',
    connects.map(({ path }) => path).join(', ') || 'any known socket',
    failures.join('; ') || 'none of them exists',
  );
}

function pathOf(endpoint: string): string {
  const parsed = parseEndpoint(endpoint);
  if (!parsed.ok) throw new RuntimeError('refused', endpoint, parsed.reason);
  return parsed.path;
}

async function withPods(runtimes: readonly ContainerRuntime[]): Promise<ContainerRuntime | undefined> {
  for (const runtime of runtimes) {
    try {
      if ((await runtime.list()).some((container) => container.pod !== null)) return runtime;
    } catch {
      // The runtime stopped answering; try the next one.
    }
  }
  return runtimes[0];
}

/** The paths that are sockets, each socket once. */
async function existing(paths: readonly string[]): Promise<string[]> {
  const sockets = new Set<string>();
  for (const path of paths) {
    try {
      if ((await stat(path)).isSocket()) sockets.add(await realpath(path));
    } catch {
      // The path does not exist.
    }
  }
  return [...sockets];
}
