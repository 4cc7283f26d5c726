import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ServiceError } from '@grpc/grpc-js';
import type { ResourceKind } from '../../gpu/resources.js';
import { Listeners } from '../../host/listeners.js';
import type { ContainerAllocateResponse__Output } from '../../rpc/gen/v1beta1/ContainerAllocateResponse.js';
import type { RegisterRequest__Output } from '../../rpc/gen/v1beta1/RegisterRequest.js';
import { devicePluginProto, podResourcesProto } from '../../rpc/proto.js';
import { UnixRpcServer } from '../../rpc/rpc-server.js';
import { unary } from '../../rpc/unary.js';
import { DeviceManager, type HeldDevices } from './device-manager.js';
import { PluginEndpoint } from './plugin-endpoint.js';
import { resourceName, resourceNamed, type EmulatedContainer, type EmulatedPod, type EmulatedResource } from './pod.js';

export interface EmulatorOptions {
  /** The device plugin directory, with kubelet.sock and the checkpoint. */
  readonly directory: string;
  /** Socket of the pod-resources service. */
  readonly podResourcesSocket: string;
  /**
   * Order in which the kubelet requests the resources of a container; a real kubelet has no fixed order. Default: cores
   * first.
   */
  readonly order?: (container: EmulatedContainer) => readonly ResourceKind[];
  /** Whether GetPreferredAllocation is called; kubelets before 1.19 do not have it. */
  readonly usesPreferences?: boolean;
  /** Value of `:authority`; kubelets before 1.26 send the socket path. */
  readonly authority?: 'localhost' | 'socket-path';
  /** Called before each Allocate, after the preference: tests restart an agent there. */
  readonly beforeAllocate?: (kind: EmulatedResource, ids: readonly string[]) => Promise<void>;
}

/** The allocation of a container: the ids, and the plugin's answers merged as a kubelet merges them. */
export interface GivenContainer {
  readonly name: string;
  readonly coreIds: readonly string[];
  readonly memoryIds: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly { readonly hostPath: string; readonly containerPath: string; readonly readOnly: boolean }[];
  readonly deviceNodes: readonly { readonly hostPath: string; readonly containerPath: string }[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly cdiDevices: readonly string[];
}

export type Admission =
  | { readonly ok: true; readonly containers: readonly GivenContainer[] }
  | { readonly ok: false; readonly message: string };

/**
 * An emulated kubelet as a device plugin sees it, without real pods: registration, ListAndWatch, admission of one pod
 * after another with preferences and reuse of init containers' devices, PreStartContainer, pod-resources, the
 * checkpoint file, restarts. test/simulation/kubelet/contract.ts compares it with real kubelets.
 */
export class KubeletEmulator {
  readonly #options: EmulatorOptions;
  readonly #devices = new DeviceManager();
  readonly #endpoints = new Map<EmulatedResource, PluginEndpoint>();
  readonly #pods = new Map<string, EmulatedPod>();
  readonly #pending = new Set<EmulatedPod>();
  readonly #ended = new Set<string>();
  readonly #started = new Set<string>();
  #servers: UnixRpcServer[] = [];
  #admitting: Promise<unknown> = Promise.resolve();
  readonly #annotationListeners = new Listeners<string>();
  #waiting: (() => void)[] = [];

  constructor(options: EmulatorOptions) {
    this.#options = options;
  }

