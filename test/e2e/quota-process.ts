import { spawn, type ChildProcess } from 'node:child_process';
import { openSync } from 'node:fs';
import { request } from 'node:https';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';

/** One replica of `gpu-manager quota serve`, a process of its own. */
export class QuotaProcess {
  readonly port: number;
  readonly #arguments: readonly string[];
  readonly #logFile: string;
  #process: ChildProcess | null = null;

  constructor(options: {
    readonly port: number;
    readonly kubeconfig: string;
    readonly url: string;
    readonly name: string;
    readonly directory: string;
    readonly more?: readonly string[];
  }) {
    const { port, kubeconfig, url, name, directory, more = [] } = options;
    this.port = port;
    this.#logFile = join(directory, `quota-${name}.log`);
    this.#arguments = [
      'quota',
      'serve',
      '--kubeconfig',
      kubeconfig,
      '--address',
      '127.0.0.1',
      '--port',
      String(port),
      '--url',
      url,
      '--namespace',
      'default',
      '--identity',
      name,
      '--lease-duration',
      '3',
      ...more,
    ];
  }

  get alive(): boolean {
    return this.#process !== null && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  async start(): Promise<void> {
    const log = openSync(this.#logFile, 'a');
    this.#process = spawn(process.execPath, [MAIN, ...this.#arguments], { stdio: ['ignore', log, log] });
    await until('the replica to be ready', () => this.ready(), 60_000);
  }

  /** Whether the replica reports that it can decide. */
  ready(): Promise<boolean> {
    return new Promise((resolve) => {
      const asked = request(
        { host: '127.0.0.1', port: this.port, path: '/readyz', rejectUnauthorized: false, timeout: 2000 },
        (response) => {
          response.resume();
          resolve(response.statusCode === 200);
        },
      );
      asked.on('error', () => resolve(false));
      asked.end();
    });
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const ending = this.#process;
    if (ending === null || !this.alive) return;
    const ended = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    await ended;
  }
}

/** Passes connections to the living replicas in turn, as a Service does. */
export class Balancer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #replicas: readonly QuotaProcess[] = [];
  #turn = 0;

  constructor() {
    this.#server = createServer((socket) => {
      const alive = this.#replicas.filter((replica) => replica.alive);
      const replica = alive[this.#turn++ % Math.max(1, alive.length)];
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket)).on('error', () => socket.destroy());
      if (replica === undefined) {
        socket.destroy();
        return;
      }
      const onwards = connect(replica.port, '127.0.0.1');
      onwards.on('error', () => socket.destroy()).on('close', () => socket.destroy());
      socket.on('close', () => onwards.destroy());
      socket.pipe(onwards).pipe(socket);
    });
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  serve(...replicas: readonly QuotaProcess[]): void {
    this.#replicas = replicas;
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
