import { status } from '@grpc/grpc-js';
import type { Log } from '../../host/log.js';
import type { ConfigureRequest__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/ConfigureRequest.js';
import type { Container__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/Container.js';
import type { ContainerAdjustment } from '../../rpc/gen/nri/pkg/api/v1alpha1/ContainerAdjustment.js';
import type { ContainerRequest__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/ContainerRequest.js';
import type { CreateContainerRequest__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/CreateContainerRequest.js';
import type { LinuxCPU } from '../../rpc/gen/nri/pkg/api/v1alpha1/LinuxCPU.js';
import type { PodSandbox__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/PodSandbox.js';
import type { StateChangeEvent__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/StateChangeEvent.js';
import type { SynchronizeRequest__Output } from '../../rpc/gen/nri/pkg/api/v1alpha1/SynchronizeRequest.js';
import { nriProto } from '../../rpc/proto.js';
import type { RpcHandler } from '../../rpc/grpc-call.js';
import type { RpcService } from '../../rpc/rpc-server.js';
import { RpcRefusal, unary } from '../../rpc/unary.js';
import type { AffinityAnswer } from './cpu-affinity.js';
import { injectionOf, type Injection } from './injection.js';
import type { KnownContainers } from './known-containers.js';
import type { ContainerEvents, ContainerSlices, GivenSlice, KnownContainer, StartGate } from './ports.js';
import { runtimeContainer, type RuntimeContainer } from './runtime-container.js';

export interface PluginServiceOptions {
  readonly slices: ContainerSlices;
  readonly containers: KnownContainers;
  readonly events: ContainerEvents;
  /** The CPUs to which a container is to be bound. */
  readonly affinity: (container: RuntimeContainer, given: GivenSlice) => Promise<AffinityAnswer>;
  /** Absent: none. */
  readonly startGate?: StartGate;
  readonly log: Log;
}

export interface RuntimeFacts {
  readonly name: string;
  readonly version: string;
}

/** Receives the state of one connection. */
export interface ConnectionListener {
  configured(runtime: RuntimeFacts): void;
  synchronized(): void;
}

const maskOf = (events: readonly number[]): number => events.reduce((mask, event) => mask | (1 << (event - 1)), 0);

/** Subscribed events as bits: removal of pods; creation, stop and removal of containers. */
export const WANTED_EVENTS = maskOf([3, 4, 10, 11]);
/** The start of containers. */
export const START_EVENT = maskOf([6]);

/**
 * The Plugin service for one connection to the runtime. Answers come from memory: the runtime calls one plugin after
 * the other while a pod waits, and skips one that does not answer within 2 seconds.
 */
export function pluginService(options: PluginServiceOptions, listener: ConnectionListener): RpcService {
  const { containers, events, log } = options;
  const listed: KnownContainer[] = [];
  const ids = new Set<string>();
  const podsListed = new Map<string, PodSandbox__Output>();
  const failed = (error: unknown): void => log.error({ err: error }, 'a request of the container runtime (NRI) failed');
  const handle = <Request, Response>(
    answer: (request: Request) => Response | Promise<Response>,
  ): RpcHandler<Request, Response> => unary(async (request: Request) => answer(request), failed);
  const removed = (known: KnownContainer | null): void => {
    if (known !== null) events.removed(known);
  };
  const starting = async (container: Container__Output | null): Promise<void> => {
    const known = container === null ? null : containers.get(container.id);
    if (known !== null) await options.startGate?.pass(known.slice);
  };
  const removeSandbox = (podSandboxId: string): void => containers.removeSandbox(podSandboxId).forEach(removed);
  return {
    definition: nriProto().nri.pkg.api.v1alpha1.Plugin.service,
    handlers: {
      Configure: handle(({ runtime_name, runtime_version }: ConfigureRequest__Output) => {
        listener.configured({ name: runtime_name, version: runtime_version });
        return { events: options.startGate?.isNeeded() === true ? WANTED_EVENTS | START_EVENT : WANTED_EVENTS };
      }),
      Synchronize: handle(({ pods, containers: found, more }: SynchronizeRequest__Output) => {
        // A list that is too long for one message is sent in parts; a container's pod is in the same part or an earlier
        // one.
        for (const pod of pods) podsListed.set(pod.id, pod);
        for (const container of found) {
          ids.add(container.id);
          const pod = podsListed.get(container.pod_sandbox_id);
          const known = pod === undefined ? null : containers.found(runtimeContainer(pod, container));
          if (known !== null) listed.push(known);
        }
        if (more) return { update: [], more: true };
        containers.keepOnly(ids).forEach(removed);
        podsListed.clear();
        events.synchronized(listed.splice(0));
        ids.clear();
        listener.synchronized();
        return { update: [], more: false };
      }),
      Shutdown: handle(() => ({})),
      CreateContainer: handle(async ({ pod, container }: CreateContainerRequest__Output) =>
        pod === null || container === null
          ? {}
          : { adjust: await adjustmentOf(runtimeContainer(pod, container), options) },
      ),
      StartContainer: handle(async ({ container }: ContainerRequest__Output) => {
        await starting(container);
        return {};
      }),
      StopContainer: handle(({ container }: ContainerRequest__Output) => {
        const known = container === null ? null : containers.get(container.id);
        if (known !== null) events.stopped(known);
        return { update: [] };
      }),
      RemoveContainer: handle(({ container }: ContainerRequest__Output) => {
        if (container !== null) removed(containers.remove(container.id));
        return {};
      }),
      RemovePodSandbox: handle(({ pod }: ContainerRequest__Output) => {
        if (pod !== null) removeSandbox(pod.id);
        return {};
      }),
      // Runtimes with an NRI before 0.12 report these three events this way.
      StateChange: handle(async ({ event, pod, container }: StateChangeEvent__Output) => {
        if (event === 'START_CONTAINER') await starting(container);
        if (event === 'REMOVE_CONTAINER' && container !== null) removed(containers.remove(container.id));
        if (event === 'REMOVE_POD_SANDBOX' && pod !== null) removeSandbox(pod.id);
        return {};
      }),
    },
  };
}

async function adjustmentOf(
  container: RuntimeContainer,
  { slices, containers, events, affinity, startGate, log }: PluginServiceOptions,
): Promise<ContainerAdjustment | null> {
  const given = slices.givenTo(container.podUid, container.name);
  if (given === null) return null;
  const { namespace, pod, name } = container;
  const binding = await affinity(container, given);
  if (binding.kind === 'refuse') {
    log.warn(
      { namespace, pod, container: name, reason: binding.reason },
      'a container is refused because its CPUs cannot be bound',
    );
    throw new RpcRefusal(status.FAILED_PRECONDITION, `container ${name}: ${binding.reason}`);
  }
  const injection = injectionOf(
    container,
    given,
    (meant, mounted) => slices.isSameSource(meant, mounted),
    startGate?.isNeeded() === true,
  );
  containers.created(container, given.slice, injection.remaining);
  if (injection.problems.length > 0) events.corrected(container, injection.problems);
  log.debug({ namespace, pod, container: name, id: container.id, slice: given.slice, binding }, 'container is created');
  return adjustment(container, injection, binding);
}

/** Null if nothing is to be changed, so that the runtime need not check for conflicts with other plugins. */
function adjustment(
  container: RuntimeContainer,
  { environment, mounts }: Injection,
  binding: AffinityAnswer,
): ContainerAdjustment | null {
  if (environment.size === 0 && mounts.length === 0 && binding.kind !== 'bind') return null;
  const there = new Set(container.mounts.map(({ destination }) => destination));
  return {
    // Each variable is removed before it is set: otherwise one that another plugin has set is a conflict, and the
    // container fails.
    env: [...environment].flatMap(([key, value]) => [
      ...(container.environment.has(key) ? [{ key: `-${key}` }] : []),
      { key, value },
    ]),
    mounts: mounts.flatMap(({ destination, mount }) => [
      ...(there.has(destination) || mount === null ? [{ destination: `-${destination}` }] : []),
      ...(mount === null
        ? []
        : [
            {
              destination,
              type: 'bind',
              source: mount.hostPath,
              options: ['rbind', 'rprivate', mount.writable ? 'rw' : 'ro', 'nosuid', 'nodev'],
            },
          ]),
    ]),
    linux: binding.kind === 'bind' ? { resources: { cpu: cpuOf(binding) } } : null,
  };
}

/** Absent fields keep their values. */
function cpuOf({ cpus, mems }: Extract<AffinityAnswer, { kind: 'bind' }>): LinuxCPU {
  return mems === '' ? { cpus } : { cpus, mems };
}
