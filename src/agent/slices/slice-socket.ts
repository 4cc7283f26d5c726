import type { Socket } from 'node:net';
import { decodeGreeting, looksLikeGreeting, type Greeting } from '../../abi/greeting.js';
import { GREETING, MAX_PROCESSES } from '../../abi/vgpu-abi.js';
import type { Clock } from '../../host/clock.js';
import type { LimitedLog } from '../../host/limited-log.js';
import { peerCredentials, type PeerCredentials } from '../../host/peer-credentials.js';
import { UnixListener } from '../../host/unix-socket.js';
import { RpcServer, type RpcService } from '../../rpc/rpc-server.js';
import { ConnectionRate, type RateLimit } from './connection-rate.js';

/** What one container may do to its socket. */
export interface SocketLimits {
  readonly rate: RateLimit;
  /** gRPC connections: each is a registration, which costs a hundred times as much as a greeting. */
  readonly registrations: Pick<RateLimit, 'burst' | 'perSecond'>;
  /** Connections that have not said what they are. */
  readonly silent: number;
  /** From connecting to the whole greeting. */
  readonly greetMs: number;
  /** Greeted connections: one a process. */
  readonly sessions: number;
  /** gRPC connections at once, how long one may live, and how much it may send. */
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

/** Calls on one connection; the original's client makes one. */
const CALLS_AT_ONCE = 4;

/** Who has fewer connections than this gets more while there are any. */
const FEW = 32;

/**
 * Connections of all containers together, so that they cannot use up the agent's descriptors between them. Half of
 * them are for containers that have few: one that takes all it can get leaves enough for everybody else.
 */
export class ConnectionBudget {
  readonly #most: number;
  #open = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** One more for a container that has `own` of them; false when there are enough already. */
  take(own: number): boolean {
    if (this.#open >= (own < FEW ? this.#most : this.#most / 2)) return false;
    this.#open += 1;
    return true;
  }

  giveBack(): void {
    this.#open -= 1;
  }
}

/** What a socket turned away since it was made. */
export interface SocketRefusals {
  /** How often the socket was taken away for a while because of too many connections at once. */
  readonly floods: number;
  /** Connections that were cut off: too many, too slow, too much, or in no language of this socket. */
  readonly connections: number;
}

/** What the owner of a slice does with those who come. */
export interface SocketHandlers {
  /** A process greeted; the function returned is called when its connection closes. */
  greeted(peer: PeerCredentials, greeting: Greeting): () => void;
  /** The gRPC service for one connection of `peer`. */
  service(peer: PeerCredentials): RpcService;
}

export interface SliceSocketOptions {
  readonly path: string;
  readonly handlers: SocketHandlers;
  readonly budget: ConnectionBudget;
  readonly clock: Clock;
  /** Limited, because what is logged is what containers do. */
  readonly log: LimitedLog;
  readonly limits?: SocketLimits;
}

type Kind = 'silent' | 'session' | 'rpc';

/**
 * `vcuda.sock` of one container. Two languages on one socket, told apart by the first byte: the control library's
 * greeting, after which the connection simply stays open, and gRPC. Identity is the socket, the process is its peer
 * credential. Whoever asks too much of it is cut off, and when that goes on the socket itself goes away for a while: a
 * flood costs the flooder.
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
  /** Taken away because of a flood. */
  #shutNow = false;

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

  /** True when it listens, or will again after a flood. */
  get open(): boolean {
    return this.#shutNow || this.#listener.listening;
  }

  get refusals(): SocketRefusals {
    return { floods: this.#floods, connections: this.#cutOff };
  }

  /** Listens; does nothing when it does already, or will again after a flood. */
  async start(): Promise<void> {
    this.#stopped = false;
    if (!this.#shutNow) await this.#listener.start();
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

  /** Waits for the first bytes. */
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
      // Nothing may follow a greeting: who sends more is not the library.
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
      'a container floods vcuda.sock; the agent closes the socket temporarily',
    );
    this.#floods += 1;
    this.#shutNow = true;
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
    this.#shutNow = false;
    if (this.#isStopped()) await this.#listener.stop();
  }

  #isStopped(): boolean {
    return this.#stopped;
  }
}
