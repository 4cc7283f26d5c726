import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE, type TestCluster } from './cluster.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';

export interface AgentDirectory {
  /** By default a directory in /run, which a reboot empties. */
  readonly directory?: string;
  /** Continues with the files of an earlier agent there. */
  readonly keepState?: boolean;
}

/** The agent as a daemon on the test cluster's node, on simulated GPUs. */
export class AgentProcess {
  readonly directory: string;
  readonly port: number;
  readonly #cluster: TestCluster;
  readonly #flags: readonly string[];

  constructor(
    cluster: TestCluster,
    gpus: string,
    flags: readonly string[] = [],
    { directory = '/var/run/gm-e2e', keepState = false }: AgentDirectory = {},
  ) {
    this.#cluster = cluster;
    this.directory = directory;
    this.port = 15_678;
    if (!keepState) rmSync(this.directory, { recursive: true, force: true });
    mkdirSync(this.directory, { recursive: true });
    writeFileSync(join(this.directory, 'gpus'), gpus);
    this.#flags = flags;
  }

  /** Starts the agent, with `more` flags, and waits until the kubelet has accepted both resources. */
  async start(more: readonly string[] = []): Promise<void> {
    const at = (name: string): string => join(this.directory, name);
    this.#cluster.processes.start('agent', process.execPath, [
      MAIN,
      'run',
      '--driver=sim',
      `--sim-node=${at('gpus')}`,
      `--sim-device-path=${at('devices')}`,
      '--share-mode=true',
      `--kubeconfig=${this.#cluster.kubeconfig}`,
      `--hostname-override=${NODE}`,
      `--virtual-manager-path=${at('vm')}`,
      `--checkpoint-path=${at('checkpoint')}`,
      `--display-socket=${at('display.sock')}`,
      `--query-port=${this.port}`,
      '-v',
      '2',
      '--allocation-check-period=2',
      ...this.#flags,
      ...more,
    ]);
    await this.ready();
  }

  async ready(): Promise<void> {
    await until(
      'the agent to be registered',
      async () => (await fetch(`http://localhost:${this.port}/readyz`)).ok,
      30_000,
    );
  }

  async restart(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.#cluster.processes.restart('agent', signal);
    await this.ready();
  }

  /** Starts the next agent beside this one, and ends this one when the next is on standby. */
  async handOver(): Promise<void> {
    const standing = (): number => this.log().split('standing by to take over').length;
    const before = standing();
    const endEarlier = this.#cluster.processes.startBeside('agent');
    await until('the next agent to stand by', async () => standing() > before, 30_000);
    await endEarlier('SIGTERM');
    await this.ready();
  }

  log(): string {
    return readFileSync(this.#cluster.processes.logOf('agent'), 'utf8');
  }

  stop(): Promise<void> {
    return this.#cluster.processes.stop('agent');
  }

  /** The containers that the agent reports: by pod UID, then container. */
  async usage(): Promise<
    Record<
      string,
      { spec: Record<string, { gpu: number; mem?: number }>; stat: Record<string, { dev: { card_idx: string }[] }> }
    >
  > {
    const answer = await fetch(`http://localhost:${this.port}/usage`);
    return ((await answer.json()) as { usage?: Awaited<ReturnType<AgentProcess['usage']>> }).usage ?? {};
  }
}
