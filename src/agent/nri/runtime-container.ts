/** A container in the form in which the runtime passes it to a plugin. Pure: translates messages. */
import type { Container__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/Container.js';
import type { PodSandbox__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/PodSandbox.js';

export interface RuntimeMount {
  readonly destination: string;
  readonly source: string;
  readonly options: readonly string[];
}

export interface RuntimeContainer {
  readonly id: string;
  readonly podSandboxId: string;
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly name: string;
  /** False once it has run and ended. */
  readonly mayRun: boolean;
  /** The last value of each variable. */
  readonly environment: ReadonlyMap<string, string>;
  /** Variables that are set more than once, for example by the kubelet's device plugin and by the pod. */
  readonly repeated: ReadonlySet<string>;
  readonly mounts: readonly RuntimeMount[];
  /** CPUs to which it is bound already, as a list (`0-3,8`); empty: all. */
  readonly cpus: string;
  /** Name of its control group in the form of the OCI specification; empty if the runtime does not tell. */
  readonly cgroupsPath: string;
}

export function runtimeContainer(pod: PodSandbox__Output, container: Container__Output): RuntimeContainer {
  return {
    id: container.id,
    podSandboxId: pod.id,
    podUid: pod.uid,
    namespace: pod.namespace,
    pod: pod.name,
    podAnnotations: pod.annotations,
    name: container.name,
    mayRun: container.state !== 'CONTAINER_STOPPED',
    ...environmentOf(container.env),
    mounts: container.mounts.map(({ destination, source, options }) => ({ destination, source, options })),
    cpus: container.linux?.resources?.cpu?.cpus ?? '',
    cgroupsPath: container.linux?.cgroups_path ?? '',
  };
}

function environmentOf(entries: readonly string[]): Pick<RuntimeContainer, 'environment' | 'repeated'> {
  const environment = new Map<string, string>();
  const repeated = new Set<string>();
  for (const entry of entries) {
    const at = entry.indexOf('=');
    const name = at < 0 ? entry : entry.slice(0, at);
    if (environment.has(name)) repeated.add(name);
    environment.set(name, at < 0 ? '' : entry.slice(at + 1));
  }
  return { environment, repeated };
}
