import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { kubeconfig } from '../../harness/api-server/kubeconfig.js';
import { eventually } from '../../harness/eventually.js';
import { MAIN } from '../../harness/programs.js';
import { NODE_NAME } from '../cluster.js';
import { cards } from '../gpus.js';
import type { DraNode } from './dra-node.js';

/** The agent of a node with claims as a process of its own, which can be killed. The API server must run. */
export class ClaimAgentProcess {
  readonly #node: DraNode;
  readonly #gpus: number;
  readonly #allocation: 'plugin' | 'dra';
  readonly #main: string;
  #process: ChildProcess | null = null;

  /** `main`: the file that Node runs as the agent; absent: that of this folder. */
  constructor(node: DraNode, gpus: number, allocation: 'plugin' | 'dra' = 'dra', main = MAIN) {
    this.#node = node;
    this.#gpus = gpus;
    this.#allocation = allocation;
    this.#main = main;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Starts the agent; with claims, waits until its driver answers. */
  async start(): Promise<void> {
    const { directory, cluster } = this.#node;
    const { config } = this.#node.node;
    if (cluster.server.read('nodes', '', NODE_NAME) === null)
      cluster.server.seed('nodes', { metadata: { name: NODE_NAME } });
    await mkdir(join(directory, 'n'), { recursive: true });
    for (const path of [config.pluginRegistryPath, config.cdiPath]) await mkdir(path, { recursive: true });
    await writeFile(join(directory, 'kubeconfig'), kubeconfig({ url: cluster.server.url }, {}));
    await writeFile(join(directory, 'n/gpus'), cards(this.#gpus));
    const flags: Readonly<Record<string, string>> = {
      driver: 'sim',
      'sim-node': join(directory, 'n/gpus'),
      'sim-device-path': config.simDevicePath,
      'share-mode': 'true',
      kubeconfig: join(directory, 'kubeconfig'),
      'hostname-override': NODE_NAME,
      'virtual-manager-path': config.virtualManagerPath,
      'checkpoint-path': config.checkpointPath,
      'display-socket': config.displaySocket,
      'query-port': '0',
      'device-plugin-path': config.devicePluginPath,
      'pod-resources-socket': config.podResourcesSocket,
      'cdi-path': config.cdiPath,
      'plugin-registry-path': config.pluginRegistryPath,
      'dra-path': config.draPath,
      allocation: this.#allocation,
    };
    this.#process = spawn(
      process.execPath,
      [this.#main, 'run', ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)],
      { stdio: 'ignore' },
    );
    if (this.#allocation === 'plugin') return;
    await eventually(
      () =>
        this.#node.prepare().then(
          () => true,
          () => false,
        ),
      'the agent to answer',
      60_000,
    );
  }

  async kill(): Promise<void> {
    const running = this.#process;
    if (running === null || running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, 'exit');
    running.kill('SIGKILL');
    await ended;
  }
}
