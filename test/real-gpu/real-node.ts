import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFile } from '../../src/host/package-files.js';
import { MEMORY_RESOURCE, CORE_RESOURCE } from '../../src/gpu/resources.js';
import { ApiObjects } from '../../src/simulation/api-objects.js';
import { KubeletEmulator } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { Container } from './container.js';

const NODE_NAME = 'real';
const NAMESPACE = 'default';

/** `gpu-manager run --driver=nvidia` on this machine's GPUs, with an emulated kubelet and an emulated API server. */
export class RealNode {
  readonly kubelet: KubeletEmulator;
  readonly logPath: string;
  readonly #objects = new ApiObjects();
  readonly #directory: string;
  readonly #port: number;
  readonly #written = new Map<string, Parameters<ApiObjects['put']>[1] & { readonly metadata: object }>();
  #agent: ChildProcess | null = null;
  #pods = 0;

  /** Files lie in `directory`, whose path must be short because sockets are in it. */
  constructor(directory: string, port: number) {
    const at = (name: string): string => join(directory, name);
    mkdirSync(directory, { recursive: true });
    this.#directory = directory;
    this.#port = port;
    this.logPath = at('agent.log');
    this.kubelet = new KubeletEmulator({ directory: at('plugins'), podResourcesSocket: at('pod-resources.sock') });
  }

  /** The flags that tell commands of this node from those of the machine. */
  get flags(): readonly string[] {
    const at = (name: string): string => join(this.#directory, name);
    return [
      '--driver=nvidia',
      `--kubeconfig=${at('kubeconfig')}`,
      '--share-mode=true',
      `--hostname-override=${NODE_NAME}`,
      `--volume-config=${packageFile('etc/volume.conf')}`,
      `--virtual-manager-path=${at('vm')}`,
      `--device-plugin-path=${at('plugins')}`,
      `--pod-resources-socket=${at('pod-resources.sock')}`,
      `--checkpoint-path=${at('checkpoint')}`,
      `--display-socket=${at('display.sock')}`,
      `--query-port=${this.#port}`,
    ];
  }

  /** Starts the agent, and resolves when the kubelet has both resources; fails if that takes longer than `seconds`. */
  async start(seconds: number): Promise<void> {
    await this.#objects.start();
    this.#objects.put('nodes', { metadata: { name: NODE_NAME } });
    writeFileSync(join(this.#directory, 'kubeconfig'), this.#objects.kubeconfig());
    await this.kubelet.start();
    const log = openSync(this.logPath, 'a');
    this.#agent = spawn(process.execPath, [packageFile('dist/src/cli/main.js'), 'run', ...this.flags], {
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    await this.kubelet.ready(seconds * 1000);
  }

  /** Admits a pod of one container, and starts it; `beforeStart` is called when the pod has its UID. */
  async run(
    cores: number,
    memoryBlocks: number,
    annotations: Readonly<Record<string, string>> = {},
    beforeStart: (podUid: string) => void = () => undefined,
  ): Promise<Container> {
    this.#pods += 1;
    const name = `pod-${this.#pods}`;
    const container = { name: 'main', cores, memoryBlocks };
    const pod: EmulatedPod = {
      uid: `uid-${name}`,
      namespace: NAMESPACE,
      name,
      annotations,
      initContainers: [],
      containers: [container],
    };
    const limits = { [CORE_RESOURCE]: String(cores), [MEMORY_RESOURCE]: String(memoryBlocks) };
    const object = {
      metadata: { uid: pod.uid, namespace: NAMESPACE, name, annotations },
      spec: { nodeName: NODE_NAME, containers: [{ name: container.name, resources: { limits } }] },
      status: { phase: 'Pending' },
    };
    this.#written.set(name, object);
    this.#objects.put('pods', object);
    beforeStart(pod.uid);
    const admission = await this.kubelet.admit(pod);
    if (!admission.ok) throw new Error(`${name} was refused: ${admission.message}`);
    await this.kubelet.startContainer(pod.uid, container.name);
    const [given] = admission.containers;
    if (given === undefined) throw new Error(`${name} was given nothing`);
    return new Container(name, given);
  }

  /** Changes the annotations of a pod. */
  annotate({ pod }: Container, annotations: Readonly<Record<string, string>>): void {
    const object = this.#written.get(pod);
    if (object === undefined) throw new Error(`no pod ${pod}`);
    this.#objects.put('pods', { ...object, metadata: { ...object.metadata, annotations } });
  }

  /** Ends a pod whose processes have ended. */
  remove({ pod }: Container): void {
    this.#written.delete(pod);
    this.kubelet.remove(`uid-${pod}`);
    this.#objects.remove('pods', NAMESPACE, pod);
  }

  /** What the agent's HTTP server answers. */
  async page(path: string): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.#port}${path}`)).text();
  }

  async stop(): Promise<void> {
    const agent = this.#agent;
    this.#agent = null;
    if (agent !== null && agent.exitCode === null && agent.signalCode === null) {
      const gone = once(agent, 'exit');
      agent.kill('SIGTERM');
      await gone;
    }
    await this.kubelet.stop();
    if (this.#objects.isListening) await this.#objects.stop();
  }
}
