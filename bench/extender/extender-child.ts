import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { PodObject } from '../../test/scheduler/objects.js';

/** What `largeCluster` makes a cluster of. */
export interface ClusterSize {
  readonly seed: number;
  readonly nodes: number;
  readonly pods: number;
  readonly gpuPods: number;
}

export type Command =
  | { readonly do: 'start'; readonly of: ClusterSize }
  | { readonly do: 'create'; readonly pod: PodObject }
  | { readonly do: 'delete'; readonly uid: string }
  | { readonly do: 'stop' | 'nothing' };

export interface Reply {
  /** 0 unless the command started an extender. */
  readonly port: number;
  readonly listedMs: number;
  /** CPU time of the process since it began. */
  readonly cpuMs: number;
  readonly rss: number;
}

const PROGRAM = fileURLToPath(new URL('./extender-process.js', import.meta.url));
const ECHO = fileURLToPath(new URL('./echo-process.js', import.meta.url));

/**
 * An extender in a process of its own, as it ships: what the client allocates does not make its garbage collector work.
 */
export class ExtenderChild {
  readonly #child: ChildProcess = fork(PROGRAM);

  async start(of: ClusterSize): Promise<Reply> {
    return this.#tell({ do: 'start', of });
  }

  async create(pod: PodObject): Promise<void> {
    await this.#tell({ do: 'create', pod });
  }

  async delete(uid: string): Promise<void> {
    await this.#tell({ do: 'delete', uid });
  }

  /** Stops the extender; the process can start another one. */
  async stop(): Promise<void> {
    await this.#tell({ do: 'stop' });
  }

  async used(): Promise<Reply> {
    return this.#tell({ do: 'nothing' });
  }

  /** Ends the process. */
  async close(): Promise<void> {
    await disconnected(this.#child);
  }

  /** One command at a time. */
  async #tell(command: Command): Promise<Reply> {
    const replied = once(this.#child, 'message');
    this.#child.send(command);
    const [reply] = (await replied) as [Reply];
    return reply;
  }
}

/** A server in its own process that reads the same bodies and decides nothing. */
export async function startEcho(): Promise<{ readonly port: number; close(): Promise<void> }> {
  const child = fork(ECHO);
  const [port] = (await once(child, 'message')) as [number];
  return { port, close: () => disconnected(child) };
}

/** Ends a process that lives as long as its parent listens. */
async function disconnected(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.disconnect();
  await ended;
}
