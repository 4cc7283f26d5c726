import type { Socket } from 'node:net';
import { decodeGreeting, looksLikeGreeting, type Greeting } from '../../../abi/greeting.js';
import { GREETING, MAX_PROCESSES } from '../../../abi/vgpu-abi.js';
import type { Clock } from '../../../host/clock.js';
import type { LimitedLog } from '../../../host/limited-log.js';
import { peerCredentials, type PeerCredentials } from '../../../host/peer-credentials.js';
import { UnixListener } from '../../../host/unix-socket.js';
import { RpcServer, type RpcService } from '../../../rpc/rpc-server.js';
import { ConnectionRate, type RateLimit } from './connection-rate.js';

/** Bounds on the use of one container's socket. */
export interface SocketLimits {
  readonly rate: RateLimit;
  /** gRPC connections: each is a registration, which costs a hundred times as much as a greeting. */
  readonly registrations: Pick<RateLimit, 'burst' | 'perSecond'>;
  /** Connections that have not sent a greeting or a call yet. */
  readonly silent: number;
  /** Time from connecting to the complete greeting. */
  readonly greetMs: number;
  /** Connections with a greeting: one per process. */
  readonly sessions: number;
  /** gRPC connections at once, the lifetime of each, and how much each may send. */
  readonly rpcs: number;
  readonly rpcMs: number;
  readonly rpcBytes: number;
}

export const SOCKET_LIMITS: SocketLimits = {
  rate: { burst: 2 * MAX_PROCESSES, perSecond: 10, penaltyMs: 1_000, longestPenaltyMs: 60_000 },
  registrations: { burst: 128, perSecond: 4 },
  silent: 64,
  greetMs: 5_000,
  sessions: MAX_PROCESSES,
  rpcs: 16,
  rpcMs: 30_000,
  rpcBytes: 16_384,
};

/** Concurrent calls on one connection; the original's client makes one. */
const CALLS_AT_ONCE = 4;

/** A container with fewer connections than this gets more as long as the budget lasts. */
const FEW_CONNECTIONS = 32;

/**
 * A common budget of connections, so that all containers together cannot use up the agent's descriptors. Half of it is
 * only for containers with few connections: a container that takes all it can get leaves enough for the others.
 */
export class ConnectionBudget {
  readonly #most: number;
  #open = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes one connection for a container that has `own` of them; false if the budget does not allow it. */
  take(own: number): boolean {
    if (this.#open >= (own < FEW_CONNECTIONS ? this.#most : this.#most / 2)) return false;
    this.#open += 1;
    return true;
  }

  giveBack(): void {
    this.#open -= 1;
  }
}

/** Counts of refusals since the socket was created. */
export interface SocketRefusals {
  /** How often the socket was closed temporarily because of too many connections. */
  readonly floods: number;
  /** Connections that were closed: too many, too slow, too much data, or no known protocol. */
  readonly connections: number;
}

/** The slice's handlers for its connections. */
export interface SocketHandlers {
  /** A process sent a greeting; the returned function is called when its connection closes. */
  greeted(peer: PeerCredentials, greeting: Greeting): () => void;
  /** The gRPC service for one connection of `peer`. */
  service(peer: PeerCredentials): RpcService;
}

export interface SliceSocketOptions {
  readonly path: string;
  readonly handlers: SocketHandlers;
  readonly budget: ConnectionBudget;
  readonly clock: Clock;
  /** Rate-limited, because containers cause the messages. */
  readonly log: LimitedLog;
  readonly limits?: SocketLimits;
}

type Kind = 'silent' | 'session' | 'rpc';

/**
 * `vcuda.sock` of one container. It serves two protocols, which the first byte distinguishes: the control library's
 * greeting, after which the connection stays open, and gRPC. The socket identifies the container, and the peer
 * credentials identify the process. Connections that exceed the limits are closed, and if the container keeps exceeding
 * them, the agent removes the socket for a while, so that a flood of connections harms only its sender.
 */
export class SliceSocket {
  readonly #options: SliceSocketOptions;
  readonly #limits: SocketLimits;
  readonly #listener: UnixListener;
  readonly #rate: ConnectionRate;
  readonly #registrations: ConnectionRate;
  readonly #open: Record<Kind, number> = { silent: 0, session: 0, rpc: 0 };
  #cancelReopen: () => void = () => undefined;
  #floods = 0;
  #cutOff = 0;
  #stopped = true;
  /** Closed because of a flood. */
  #isShut = false;

  constructor(options: SliceSocketOptions) {
    this.#options = options;
    this.#limits = options.limits ?? SOCKET_LIMITS;
    this.#rate = new ConnectionRate(this.#limits.rate, options.clock.now());
    this.#registrations = new ConnectionRate(
      { ...this.#limits.registrations, penaltyMs: 0, longestPenaltyMs: 0 },
      options.clock.now(),
    );
    // Every process in the container may connect, with any user id; other processes cannot reach the directory.
    this.#listener = new UnixListener(options.path, (socket) => this.#accept(socket), { mode: 0o666, anyLength: true });
  }

