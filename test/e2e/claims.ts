import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeLimits } from '../../src/abi/limits-file.js';
import { MEMORY_BLOCK_BYTES } from '../../src/gpu/resources.js';
import type { AgentProcess } from './agent-process.js';
import { BUSYBOX_IMAGE, type TestCluster } from './cluster.js';
import { readShown, SHOW, type Shown } from './pods.js';
import { until } from '../harness/eventually.js';

export interface PodStatus {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly conditions?: readonly { readonly type: string; readonly message?: string }[];
  };
}

export interface SliceObject {
  readonly metadata: { readonly uid: string };
  readonly spec: {
    readonly pool: { readonly name: string; readonly generation: number };
    readonly devices: readonly {
      readonly name: string;
      readonly allowMultipleAllocations?: boolean;
      readonly attributes: Readonly<Record<string, { readonly string?: string; readonly int?: number }>>;
      readonly capacity: Readonly<Record<string, { readonly value: string; readonly requestPolicy?: object }>>;
      readonly taints?: readonly object[];
    }[];
  };
}

export interface ClaimRequest {
  readonly name: string;
  readonly exactly?: object;
  readonly firstAvailable?: readonly object[];
}

export const template = (name: string, requests: readonly ClaimRequest[], rest: object = {}): object => ({
  apiVersion: 'resource.k8s.io/v1',
  kind: 'ResourceClaimTemplate',
  metadata: { name },
  spec: { spec: { devices: { requests, ...rest } } },
});

export const share = (cores: number, memory: string, name = 'gpu', more: object = {}): ClaimRequest => ({
  name,
  exactly: { deviceClassName: 'vgpu.tencent.com', capacity: { requests: { cores: String(cores), memory } }, ...more },
});

export interface ClaimContainer {
  readonly name: string;
  readonly claims: readonly { readonly name: string; readonly request?: string }[];
  readonly command?: string;
}

/** A pod with these claims. Its containers show what they received, and sleep. */
export function claimPod(
  name: string,
  claims: readonly object[],
  containers: readonly ClaimContainer[],
  initContainers: readonly ClaimContainer[] = [],
): object {
  const convert = (container: ClaimContainer): object => ({
    name: container.name,
    image: BUSYBOX_IMAGE,
    imagePullPolicy: 'Never',
    command: ['sh', '-c', container.command ?? `${SHOW}; sleep 100000`],
    resources: { claims: container.claims },
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { suite: 'gpu-manager' } },
    spec: {
      hostNetwork: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      resourceClaims: claims,
      containers: containers.map(convert),
      ...(initContainers.length > 0 ? { initContainers: initContainers.map(convert) } : {}),
    },
  };
}

/** A pod of one container with a claim of its own, made from a template. */
export const single = (name: string, templateName: string, command?: string): object =>
  claimPod(
    name,
    [{ name: 'g', resourceClaimTemplateName: templateName }],
    [{ name: 'main', claims: [{ name: 'g' }], ...(command === undefined ? {} : { command }) }],
  );

/** A pod with a claim that exists independently of it. */
export const sharing = (name: string, claim: string): object =>
  claimPod(name, [{ name: 'g', resourceClaimName: claim }], [{ name: 'main', claims: [{ name: 'g' }] }]);

/** The CDI files of claims on this machine. */
export const specFiles = (): string[] =>
  existsSync('/etc/cdi') ? readdirSync('/etc/cdi').filter((name) => name.startsWith('tencent.com-vcuda_')) : [];

/** Pods with claims on a test cluster, and what its agent made for them. */
export class ClaimPods {
  readonly #cluster: TestCluster;
  readonly #agent: AgentProcess;

  constructor(cluster: TestCluster, agent: AgentProcess) {
    this.#cluster = cluster;
    this.#agent = agent;
  }

  readonly phase = (name: string, wanted: string): Promise<PodStatus> =>
    until(
      `pod ${name} to be ${wanted}`,
      async () => {
        const status = await this.#cluster.get<PodStatus>('pod', name);
        return status.status.phase === wanted ? status : null;
      },
      120_000,
    );

  readonly shown = async (name: string, container = 'main'): Promise<Shown> =>
    readShown(await this.#cluster.kubectl('logs', name, '-c', container));

  readonly remove = async (...names: readonly string[]): Promise<void> => {
    await this.#cluster.kubectl('delete', 'pod', ...names, '--wait=true', '--timeout=60s');
  };

  readonly slices = async (): Promise<readonly SliceObject[]> =>
    (JSON.parse(await this.#cluster.kubectl('get', 'resourceslices', '-o', 'json')) as { items: SliceObject[] }).items;

  /** The device files of GPUs that a container sees. */
  readonly gpuNodes = async (name: string, container = 'main'): Promise<readonly string[]> => {
    const seen = await until(`the output of ${name}`, async () => {
      const text = await this.shown(name, container);
      return text.text.includes('READABLE') ? text : null;
    });
    return seen.devices.filter((path) => /nvidia\d+$/.test(path));
  };

  /** Resolves when the pod's condition says that no node has these devices. */
  readonly isUnschedulable = async (name: string): Promise<void> => {
    await until(`${name} to be unschedulable`, async () => {
      const { status } = await this.#cluster.get<PodStatus>('pod', name);
      return status.conditions?.some(({ message }) => /cannot allocate all claims/.test(message ?? '')) === true;
    });
  };

  /** Share and blocks of 256 MiB of the limits on disk, one entry for each slice, sorted. */
  readonly limitsOnDisk = (): string[] => {
    const base = join(this.#agent.directory, 'vm');
    return readdirSync(base)
      .filter((name) => /^[0-9a-f]{16}$/.test(name))
      .map((id) => {
        const decoded = decodeLimits(readFileSync(join(base, id, 'vgpu.limits')));
        if (!decoded.ok) return decoded.reason;
        return decoded.limits.devices
          .map(
            ({ share: cores, memoryBytes }) =>
              `${cores}/${memoryBytes === null ? 'all' : memoryBytes / MEMORY_BLOCK_BYTES}`,
          )
          .join('+');
      })
      .sort();
  };
}
