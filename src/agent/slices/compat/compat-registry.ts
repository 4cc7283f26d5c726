import { status } from '@grpc/grpc-js';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { decodePids, type VcudaConfig } from '../../../abi/vcuda-config.js';
import type { PeerCredentials } from '../../../host/peer-credentials.js';
import { processStat } from '../../../host/process-stat.js';
import { readReachableFile } from '../../../host/reachable-file.js';
import type { VDeviceRequest__Output } from '../../../rpc/gen/vcuda/VDeviceRequest.js';
import { vcudaProto } from '../../../rpc/proto.js';
import type { RpcService } from '../../../rpc/rpc-server.js';
import { RpcRefusal, unary } from '../../../rpc/unary.js';
import { CompatFiles } from './compat-files.js';
import type { ContainerKnowledge } from '../../runtimes/index.js';

export interface CompatRegistryOptions {
  readonly sliceDirectory: string;
  readonly knowledge: ContainerKnowledge;
  /** The present content of the container's `vcuda.config`. */
  readonly config: (container: Registered) => VcudaConfig | Promise<VcudaConfig>;
  /** Host pids of the processes that sent a greeting, which are known without their control group. */
  readonly greeted: () => readonly number[];
  /** Resolves when this slice may register a process. */
  readonly turn: () => Promise<void>;
  readonly onFailure: (error: unknown) => void;
}

/** A container that registered. */
export interface Registered {
  /** The id or name that it registered with. */
  readonly name: string;
  /** The runtime's id for it; null while no living process of it is known. */
  readonly containerId: string | null;
}

/**
 * `vcuda.VCUDAService` of one slice, which `gpu-client` of the original library calls before each of its programs
 * starts. The caller says which container it is; the name only chooses a directory in its own slice. The control group
 * of the calling process decides which processes are the container's.
 */
export class CompatRegistry {
  readonly #options: CompatRegistryOptions;
  readonly #files: CompatFiles;
  readonly #registered = new Map<string, Registered>();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: CompatRegistryOptions) {
    this.#options = options;
    this.#files = new CompatFiles(options.sliceDirectory);
  }

  /** True if a container registered, so that files must be kept up to date. */
  get inUse(): boolean {
    return this.#registered.size > 0;
  }

  /** The service for one connection of `peer`. */
  service(peer: PeerCredentials): RpcService {
    let called = false;
    return {
      definition: vcudaProto().vcuda.VCUDAService.service,
      handlers: {
        RegisterVDevice: unary(async (request: VDeviceRequest__Output) => {
          if (called) throw new RpcRefusal(status.RESOURCE_EXHAUSTED, 'only one registration per connection');
          called = true;
          await this.#enqueue(() => this.#register(peer, request));
          return {};
        }, this.#options.onFailure),
      },
    };
  }

  /** Restores the containers that registered with an earlier run of the agent. */
  restore(): Promise<void> {
    return this.#enqueue(async () => {
      for (const entry of await readdir(this.#options.sliceDirectory, { withFileTypes: true })) {
        if (!entry.isDirectory() || this.#files.refusal(entry.name) !== null) continue;
        const content = await readReachableFile(join(this.#options.sliceDirectory, entry.name, 'pids.config')).catch(
          () => null,
        );
        const alive = decodePids(content ?? Buffer.alloc(0)).find((pid) => processStat(pid) !== null);
        if (alive === undefined) continue;
        const place = await this.#options.knowledge.placeOf(alive);
        const containerId = place?.containerId ?? null;
        this.#registered.set(entry.name, { name: entry.name, containerId });
        await this.#write(entry.name, containerId === null ? [] : await this.#options.knowledge.pidsOf(containerId));
      }
    });
  }

  /** Updates the files after processes started or ended, or limits changed. */
  refresh(): Promise<void> {
    return this.#enqueue(async () => {
      const listed = new Map<string, readonly number[]>();
      for (const { name, containerId } of this.#registered.values()) {
        // A container that registered under several names has the same processes under each.
        if (containerId !== null && !listed.has(containerId))
          listed.set(containerId, await this.#options.knowledge.pidsOf(containerId));
        await this.#write(name, listed.get(containerId ?? '') ?? []);
      }
    });
  }

  /** Waits for running registrations, then forgets every container and writes nothing until one registers. */
  clear(): Promise<void> {
    return this.#enqueue(async () => {
      this.#registered.clear();
      this.#files.clear();
    });
  }

  async #register(peer: PeerCredentials, request: VDeviceRequest__Output): Promise<void> {
    const name = request.container_id === '' ? request.container_name : request.container_id;
    const refused = this.#files.refusal(name);
    if (refused !== null)
      throw new RpcRefusal(
        refused.code === 'bad-name' ? status.INVALID_ARGUMENT : status.RESOURCE_EXHAUSTED,
        refused.reason,
      );
    if (peer.pid === null)
      throw new RpcRefusal(
        status.FAILED_PRECONDITION,
        'the agent does not see the processes of this node: it needs hostPID',
      );
    await this.#options.turn();
    const place = await this.#options.knowledge.placeOf(peer.pid);
    const pids = place === null ? [] : await this.#options.knowledge.pidsOf(place.containerId);
    // The original's library takes an incomplete list for the whole container, and then enforces no limit.
    if (place === null || !pids.includes(peer.pid))
      throw new RpcRefusal(
        status.FAILED_PRECONDITION,
        `the processes of the container of process ${peer.pid} are not known: ` +
          (place === null ? 'it is in no container' : 'the container runtime does not answer, or lists others'),
      );
    this.#registered.set(name, { name, containerId: place.containerId });
    await this.#write(name, pids);
  }

  /** `listed`: the container's processes; empty if it has ended or they are unknown. */
  async #write(name: string, listed: readonly number[]): Promise<void> {
    const container = this.#registered.get(name);
    if (container === undefined) return;
    const { greeted, config } = this.#options;
    // While a container's processes are unknown, its list of pids stays as it is.
    const pids = listed.length > 0 ? [...listed, ...greeted()] : null;
    await this.#files.write(name, pids, await config(container));
  }

  #enqueue<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(step);
    this.#queue = result.catch(() => undefined);
    return result;
  }
}
