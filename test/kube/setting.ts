import { Agent } from 'node:http';
import type { Test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { KubeClient, type KubeClientOptions } from '../../src/kube/client.js';
import type { Access, Credentials } from '../../src/kube/credentials.js';
import { INFORMER_TIMING, type InformerTiming } from '../../src/kube/informer.js';
import { ApiServer, type ApiServerOptions } from '../harness/api-server/api-server.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { timeLimit } from '../harness/time-factor.js';

export const NODE = 'node1';

/** A programmable API server that lives as long as the test. */
export async function apiServer(t: Test, options?: ApiServerOptions): Promise<ApiServer> {
  const server = new ApiServer(options);
  await server.start();
  t.teardown(() => server.stop());
  return server;
}

/** Plain HTTP without credentials. */
export function openAccess(url: string, token: () => string | null = () => null): Credentials {
  const agent = new Agent({ keepAlive: true });
  return {
    server: new URL(url),
    access: async (): Promise<Access> => {
      const current = token();
      return { agent, headers: current === null ? {} : { authorization: `Bearer ${current}` } };
    },
    distrust: () => undefined,
    close: () => agent.destroy(),
  };
}

export function clientOf(t: Test, url: string, options: Partial<KubeClientOptions> = {}): KubeClient {
  const client = new KubeClient({
    credentials: openAccess(url),
    clock: systemClock,
    userAgent: 'test',
    timeoutMs: timeLimit(60_000),
    ...options,
  });
  t.teardown(() => client.close());
  return client;
}

/** Every wait takes next to no time. */
export const QUICK: InformerTiming = { ...INFORMER_TIMING, floorMs: 1, backoffMs: 1, longestBackoffMs: 20 };

export interface PodSpec {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly node?: string | null;
  readonly containers?: readonly ContainerSpec[];
  readonly initContainers?: readonly ContainerSpec[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly createdAt?: string;
  readonly deletedAt?: string;
  readonly owner?: { readonly kind: string; readonly name: string; readonly controller?: boolean };
  readonly status?: Readonly<Record<string, unknown>>;
}

export interface ContainerSpec {
  readonly name: string;
  readonly cores?: number | string;
  readonly memory?: number | string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A pod as the API server shows it. */
export function podObject(spec: PodSpec): KubeObject {
  const { owner } = spec;
  return {
    metadata: {
      name: spec.name,
      namespace: spec.namespace ?? 'default',
      ...(spec.uid === undefined ? {} : { uid: spec.uid }),
      ...(spec.createdAt === undefined ? {} : { creationTimestamp: spec.createdAt }),
      ...(spec.deletedAt === undefined ? {} : { deletionTimestamp: spec.deletedAt }),
      ...(spec.annotations === undefined ? {} : { annotations: spec.annotations }),
      ...(spec.labels === undefined ? {} : { labels: spec.labels }),
      ...(owner === undefined
        ? {}
        : {
            ownerReferences: [
              {
                apiVersion: 'apps/v1',
                kind: owner.kind,
                name: owner.name,
                uid: `owner-${owner.name}`,
                controller: owner.controller ?? true,
              },
            ],
          }),
    },
    spec: {
      ...(spec.node === null ? {} : { nodeName: spec.node ?? NODE }),
      containers: (spec.containers ?? [{ name: 'main', cores: 30, memory: 16 }]).map(containerObject),
      ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(containerObject) }),
    },
    status: { phase: 'Pending', ...spec.status },
  };
}

function containerObject(spec: ContainerSpec): unknown {
  const limits = {
    ...(spec.cores === undefined ? {} : { 'tencent.com/vcuda-core': String(spec.cores) }),
    ...(spec.memory === undefined ? {} : { 'tencent.com/vcuda-memory': String(spec.memory) }),
  };
  const env = Object.entries(spec.env ?? {}).map(([name, value]) => ({ name, value }));
  return { name: spec.name, image: 'busybox', resources: { limits, requests: limits }, env };
}
