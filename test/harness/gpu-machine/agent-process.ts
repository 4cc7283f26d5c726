import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, closeSync } from 'node:fs';
import { join } from 'node:path';
import { PLUGIN_SOCKET } from '../../../src/agent/device-plugin/plugin-server.js';
import { KubeletEmulator } from '../../../src/simulation/kubelet/kubelet.js';
import { LOOP_METER, longestTurn } from '../metered-program.js';
import { MAIN } from '../programs.js';
import type { MachinePaths } from './tenant.js';

export interface AgentProcessOptions {
  /** Parent directory of all files; keep it short, because socket paths are limited. */
  readonly directory: string;
  readonly machine: MachinePaths;
  /** More flags of `gpu-manager run`. */
  readonly flags?: readonly string[];
  /** The file that Node runs; absent: that of this folder. */
  readonly main?: string;
  /** Arguments for Node itself. */
  readonly nodeFlags?: readonly string[];
  /** Variables added to those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Initial limit of its open descriptors. */
  readonly openFiles?: number;
  /** Whether the turns of its event loop are measured: see `longestTurn`. */
  readonly isMetered?: boolean;
}

/** `gpu-manager run` as a process of its own on a simulated machine, with an emulated kubelet in this one. */
export class AgentProcess {
  readonly kubelet: KubeletEmulator;
  readonly displaySocket: string;
  readonly logPath: string;
  readonly #options: AgentProcessOptions;
  #child: ChildProcess | null = null;

  constructor(options: AgentProcessOptions) {
    const at = (name: string): string => join(options.directory, name);
    this.#options = options;
    this.displaySocket = at('display.sock');
    this.logPath = at('agent.log');
    mkdirSync(options.directory, { recursive: true });
    this.kubelet = new KubeletEmulator({ directory: at('plugins'), podResourcesSocket: at('pod-resources.sock') });
  }

  /** The socket of the device plugin for cores. */
  get pluginSocket(): string {
    return join(this.#options.directory, 'plugins', PLUGIN_SOCKET.core);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get alive(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts the process, and resolves when the kubelet has both resources. */
  async start(): Promise<void> {
    const { directory, machine, flags = [], main = MAIN, nodeFlags = [], environment = {}, openFiles } = this.#options;
    const { isMetered = false } = this.#options;
    const at = (name: string): string => join(directory, name);
    const log = openSync(this.logPath, 'a');
    // Also lowers the hard limit: Node raises the soft limit to it.
    const [program = process.execPath, ...before] =
      openFiles === undefined ? [] : ['prlimit', `--nofile=${openFiles}:${openFiles}`, process.execPath];
    this.#child = spawn(
      program,
      [
        ...before,
        ...nodeFlags,
        ...(isMetered ? LOOP_METER : []),
        main,
        'run',
        '--driver=sim',
        `--sim-node=${machine.nodePath}`,
        `--sim-state=${machine.statePath}`,
        `--sim-device-path=${at('devices')}`,
        '--standalone=true',
        '--share-mode=true',
        '--hostname-override=simulated',
        `--virtual-manager-path=${at('vm')}`,
        `--device-plugin-path=${at('plugins')}`,
        `--pod-resources-socket=${at('pod-resources.sock')}`,
        `--checkpoint-path=${at('checkpoint')}`,
        `--display-socket=${this.displaySocket}`,
        '--query-port=0',
        ...flags,
      ],
      { env: { ...process.env, ...environment }, stdio: ['ignore', log, log, ...(isMetered ? ['ipc' as const] : [])] },
    );
    closeSync(log);
    await this.kubelet.ready(30_000);
  }

  /** The longest turn of a metered agent's event loop while `task` ran, in milliseconds of CPU time. */
  longestTurn(task: () => Promise<void>): Promise<number> {
    if (this.#child === null) throw new Error('the agent does not run');
    return longestTurn(this.#child, task);
  }

  /** Ends the process with a signal and waits for its exit; the kubelet stays. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  }
}
