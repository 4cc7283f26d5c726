import { AsyncLocalStorage } from 'node:async_hooks';
import fs, { type PathLike } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { RpcServer } from '../../src/rpc/rpc-server.js';

/** Errors of a full, read-only or broken file system. Only the last one affects reads. */
export type DiskError = 'ENOSPC' | 'EROFS' | 'EIO';

/**
 * A gate before every step of one agent: each call that changes a file below its directory, each request to it and each
 * of its answers. The agent's own code does not know the gate.
 */
export class StepGate {
  readonly directory: string;
  readonly #onFrozen: (step: string) => void;
  #stepsLeft: number | null = null;
  #frozen = false;
  #disk: { readonly error: DiskError; skip: number; times: number } | null = null;

  constructor(directory: string, onFrozen: (step: string) => void) {
    this.directory = directory;
    this.#onFrozen = onFrozen;
  }

  /** After this many more steps the agent is frozen: the state is then what a SIGKILL at that moment leaves. */
  freezeAfter(steps: number): void {
    this.#stepsLeft = steps;
  }

  /** After `skip` more calls that can fail, `times` of them fail with the error. */
  breakDisk(error: DiskError, skip: number, times: number): void {
    this.#disk = { error, skip, times };
  }

  repairDisk(): void {
    this.#disk = null;
  }

  /** Never resolves once the agent is frozen. */
  async pass(step: string): Promise<void> {
    if (!this.#frozen && this.#stepsLeft !== null) {
      this.#frozen = this.#stepsLeft === 0;
      this.#stepsLeft -= 1;
      if (this.#frozen) this.#onFrozen(step);
    }
    if (this.#frozen) await new Promise<never>(() => undefined);
  }

  /** Throws if the disk is broken. */
  touch(kind: 'read' | 'write', call: string, path: string): void {
    const disk = this.#disk;
    if (disk === null || disk.times === 0 || (kind === 'read' && disk.error !== 'EIO')) return;
    if (disk.skip > 0) {
      disk.skip -= 1;
      return;
    }
    disk.times -= 1;
    throw Object.assign(new Error(`${disk.error}: injected, ${call} '${path}'`), {
      code: disk.error,
      syscall: call,
      path,
    });
  }
}

const gates = new Set<StepGate>();

/** The agent that the running code belongs to, where the path does not tell. */
const running = new AsyncLocalStorage<StepGate>();

/** Runs the code of one agent, so that its steps are attributed to it. */
export function runBehind<T>(gate: StepGate, action: () => Promise<T>): Promise<T> {
  gates.add(gate);
  return running.run(gate, action);
}

function gateOf(path: unknown): StepGate | null {
  if (typeof path !== 'string') return null;
  for (const gate of gates) if (path.startsWith(`${gate.directory}/`)) return gate;
  return null;
}

/** The path as part of a step's name: without the parts that differ between runs. */
function nameOf(gate: StepGate, path: string): string {
  return path
    .slice(gate.directory.length + 1)
    .replaceAll(/\b[0-9a-f]{16}\b/g, '<allocation>')
    .replace(/\.\d+\.tmp$/, '.tmp');
}

type Call = (...args: unknown[]) => unknown;

function guarded(kind: 'read' | 'write', name: string, call: Call): Call {
  return async (...args) => {
    const gate = gateOf(args[0]);
    if (gate === null) return call(...args);
    if (kind === 'write') await gate.pass(`${name} ${nameOf(gate, args[0] as string)}`);
    gate.touch(kind, name, args[0] as string);
    return call(...args);
  };
}

const HANDLE_CALLS = ['writeFile', 'write', 'sync', 'chmod', 'truncate'] as const;

async function guardedOpen(
  open: typeof fs.promises.open,
  path: PathLike,
  flags?: string | number,
  mode?: fs.Mode,
): Promise<fs.promises.FileHandle> {
  const gate = gateOf(path);
  const name = gate === null ? '' : nameOf(gate, path as string);
  const kind = flags === undefined || flags === 'r' ? 'read' : 'write';
  if (gate !== null && kind === 'write') await gate.pass(`open ${name}`);
  gate?.touch(kind, 'open', path as string);
  const handle = await open(path, flags, mode);
  if (gate === null) return handle;
  for (const call of HANDLE_CALLS) {
    const original = handle[call].bind(handle) as Call;
    Object.defineProperty(handle, call, {
      value: async (...args: unknown[]) => {
        await gate.pass(`${call} ${name}`);
        gate.touch('write', call, path as string);
        return original(...args);
      },
    });
  }
  return handle;
}

/**
 * Files that were opened with openSync, by descriptor. The gate cannot stop a synchronous call, but can make it fail.
 */
const openSyncPaths = new Map<number, string>();

function guardFiles(): void {
  const files = fs.promises as unknown as Record<string, Call>;
  for (const name of ['mkdir', 'rename', 'rm', 'chmod', 'chown', 'writeFile', 'unlink'])
    files[name] = guarded('write', name, files[name] as Call);
  for (const name of ['readFile', 'readdir']) files[name] = guarded('read', name, files[name] as Call);
  const open = fs.promises.open;
  files.open = ((...args: Parameters<typeof guardedOpen> extends [unknown, ...infer Rest] ? Rest : never) =>
    guardedOpen(open, ...args)) as Call;
  const { openSync, writeSync, closeSync } = fs;
  Object.assign(fs, {
    openSync(path: PathLike, ...rest: [fs.OpenMode, fs.Mode?]): number {
      gateOf(path)?.touch('read', 'open', String(path));
      const fd = openSync(path, ...rest);
      if (gateOf(path) !== null) openSyncPaths.set(fd, String(path));
      return fd;
    },
    writeSync(fd: number, ...rest: [never]): number {
      const path = openSyncPaths.get(fd);
      if (path !== undefined) gateOf(path)?.touch('write', 'write', path);
      return writeSync(fd, ...rest);
    },
    closeSync(fd: number): void {
      openSyncPaths.delete(fd);
      closeSync(fd);
    },
  });
  syncBuiltinESMExports();
}

/**
 * Every unary method of every gRPC server of an agent: one step before the request is read, one before the answer is
 * sent.
 */
function guardRequests(): void {
  RpcServer.prototype.handlerOf = (method, handler) => {
    const gate = running.getStore();
    if (gate === undefined || method.responseStream) return handler;
    const name = method.path.slice(method.path.lastIndexOf('/') + 1);
    return (call) => {
      let passed: Promise<void> | null = null;
      const answering = (): Promise<void> => (passed ??= gate.pass(`answer ${name}`));
      const answered: typeof call = {
        request: call.request,
        send: (message) => void answering().then(() => call.send(message)),
        end: (...status) => void answering().then(() => call.end(...status)),
        onOver: (listener) => call.onOver(listener),
      };
      void gate.pass(`request ${name}`).then(() => handler(answered));
    };
  };
}

/** Has to be called once, before the agent's modules are used. */
export function nameSteps(): void {
  guardFiles();
  guardRequests();
}