  /** True when the socket listens, or will listen again after a flood. */
  get open(): boolean {
    return this.#isShut || this.#listener.listening;
  }

  get refusals(): SocketRefusals {
    return { floods: this.#floods, connections: this.#cutOff };
  }

  /** Starts to listen; does nothing if it listens already or will do so after a flood. */
  async start(): Promise<void> {
    this.#stopped = false;
    if (!this.#isShut) await this.#listener.start();
  }

  /** Ends every connection and removes the socket file. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelReopen();
    await this.#listener.stop();
  }

  #accept(socket: Socket): void {
    socket.on('error', () => undefined);
    const admission = this.#rate.take(this.#options.clock.now());
    if (!admission.ok) {
      this.#cut(socket);
      this.#shut(admission.penaltyMs);
      return;
    }
    const { silent, session, rpc } = this.#open;
    if (silent >= this.#limits.silent || !this.#options.budget.take(silent + session + rpc)) {
      this.#cut(socket);
      return;
    }
    socket.once('close', () => this.#options.budget.giveBack());
    const peer = peerCredentials(socket);
    if (peer === null) {
      socket.destroy();
      return;
    }
    this.#listen(socket, peer);
  }

  /** Waits for the first bytes of a connection. */
  #listen(socket: Socket, peer: PeerCredentials): void {
    let kind: Kind = 'silent';
    this.#open[kind] += 1;
    const cancel = this.#options.clock.after(this.#limits.greetMs, () => this.#cut(socket));
    const become = (next: Kind, most: number): boolean => {
      cancel();
      if (this.#open[next] >= most) {
        this.#cut(socket);
        return false;
      }
      this.#open[kind] -= 1;
      kind = next;
      this.#open[kind] += 1;
      return true;
    };
    socket.once('close', () => {
      cancel();
      this.#open[kind] -= 1;
    });
    let head: Buffer = Buffer.alloc(0);
    const hear = (chunk: Buffer): void => {
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      if (!looksLikeGreeting(head)) {
        socket.off('data', hear);
        if (!become('rpc', this.#limits.rpcs)) return;
        if (this.#registrations.take(this.#options.clock.now()).ok) this.#serve(socket, peer, head);
        else this.#cut(socket);
        return;
      }
      const decoded = decodeGreeting(head);
      if (!decoded.ok && decoded.code === 'incomplete') return;
      socket.off('data', hear);
      // The control library sends nothing after its greeting.
      if (!decoded.ok || head.length > GREETING.structSize) {
        this.#cut(socket);
        return;
      }
      if (become('session', this.#limits.sessions)) this.#keep(socket, peer, decoded.greeting);
    };
    socket.on('data', hear);
  }

  #keep(socket: Socket, peer: PeerCredentials, greeting: Greeting): void {
    const left = this.#options.handlers.greeted(peer, greeting);
    socket.once('close', left);
    socket.on('data', () => this.#cut(socket));
  }

  #serve(socket: Socket, peer: PeerCredentials, head: Buffer): void {
    const { rpcBytes, rpcMs } = this.#limits;
    const server = new RpcServer(
      [this.#options.handlers.service(peer)],
      { messageLimitBytes: rpcBytes, bytesLimit: rpcBytes, callsLimit: CALLS_AT_ONCE },
      (error) =>
        this.#options.log.error({ err: error, socket: this.#options.path }, 'a connection of a container failed'),
    );
    const cancel = this.#options.clock.after(rpcMs, () => this.#cut(socket));
    socket.once('close', () => {
      cancel();
      server.stop();
    });
    socket.pause();
    socket.unshift(head);
    server.accept(socket, () => (this.#cutOff += 1));
  }

  #cut(socket: Socket): void {
    if (socket.destroyed) return;
    this.#cutOff += 1;
    socket.destroy();
  }

  /** Removes the socket temporarily: connections that are not accepted cost nothing. */
  #shut(penaltyMs: number): void {
    if (!this.#listener.listening) return;
    this.#options.log.warn(
      { socket: this.#options.path, penaltyMs },
      'a container floods vcuda.sock; the agent closes the socket for a while',
    );
    this.#floods += 1;
    this.#isShut = true;
    this.#listener.pause();
    this.#reopenAfter(penaltyMs);
  }

  #reopenAfter(delayMs: number): void {
    this.#cancelReopen = this.#options.clock.after(delayMs, () => {
      this.#reopen().catch((error: unknown) => {
        this.#options.log.error(
          { err: error, socket: this.#options.path },
          'the socket of a container could not be reopened',
        );
        this.#reopenAfter(delayMs);
      });
    });
  }

  async #reopen(): Promise<void> {
    if (this.#stopped) return;
    await this.#listener.start();
    this.#isShut = false;
    if (this.#isStopped()) await this.#listener.stop();
  }

  #isStopped(): boolean {
    return this.#stopped;
  }
}