  /** Starts as a kubelet does: removes every socket in the plugin directory, so that plugins must register again. */
  async start(): Promise<void> {
    const { directory, podResourcesSocket } = this.#options;
    for (const place of [directory, dirname(podResourcesSocket)]) await mkdir(place, { recursive: true });
    for (const name of await readdir(directory))
      if (name.endsWith('.sock')) await rm(join(directory, name), { force: true });
    try {
      this.#devices.decode(await readFile(this.#checkpointPath, 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.#devices.forgetAllBut(new Set());
    }
    const { Registration } = devicePluginProto().v1beta1;
    const { PodResourcesLister } = podResourcesProto().v1;
    this.#servers = [
      new UnixRpcServer(podResourcesSocket, [
        { definition: PodResourcesLister.service, handlers: { List: unary(async () => this.#podResources()) } },
      ]),
      new UnixRpcServer(join(directory, 'kubelet.sock'), [
        {
          definition: Registration.service,
          handlers: { Register: unary((request: RegisterRequest__Output) => this.#register(request)) },
        },
      ]),
    ];
    for (const server of this.#servers) await server.start();
  }

  async stop(): Promise<void> {
    for (const endpoint of this.#endpoints.values()) endpoint.close();
    this.#endpoints.clear();
    this.#devices.healthy.clear();
    for (const server of this.#servers) await server.stop();
    this.#servers = [];
  }

  /** Stops and starts; pods keep their devices, as on a real node. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Number of healthy devices: the node's allocatable amount. */
  allocatable(kind: EmulatedResource): number {
    return this.#devices.healthy.get(kind)?.size ?? 0;
  }

  /**
   * Resolves as soon as `condition` holds, or rejects after `timeoutMs`, which a busy machine does not reach. The
   * condition is checked whenever a plugin registers or lists devices.
   */
  async until(condition: () => boolean, timeoutMs = 60_000): Promise<void> {
    const end = Date.now() + timeoutMs;
    while (!condition()) {
      const left = end - Date.now();
      if (left <= 0) throw new Error('the emulated kubelet timed out');
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(left, 100));
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Resolves when both resources are registered and listed. */
  ready(timeoutMs?: number): Promise<void> {
    return this.until(
      () =>
        this.#devices.healthy.has('core') &&
        this.#devices.healthy.has('memory') &&
        this.#endpoints.has('core') &&
        this.#endpoints.has('memory'),
      timeoutMs,
    );
  }

  /** Admits a pod after all earlier ones. A refused pod is removed and its devices are released. */
  admit(pod: EmulatedPod): Promise<Admission> {
    this.#pending.add(pod);
    const result = this.#admitting.then(() => this.#admit(pod));
    this.#admitting = result.catch(() => undefined);
    return result;
  }

  /**
   * Adds a pod that is still running and that an earlier plugin of these resources started; `held` is the kubelet's
   * record of it.
   */
  async inherit(pod: EmulatedPod, held: readonly HeldDevices[]): Promise<void> {
    this.#pods.set(pod.uid, pod);
    for (const { name } of [...pod.initContainers, ...pod.containers]) this.#started.add(`${pod.uid}/${name}`);
    for (const entry of held) this.#devices.hold(entry);
    this.#devices.takeHeld();
    await writeFile(this.#checkpointPath, this.#devices.encode());
  }

  /** Calls PreStartContainer for each resource of a container, as before every start and restart of it. */
  async startContainer(podUid: string, container: string): Promise<void> {
    for (const kind of [...new Set(['core', 'memory', ...this.#devices.resourcesOf(podUid, container)] as const)]) {
      const ids = this.#devices.heldBy(podUid, container, kind);
      if (ids.length > 0) await this.#endpoint(kind).preStart(ids);
    }
    this.#started.add(`${podUid}/${container}`);
    const pod = this.#pods.get(podUid);
    if (pod?.containers.every(({ name }) => this.#started.has(`${podUid}/${name}`)) === true) this.#pending.delete(pod);
  }

  /** Changes the annotations of a pod; the kubelet itself ignores them. */
  annotate(podUid: string, annotations: Readonly<Record<string, string>>): void {
    const pod = this.#pods.get(podUid);
    if (pod === undefined) throw new Error(`no pod ${podUid}`);
    const annotated = { ...pod, annotations };
    this.#pods.set(podUid, annotated);
    if (this.#pending.delete(pod)) this.#pending.add(annotated);
    this.#annotationListeners.emit(podUid);
  }

  onAnnotations(listener: (podUid: string) => void): () => void {
    return this.#annotationListeners.add(listener);
  }

  /** Ends a pod. pod-resources stops listing it now; its devices are free at the next admission. */
  remove(podUid: string): void {
    const pod = this.#pods.get(podUid);
    if (pod === undefined) return;
    this.#pods.delete(podUid);
    this.#pending.delete(pod);
    this.#ended.add(podUid);
    for (const { name } of [...pod.initContainers, ...pod.containers]) this.#started.delete(`${podUid}/${name}`);
  }

  /** Admitted pods that contain a container that has never started. The API server shows them as Pending. */
  get waiting(): readonly EmulatedPod[] {
    return [...this.#pending];
  }

  /** UIDs of all ended pods. */
  get ended(): ReadonlySet<string> {
    return this.#ended;
  }

  get pods(): readonly EmulatedPod[] {
    return [...this.#pods.values()];
  }

  /** Names of a pod's running containers, as a container runtime would report; null for an ended pod. */
  runningOf(podUid: string): ReadonlySet<string> | null {
    const pod = this.#pods.get(podUid);
    if (pod === undefined) return null;
    const started = (containers: readonly EmulatedContainer[]): string[] =>
      containers.map(({ name }) => name).filter((name) => this.#started.has(`${podUid}/${name}`));
    const main = started(pod.containers);
    // Init containers run one after another, before the other containers start.
    return new Set(main.length > 0 ? main : started(pod.initContainers).slice(-1));
  }

  /** Holders of devices as in the checkpoint: it includes ended pods until the next admission. */
  get held(): readonly HeldDevices[] {
    return this.#devices.held;
  }

  get #checkpointPath(): string {
    return join(this.#options.directory, 'kubelet_internal_checkpoint');
  }

  async #admit(pod: EmulatedPod): Promise<Admission> {
    this.#devices.forgetAllBut(new Set(this.#pods.keys()));
    this.#pods.set(pod.uid, pod);
    const given: GivenContainer[] = [];
    const reusable: Record<ResourceKind, Set<string>> = { core: new Set(), memory: new Set() };
    try {
      for (const container of [...pod.initContainers, ...pod.containers]) {
        given.push(await this.#allocate(pod, container, reusable));
        const initial = pod.initContainers.includes(container);
        for (const kind of ['core', 'memory'] as const) {
          for (const id of this.#devices.heldBy(pod.uid, container.name, kind)) {
            if (initial) reusable[kind].add(id);
            else reusable[kind].delete(id);
          }
        }
      }
    } catch (error) {
      this.remove(pod.uid);
      this.#devices.forget(pod.uid);
      const message = (error as ServiceError).details ?? (error as Error).message;
      return { ok: false, message: `UnexpectedAdmissionError: ${message}` };
    } finally {
      await writeFile(this.#checkpointPath, this.#devices.encode());
    }
    return { ok: true, containers: given };
  }

  async #allocate(
    pod: EmulatedPod,
    container: EmulatedContainer,
    reusable: Record<ResourceKind, Set<string>>,
  ): Promise<GivenContainer> {
    const order = this.#options.order?.(container) ?? ['core', 'memory'];
    const merged: ContainerAllocateResponse__Output[] = [];
    const wanted: (readonly [EmulatedResource, number])[] = [
      ...order.map((kind) => [kind, kind === 'core' ? container.cores : container.memoryBlocks] as const),
      ...(Object.entries(container.instances ?? {}) as [EmulatedResource, number][]),
    ];
    for (const [kind, size] of wanted) {
      if (size === 0) continue;
      const ids = await this.#choose(kind, size, kind === 'core' || kind === 'memory' ? [...reusable[kind]] : []);
      this.#devices.take(kind, ids);
      await this.#options.beforeAllocate?.(kind, ids);
      const response = await this.#endpoint(kind).allocate(ids);
      const answer = response.container_responses[0];
      if (answer === undefined) throw new Error('the plugin answered for no container');
      merged.push(answer);
      this.#devices.hold({
        podUid: pod.uid,
        container: container.name,
        kind,
        ids,
        response: devicePluginProto().v1beta1.ContainerAllocateResponse.serialize(answer),
      });
    }
    return {
      name: container.name,
      coreIds: this.#devices.heldBy(pod.uid, container.name, 'core'),
      memoryIds: this.#devices.heldBy(pod.uid, container.name, 'memory'),
      environment: Object.assign({}, ...merged.map((answer) => answer.envs)) as Record<string, string>,
      mounts: onePerPath(
        merged.flatMap((answer) =>
          answer.mounts.map((mount) => ({
            hostPath: mount.host_path,
            containerPath: mount.container_path,
            readOnly: mount.read_only,
          })),
        ),
      ),
      deviceNodes: onePerPath(
        merged.flatMap((answer) =>
          answer.devices.map((node) => ({ hostPath: node.host_path, containerPath: node.container_path })),
        ),
      ),
      annotations: Object.assign({}, ...merged.map((answer) => answer.annotations)) as Record<string, string>,
      cdiDevices: merged.flatMap((answer) => answer.cdi_devices.map((device) => device.name)),
    };
  }

  /** The device manager's choice: first devices to be reused, then the devices that the plugin prefers, then any. */
  async #choose(kind: EmulatedResource, size: number, reusable: readonly string[]): Promise<string[]> {
    const reused = reusable.slice(0, size);
    if (reused.length === size) return reused;
    const available = this.#devices.available(kind);
    if (available.length < size - reused.length) {
      throw new Error(
        `requested number of devices unavailable for ${resourceName(kind)}. Requested: ${size}, Available: ${available.length}`,
      );
    }
    const offered = [...available, ...reused];
    const preferred =
      this.#options.usesPreferences === false ? [] : await this.#endpoint(kind).preferred(offered, reused, size);
    const takeable = new Set(available);
    const chosen = [...reused, ...preferred.filter((id) => takeable.has(id) && !reused.includes(id))].slice(0, size);
    const rest = available.filter((id) => !chosen.includes(id));
    return [...chosen, ...rest.slice(0, size - chosen.length)];
  }

  #endpoint(kind: EmulatedResource): PluginEndpoint {
    const endpoint = this.#endpoints.get(kind);
    if (endpoint === undefined) throw new Error(`no plugin is registered for ${resourceName(kind)}`);
    return endpoint;
  }

  async #register(request: RegisterRequest__Output): Promise<object> {
    const kind = resourceNamed(request.resource_name);
    if (kind === null) throw new Error(`unknown resource ${request.resource_name}`);
    if (request.version !== 'v1beta1') throw new Error(`unsupported version ${request.version}`);
    this.#endpoints.get(kind)?.close();
    const socket = join(this.#options.directory, request.endpoint);
    const endpoint: PluginEndpoint = new PluginEndpoint(
      socket,
      this.#options.authority === 'socket-path' ? socket : 'localhost',
      (devices) => {
        this.#devices.healthy.set(
          kind,
          new Set(devices.filter((device) => device.health === 'Healthy').map((device) => device.ID)),
        );
        this.#notify();
      },
      () => {
        // A plugin whose stream ends is disconnected: its devices count as unhealthy until it registers and lists them
        // again.
        if (this.#endpoints.get(kind) !== endpoint) return;
        this.#endpoints.delete(kind);
        this.#devices.healthy.delete(kind);
        this.#notify();
      },
    );
    this.#endpoints.set(kind, endpoint);
    this.#notify();
    return {};
  }

  #notify(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #podResources() {
    this.#devices.forgetAllBut(new Set(this.#pods.keys()));
    return {
      pod_resources: [...this.#pods.values()].map((pod) => ({
        name: pod.name,
        namespace: pod.namespace,
        containers: pod.containers.map((container) => ({
          name: container.name,
          devices: this.#devices.resourcesOf(pod.uid, container.name).flatMap((kind) => {
            const ids = this.#devices.heldBy(pod.uid, container.name, kind);
            return ids.length === 0
              ? []
              : [{ resource_name: resourceName(kind), device_ids: [...ids], topology: null }];
          }),
        })),
      })),
    };
  }
}

/** If several entries have the same path in the container, a kubelet uses the first. */
function onePerPath<T extends { readonly containerPath: string }>(entries: readonly T[]): T[] {
  return [...new Map(entries.map((entry) => [entry.containerPath, entry] as const).reverse()).values()].reverse();
}
