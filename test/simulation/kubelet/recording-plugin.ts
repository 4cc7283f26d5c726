import type { Test } from 'tap';
import { callsOf, type PluginCalls } from '../../../src/agent/device-plugin/plugin-calls.js';
import { PLUGIN_SOCKET, PluginServer } from '../../../src/agent/device-plugin/plugin-server.js';
import { register } from '../../../src/agent/device-plugin/registration.js';
import { NO_EDITS } from '../../../src/gpu/container-edits.js';
import { RESOURCE_NAME, type ResourceKind } from '../../../src/gpu/resources.js';
import { silentLog } from '../../../src/host/log.js';

/** One call of a kubelet, with sorted ids where their order has no meaning. */
export type RecordedCall =
  | {
      readonly call: 'preferred';
      readonly available: readonly string[];
      readonly mustInclude: readonly string[];
      readonly size: number;
    }
  | { readonly call: 'allocate'; readonly ids: readonly string[] }
  | { readonly call: 'start'; readonly ids: readonly string[] };

/** A device plugin that prefers its last ids and records the calls of a kubelet. */
export class RecordingPlugin {
  readonly kind: ResourceKind;
  readonly calls: RecordedCall[] = [];
  /** The reason to refuse the next calls; null answers them. */
  refuseAllocate: string | null = null;
  refuseStart: string | null = null;
  /** Allocate answers when this resolves. */
  beforeAllocated: Promise<void> = Promise.resolve();
  readonly #directory: string;
  readonly #health: Map<string, boolean>;
  readonly #listeners = new Set<() => void>();
  #server: PluginServer | null = null;

  constructor(kind: ResourceKind, directory: string, ids: readonly string[]) {
    this.kind = kind;
    this.#directory = directory;
    this.#health = new Map(ids.map((id) => [id, true]));
  }

  /** Serves on its socket and registers with the kubelet; ends with the test. */
  async start(t: Test): Promise<void> {
    this.#server = new PluginServer(
      { resource: RESOURCE_NAME[this.kind], socket: PLUGIN_SOCKET[this.kind], calls: this.#answers() },
      this.#directory,
      silentLog(),
    );
    t.teardown(() => this.stop());
    await this.#server.start();
    await register(`${this.#directory}/kubelet.sock`, {
      resource: RESOURCE_NAME[this.kind],
      socket: PLUGIN_SOCKET[this.kind],
    });
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    await server?.stop();
  }

  setHealth(id: string, healthy: boolean): void {
    this.#health.set(id, healthy);
    for (const listener of this.#listeners) listener();
  }

  /** The calls since the last query. */
  take(): RecordedCall[] {
    return this.calls.splice(0);
  }

  #answers(): PluginCalls {
    return callsOf(this.kind, {
      devices: () => [...this.#health].map(([id, healthy]) => ({ id, healthy, numaNode: null })),
      onDevicesChanged: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      preferred: async (_kind, available, mustInclude, size) => {
        this.calls.push({
          call: 'preferred',
          available: [...available].sort(),
          mustInclude: [...mustInclude].sort(),
          size,
        });
        const others = available.filter((id) => !mustInclude.includes(id)).sort();
        return { ok: true, ids: [...mustInclude, ...others.reverse()].slice(0, size) };
      },
      allocate: async (_kind, ids) => {
        this.calls.push({ call: 'allocate', ids: [...ids].sort() });
        await this.beforeAllocated;
        if (this.refuseAllocate !== null) return { ok: false, code: 'nothing-fits', reason: this.refuseAllocate };
        return { ok: true, edits: { ...NO_EDITS, environment: { [`IDS_${this.kind.toUpperCase()}`]: ids.join(',') } } };
      },
      preStart: async (_kind, ids) => {
        this.calls.push({ call: 'start', ids: [...ids].sort() });
        return this.refuseStart === null ? { ok: true } : { ok: false, code: 'unknown-ids', reason: this.refuseStart };
      },
    });
  }
}
