/** A container as the runtime describes it to a plugin. Pure: translates messages. */
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
  /** False once it was created and has ended. */
  readonly mayRun: boolean;
  readonly environment: ReadonlyMap<string, string>;
  readonly mounts: readonly RuntimeMount[];
  /** CPUs that it is bound to already, as a list (`0-3,8`); empty: all. */
  readonly cpus: string;
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
    environment: new Map(
      container.env.map((entry) => {
        const at = entry.indexOf('=');
        return at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)];
      }),
    ),
    mounts: container.mounts.map(({ destination, source, options }) => ({ destination, source, options })),
    cpus: container.linux?.resources?.cpu?.cpus ?? '',
  };
}
