/** The pod of a container, from the kubelet's labels. */
export interface PodName {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

export type ContainerState = 'created' | 'running' | 'exited' | 'unknown';

/** A container of this node, in the same form for every runtime. */
export interface Container {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** Its name in the pod's spec; for a container without a pod the runtime's name. */
  readonly name: string;
  /** Null for a container that no kubelet started. */
  readonly pod: PodName | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: ContainerState;
  /** How often the kubelet started it before. */
  readonly attempt: number;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
}

/** A container with the host pid of its first process, null if it does not run. */
export interface InspectedContainer extends Container {
  readonly pid: number | null;
}

export interface RuntimeVersion {
  /** Such as `docker`, `containerd`, `cri-o`. */
  readonly name: string;
  readonly version: string;
  /** Protocol spoken: `docker`, `cri-v1` or `cri-v1alpha2`. */
  readonly protocol: string;
}

/** A runtime's configuration of the Container Device Interface; null where the runtime does not tell. */
export interface CdiConfiguration {
  readonly enabled: boolean | null;
  /** Directories in which it looks for specifications. */
  readonly directories: readonly string[] | null;
}

/** Selects containers of a runtime; all given fields must match. */
export interface ContainerQuery {
  readonly podUid?: string;
  readonly namespace?: string;
  readonly podName?: string;
  readonly containerName?: string;
}

/**
 * A container runtime of this node. Every call queries the runtime and rejects with a {@link RuntimeError} if it does
 * not answer. Sandboxes of pods are not listed.
 */
export interface ContainerRuntime {
  /** Path of the socket. */
  readonly endpoint: string;
  version(): Promise<RuntimeVersion>;
  /** Absent for runtimes that cannot be asked. */
  cdi?(): Promise<CdiConfiguration>;
  /** Null if the runtime has no container with that id. */
  inspect(containerId: string): Promise<InspectedContainer | null>;
  list(query?: ContainerQuery): Promise<Container[]>;
  close(): void;
}

export type RuntimeErrorCode =
  /** The socket does not answer, or the connection broke: a retry may succeed. */
  | 'unavailable'
  /** It did not answer in time. */
  | 'timeout'
  /** It answered with an error. */
  | 'refused';

/** The error of a runtime's client, with any cause. */
export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;

  constructor(code: RuntimeErrorCode, endpoint: string, cause: unknown) {
    super(`container runtime at ${endpoint}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'RuntimeError';
    this.code = code;
  }
}

/** Labels that a kubelet gives to each container, through the CRI and through docker. */
export const LABEL = {
  containerName: 'io.kubernetes.container.name',
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
} as const;

/** The labels of a query. */
export function queryLabels(query: ContainerQuery): Record<string, string> {
  const labels = {
    [LABEL.podUid]: query.podUid,
    [LABEL.podNamespace]: query.namespace,
    [LABEL.podName]: query.podName,
    [LABEL.containerName]: query.containerName,
  };
  return Object.fromEntries(
    Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** The pod that a container's labels name. */
export function podOf(labels: Readonly<Record<string, string>>): PodName | null {
  const uid = labels[LABEL.podUid];
  if (uid === undefined) return null;
  return { uid, namespace: labels[LABEL.podNamespace] ?? '', name: labels[LABEL.podName] ?? '' };
}
