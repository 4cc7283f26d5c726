import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Order, Reply } from './orders.js';

const PROGRAM = fileURLToPath(new URL('./agent-process.js', import.meta.url));

/**
 * A process with several agents in it, seen from its parent: sends orders, reports frozen agents, kills all of them at
 * once.
 */
export class AgentHouse {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<
    number,
    { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }
  >();
  readonly #frozen = new Map<string, (step: string) => void>();
  readonly #exit: Promise<unknown>;
  #killed = false;
  #complaint = '';
  #letters = 0;

  constructor() {
    this.#child = fork(PROGRAM, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    this.#child.stderr?.on(
      'data',
      (text: Buffer) => (this.#complaint = `${this.#complaint}${text.toString()}`.slice(-4_000)),
    );
    this.#child.on('message', (reply: Reply) => this.#hear(reply));
    this.#exit = once(this.#child, 'exit');
    void this.#exit.then(() => {
      for (const { reject } of this.#waiting.values())
        reject(
          new Error(this.#killed ? 'the agent was killed' : `the agent's process ended by itself: ${this.#complaint}`),
        );
      this.#waiting.clear();
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves with the agent's answer; rejects if the agent fails or its process ends first. */
  ask(agent: string, order: Order): Promise<unknown> {
    const id = (this.#letters += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, agent, order }, (error) => {
        if (error === null) return;
        this.#waiting.delete(id);
        reject(error);
      });
    });
  }

  /** Resolves with the step at which this agent was stopped. */
  frozen(agent: string): Promise<string> {
    return new Promise((resolve) => this.#frozen.set(agent, resolve));
  }

  async kill(): Promise<void> {
    this.#killed = true;
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  #hear(reply: Reply): void {
    if (reply.kind === 'frozen') {
      this.#frozen.get(reply.agent)?.(reply.step);
      return;
    }
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (reply.kind === 'done') waiting?.resolve(reply.value);
    else waiting?.reject(new Error(reply.reason));
  }
}
