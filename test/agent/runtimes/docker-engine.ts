import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import Docker from 'dockerode';
import { LABEL, type ContainerRuntime } from '../../../src/agent/runtimes/container.js';
import { DockerRuntime } from '../../../src/agent/runtimes/docker-runtime.js';
import { Daemon, unmountBelow } from './daemon.js';
import type { ContainerSpec, Engine, ExecResult } from './engine.js';
import { buildRootFileSystem, packLayer, TEST_IMAGE, type ImageFile } from './test-image.js';

export const DOCKER_PROGRAMS = ['dockerd', 'containerd', 'runc', 'tar'];

/** A docker daemon of the test's own, without networks. */
export class DockerEngine implements Engine {
  readonly name = 'docker';
  #daemon: Daemon | null = null;
  #scratch = '';
  #docker = new Docker({ socketPath: '/nonexistent' });

  async start(scratch: string, files: readonly ImageFile[] = []): Promise<void> {
    this.#scratch = scratch;
    const socket = join(scratch, 'docker.sock');
    const directories = [
      '--data-root',
      join(scratch, 'data'),
      '--exec-root',
      join(scratch, 'exec'),
      '--pidfile',
      join(scratch, 'docker.pid'),
    ];
    // Live restore: containers outlive the daemon, as those of a kubelet have to.
    const options = [
      '--host',
      `unix://${socket}`,
      '--bridge=none',
      '--iptables=false',
      '--ip6tables=false',
      '--ip-masq=false',
      '--storage-driver=vfs',
      '--live-restore',
    ];
    this.#daemon = new Daemon(socket, ['dockerd', ...directories, ...options], join(scratch, 'dockerd.log'), () =>
      this.connect(),
    );
    await this.#daemon.start();
    this.#docker = new Docker({ socketPath: socket });
    const layer = packLayer(scratch, buildRootFileSystem(scratch, files));
    const [repo, tag] = TEST_IMAGE.split(':');
    const progress = await this.#docker.importImage(createReadStream(layer), { repo, tag });
    progress.resume();
    await new Promise((resolve) => progress.once('end', resolve));
  }

  connect(): Promise<ContainerRuntime> {
    return DockerRuntime.connect(this.#daemon?.socket ?? '');
  }

  async restart(): Promise<void> {
    await this.#daemon?.stop();
    await this.#daemon?.start();
  }

  async halt(): Promise<void> {
    await this.#daemon?.stop();
  }

  async run(spec: ContainerSpec): Promise<string> {
    const { pod, name } = spec;
    const container = await this.#docker.createContainer({
      name: `k8s_${name}_${pod.name}_${pod.namespace}_${pod.uid}_0`,
      Image: TEST_IMAGE,
      ...(spec.command === undefined ? {} : { Cmd: [...spec.command] }),
      Env: Object.entries(spec.environment ?? {}).map(([key, value]) => `${key}=${value}`),
      Labels: {
        [LABEL.podUid]: pod.uid,
        [LABEL.podNamespace]: pod.namespace,
        [LABEL.podName]: pod.name,
        [LABEL.containerName]: name,
      },
      ...(spec.user === undefined ? {} : { User: String(spec.user) }),
      HostConfig: {
        NetworkMode: 'none',
        ReadonlyRootfs: spec.readOnlyRoot ?? false,
        Binds: (spec.mounts ?? []).map(
          ({ hostPath, containerPath, writable }) => `${hostPath}:${containerPath}:${writable ? 'rw' : 'ro'}`,
        ),
        Devices: (spec.devices ?? []).map(({ hostPath, containerPath }) => ({
          PathOnHost: hostPath,
          PathInContainer: containerPath,
          CgroupPermissions: 'rw',
        })),
        ...(spec.hostNamespaces === true ? { PidMode: 'host', IpcMode: 'host' } : {}),
      },
    });
    await container.start();
    return container.id;
  }

  async exec(containerId: string, command: readonly string[]): Promise<ExecResult> {
    const exec = await this.#docker
      .getContainer(containerId)
      .exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true });
    const stream = await exec.start({});
    const output = new PassThrough();
    const chunks: Buffer[] = [];
    output.on('data', (chunk: Buffer) => chunks.push(chunk));
    this.#docker.modem.demuxStream(stream, output, output);
    await new Promise((resolve) => stream.once('end', resolve));
    const { ExitCode } = await exec.inspect();
    return { code: ExitCode ?? -1, output: Buffer.concat(chunks).toString() };
  }

  async end(containerId: string): Promise<void> {
    await this.#docker.getContainer(containerId).kill();
    await this.#docker.getContainer(containerId).wait();
  }

  async stop(): Promise<void> {
    if (this.#daemon === null) return;
    for (const { Id } of await this.#docker.listContainers({ all: true }))
      await this.#docker.getContainer(Id).remove({ force: true });
    await this.#daemon.stop();
    unmountBelow(this.#scratch);
  }
}
