import { API_GROUP } from '../../src/kube/quota/names.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { DRA_TYPES } from '../harness/api-server/dra-types.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { deviceName, DRIVER_NAME, poolName } from '../../src/gpu/claims/names.js';

/** Makes the server serve the custom resources of quota. */
export function serveQuota(server: ApiServer): void {
  for (const [plural, kind] of [
    ['bizgroupresourcequotas', 'BizGroupResourceQuota'],
    ['consumers', 'Consumer'],
    ['allocations', 'Allocation'],
    ['bizgroupledgers', 'BizGroupLedger'],
    ['bizgrouptransactions', 'BizGroupTransaction'],
  ] as const)
    server.define({ group: API_GROUP, version: 'v1', plural, kind, namespaced: false, custom: true });
}

/** Makes the server serve resource claims. */
export function serveClaims(server: ApiServer): void {
  server.define(...DRA_TYPES);
}

export interface GroupOptions {
  readonly parent?: string;
  readonly hard?: Readonly<Record<string, string>>;
  /** Without it, the quota service has not reported yet. */
  readonly status?: Readonly<Record<string, unknown>>;
}

/** A quota group; its status is as the leader of the quota service writes it. */
export function groupObject(name: string, { parent = '', hard = {}, status }: GroupOptions = {}): KubeObject {
  return {
    metadata: { name, uid: `group-${name}` },
    spec: { parentBizGroup: parent, hard },
    ...(status === undefined ? {} : { status }),
  };
}

/** A condition of a status. */
export function condition(type: string, status: string, message: string): object {
  return { type, status, reason: 'Test', message, lastTransitionTime: '2026-10-01T10:00:00Z' };
}

export function consumerObject(name: string, spec: Readonly<Record<string, unknown>> = {}): KubeObject {
  return { metadata: { name, uid: `consumer-${name}` }, spec };
}

export function allocationObject(name: string, status: Readonly<Record<string, unknown>>): KubeObject {
  return { metadata: { name, uid: `allocation-${name}` }, status };
}

export interface EventOptions {
  readonly namespace?: string;
  readonly pod?: string;
  readonly type?: string;
  readonly component?: string;
  readonly at?: string;
  readonly count?: number;
}

/** An event about a pod, or about a quota group without one. */
export function eventObject(name: string, reason: string, message: string, options: EventOptions = {}): KubeObject {
  const { namespace = 'default', pod, type = 'Normal', component = 'gpu-manager', count = 1 } = options;
  return {
    metadata: { name, namespace, uid: `event-${namespace}-${name}` },
    involvedObject:
      pod === undefined
        ? { kind: 'BizGroupResourceQuota', name: 'research' }
        : { kind: 'Pod', namespace, name: pod, uid: `${namespace}-${pod}` },
    ...{ type, reason, message, count },
    lastTimestamp: options.at ?? '2026-10-01T10:00:00Z',
    source: { component },
    reportingComponent: component,
  };
}

export interface ClaimOptions {
  readonly namespace?: string;
  readonly deviceClass?: string;
  readonly driver?: string;
  readonly cores?: number;
  readonly memoryGib?: number;
  /** Node and index of its GPU, as `nodeObject` names them; without it, the claim waits. */
  readonly on?: { readonly node: string; readonly gpu: number };
  /** Pods that it is reserved for. */
  readonly pods?: readonly string[];
}

/** A resource claim that asks for a share of one GPU. */
export function claimObject(name: string, options: ClaimOptions = {}): KubeObject {
  const { namespace = 'default', deviceClass = 'vgpu.tencent.com', driver = DRIVER_NAME, on, pods = [] } = options;
  const amounts = { cores: String(options.cores ?? 30), memory: `${options.memoryGib ?? 4}Gi` };
  return {
    metadata: { name, namespace, uid: `claim-${namespace}-${name}`, creationTimestamp: '2026-10-01T10:00:00Z' },
    spec: {
      devices: {
        requests: [{ name: 'gpu', exactly: { deviceClassName: deviceClass, capacity: { requests: amounts } } }],
      },
    },
    ...(on === undefined
      ? {}
      : {
          status: {
            allocation: {
              devices: {
                results: [
                  {
                    request: 'gpu',
                    driver,
                    pool: poolName(on.node),
                    device: deviceName(`GPU-${on.node}-${on.gpu}`),
                    consumedCapacity: amounts,
                  },
                ],
              },
            },
            reservedFor: pods.map((pod) => ({ resource: 'pods', name: pod, uid: `${namespace}-${pod}` })),
          },
        }),
  };
}

/** A pod that uses a claim, and asks for no GPU otherwise. */
export function claimingPod(pod: KubeObject, claim: string): KubeObject {
  const spec = pod.spec as Readonly<Record<string, unknown>>;
  return {
    ...pod,
    spec: {
      ...spec,
      containers: [{ name: 'main', image: 'app', resources: { claims: [{ name: 'gpu' }] } }],
      resourceClaims: [{ name: 'gpu', resourceClaimName: claim }],
    },
  };
}
