import { chmod, mkdir, open, rm, stat, type FileHandle } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';

/** `sun_path` of Linux has 108 bytes including the terminating NUL. */
const SOCKET_PATH_LIMIT_BYTES = 107;

/** Why `path` cannot be the name of a unix socket, or null if it can. */
export function socketPathProblem(path: string): string | null {
  const bytes = Buffer.byteLength(path);
  if (bytes <= SOCKET_PATH_LIMIT_BYTES) return null;
  return `socket path is ${bytes} bytes long, ${SOCKET_PATH_LIMIT_BYTES} is the limit: ${path}`;
}

/** Identifies one creation of a socket file: ext4 reuses inodes, so the change time counts too. */
export async function socketIdentity(path: string): Promise<string | null> {
  try {
    const entry = await stat(path, { bigint: true });
    return entry.isSocket() ? `${entry.dev}:${entry.ino}:${entry.ctimeNs}` : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

export interface UnixListenerOptions {
  /** Permission bits of the socket file; default 0600. */
  readonly mode?: number;
  /**
   * Whether to support paths that are longer than the kernel allows, through the directory's descriptor. For sockets
   * that clients open by another, shorter path: they could not connect by this one.
   */
  readonly anyLength?: boolean;
}

/** A listening unix socket that manages its file and its connections. */
export class UnixListener {
  readonly path: string;
  readonly #onConnection: (socket: Socket) => void;
  readonly #mode: number;
  readonly #anyLength: boolean;
  readonly #connections = new Set<Socket>();
  #server: Server | null = null;
  /** The open directory of a path that is too long. */
  #directory: FileHandle | null = null;

  constructor(path: string, onConnection: (socket: Socket) => void, options: UnixListenerOptions = {}) {
    this.path = path;
    this.#onConnection = onConnection;
    this.#mode = options.mode ?? 0o600;
    this.#anyLength = options.anyLength ?? false;
  }

  /** True while new connections are accepted. */
  get listening(): boolean {
    return this.#server !== null;
  }

  /** Starts to listen; replaces a socket file of an earlier run. Rejects if the path is too long or not writable. */
  async start(): Promise<void> {
    if (this.#server !== null) return;
    const problem = socketPathProblem(this.path);
    if (problem !== null && !this.#anyLength) throw new Error(problem);
    await mkdir(dirname(this.path), { recursive: true });
    await rm(this.path, { force: true });
    let address = this.path;
    if (problem !== null) {
      this.#directory ??= await open(dirname(this.path), 'r');
      address = `/proc/self/fd/${this.#directory.fd}/${basename(this.path)}`;
    }
    const server = createServer((socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
      this.#onConnection(socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(address, () => {
        server.off('error', reject);
        resolve();
      });
    });
    this.#server = server;
    await chmod(this.path, this.#mode);
  }

  /**
   * Stops accepting connections at once and removes the socket file; open connections continue. `start` listens again.
   */
  pause(): void {
    // Node's close calls back after all connections have ended; it has stopped listening when it returns.
    this.#server?.close();
    this.#server = null;
  }

  /** Stops listening, ends every connection and removes the socket file. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    const closed = server === null ? Promise.resolve() : new Promise<void>((resolve) => server.close(() => resolve()));
    for (const connection of this.#connections) connection.destroy();
    await closed;
    await this.#directory?.close();
    this.#directory = null;
  }
}
