import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../harness/eventually.js';
import { BUSYBOX_IMAGE, nameNode, type TestCluster } from './cluster.js';
import { importImage } from './image.js';

export const SECOND_NODE = 'node2';

/**
 * Another node of the cluster on the same machine: a kubelet and a container runtime of its own, which see their own
 * /var/lib/kubelet. Its pods use the network of the machine.
 */
export class SecondNode {
  readonly #cluster: TestCluster;
  readonly #directory: string;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
    this.#directory = join(cluster.directory, SECOND_NODE);
  }

  async start(): Promise<void> {
    const { processes, directory, kubeconfig, version } = this.#cluster;
    const at = (name: string): string => join(this.#directory, name);
    nameNode(SECOND_NODE);
    rmSync(this.#directory, { recursive: true, force: true });
    for (const name of ['kubelet', 'cni', 'static-pods']) mkdirSync(at(name), { recursive: true });
    cpSync(join(directory, 'cni'), at('cni'), { recursive: true });
    const files = ['containerd.toml', 'kubelet.yaml', ...readdirSync(at('cni')).map((name) => `cni/${name}`)];
    for (const name of files)
      writeFileSync(
        at(name),
        readFileSync(join(directory, name), 'utf8').replaceAll(`${directory}/`, `${this.#directory}/`),
      );
    const settings = JSON.parse(readFileSync(at('kubelet.yaml'), 'utf8')) as object;
    // Without control groups of its own: each kubelet ends the pods that it does not know in those of the other.
    const own = { port: 10_251, healthzPort: 0, cgroupsPerQOS: false, enforceNodeAllocatable: [] };
    writeFileSync(at('kubelet.yaml'), JSON.stringify({ ...settings, ...own }));
    processes.start(SECOND_NODE, 'unshare', [
      ...['-m', '--propagation', 'private', 'sh', '-c'],
      `mount --bind ${at('kubelet')} /var/lib/kubelet && exec sleep infinity`,
    ]);
    await until('its mounts', async () => this.#mounts().includes(' /var/lib/kubelet '));
    this.run('containerd-2', 'containerd', ['--config', at('containerd.toml')]);
    await until('its container runtime', () => importsImage(at('containerd.sock')), 60_000);
    this.run('kubelet-2', version.program('kubelet'), [
      `--config=${at('kubelet.yaml')}`,
      `--kubeconfig=${kubeconfig}`,
      `--hostname-override=${SECOND_NODE}`,
      '--v=2',
    ]);
    await until('the second node to be ready', async () =>
      /\sReady\s/.test(await this.#cluster.kubectl('get', 'node', SECOND_NODE)),
    );
  }

  /** Starts a daemon on the node. */
  run(name: string, command: string, args: readonly string[]): void {
    const { processes } = this.#cluster;
    processes.start(name, 'nsenter', [`--mount=/proc/${processes.pidOf(SECOND_NODE)}/ns/mnt`, command, ...args]);
  }

  /** Ends the node; its pods must have been removed. */
  async stop(): Promise<void> {
    for (const name of ['kubelet-2', 'containerd-2', SECOND_NODE]) await this.#cluster.processes.stop(name);
    await this.#cluster.kubectl('delete', 'node', SECOND_NODE, '--ignore-not-found');
  }

  #mounts(): string {
    return readFileSync(`/proc/${this.#cluster.processes.pidOf(SECOND_NODE)}/mounts`, 'utf8');
  }
}

function importsImage(socket: string): boolean {
  importImage(socket, BUSYBOX_IMAGE);
  return true;
}
