import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import { timestamp, type JsonRecord } from '../kube/json.js';
import { GROUP_LABEL } from '../manifests/group-label.js';

/** A workload of the simulated cluster: its pods, and what each of them asks for. */
export interface DemoWorkload {
  readonly namespace: string;
  readonly kind: 'ReplicaSet' | 'Job' | 'StatefulSet';
  readonly name: string;
  /** Names of its pods behind the name of the workload. */
  readonly pods: readonly string[];
  readonly cores: number;
  readonly memoryGib: number;
  /** The label `accelerator` of the nodes that it may use. */
  readonly accelerator: string;
  readonly priority?: number;
  /** How long ago it was created, and how long it may run. */
  readonly ageMinutes: number;
  readonly deadlineMinutes?: number;
  /** Its pods start together or not at all. */
  readonly isGang?: boolean;
}

/** Nodes beside the one whose GPUs have programs. */
export const DEMO_NODES = [
  {
    name: 'gpu-h100-1',
    accelerator: 'h100',
    gpus: 8,
    model: 'NVIDIA H100 80GB HBM3',
    memoryGib: 80,
    capability: '9.0',
  },
  { name: 'gpu-l40s-1', accelerator: 'l40s', gpus: 4, model: 'NVIDIA L40S', memoryGib: 48, capability: '8.9' },
] as const;

type Amounts = Omit<DemoWorkload, 'namespace' | 'kind' | 'name' | 'pods'>;

export function workload(
  namespace: string,
  kind: DemoWorkload['kind'],
  name: string,
  pods: readonly string[],
  amounts: Amounts,
): DemoWorkload {
  return { namespace, kind, name, pods, ...amounts };
}

/** In the order of their arrival. */
export const DEMO_WORKLOADS: readonly DemoWorkload[] = [
  workload('research', 'Job', 'llm-finetune', ['-0-q8x2v'], {
    cores: 400,
    memoryGib: 320,
    accelerator: 'h100',
    ageMinutes: 222,
    deadlineMinutes: 360,
  }),
  workload('vision', 'ReplicaSet', 'detector-7c9f6d8b54', ['-x2x4k', '-m9zqp'], {
    cores: 50,
    memoryGib: 20,
    accelerator: 'h100',
    priority: 200,
    ageMinutes: 3_140,
  }),
  workload('search', 'ReplicaSet', 'ranker-6b5c8f7d9c', ['-4hx7t', '-k2v8w', '-zl5nd'], {
    cores: 30,
    memoryGib: 16,
    accelerator: 'h100',
    priority: 200,
    ageMinutes: 1_530,
  }),
  workload('research', 'StatefulSet', 'notebook-ines', ['-0'], {
    cores: 20,
    memoryGib: 8,
    accelerator: 'h100',
    ageMinutes: 47,
  }),
  workload('vision', 'Job', 'video-index', ['-0-r6m9c'], {
    cores: 100,
    memoryGib: 80,
    accelerator: 'h100',
    ageMinutes: 18,
  }),
  workload('search', 'ReplicaSet', 'speech-5d8c7b6f4f', ['-c8w2j', '-tq4vz', '-v7r5m'], {
    cores: 50,
    memoryGib: 20,
    accelerator: 'l40s',
    priority: 200,
    ageMinutes: 4_410,
  }),
  workload('vision', 'ReplicaSet', 'segmenter-84d9f5c6b7', ['-hn6xl'], {
    cores: 100,
    memoryGib: 40,
    accelerator: 'l40s',
    priority: 200,
    ageMinutes: 610,
  }),
  workload('search', 'Job', 'embedder', ['-0-wd3kf'], { cores: 40, memoryGib: 12, accelerator: 'l40s', ageMinutes: 9 }),
  workload('research', 'Job', 'llm-pretrain', ['-0-b7t5q'], {
    cores: 600,
    memoryGib: 480,
    accelerator: 'h100',
    priority: 100,
    ageMinutes: 12,
  }),
  workload('search', 'Job', 'asr-train', ['-0-f2j9n', '-1-p6c8s', '-2-x4d7z'], {
    cores: 100,
    memoryGib: 40,
    accelerator: 'l40s',
    ageMinutes: 5,
    isGang: true,
  }),
];

/** What a pod of the workload asks for, as its manifest says it. */
export function requestsOf({ cores, memoryGib }: Pick<DemoWorkload, 'cores' | 'memoryGib'>): Record<string, string> {
  return {
    cpu: '4',
    memory: '16Gi',
    [CORE_RESOURCE]: String(cores),
    [MEMORY_RESOURCE]: String((memoryGib * 2 ** 30) / MEMORY_BLOCK_BYTES),
  };
}

/** Plurals and API versions of the kinds of workloads. */
export const DEMO_KINDS = {
  ReplicaSet: { plural: 'replicasets', apiVersion: 'apps/v1' },
  StatefulSet: { plural: 'statefulsets', apiVersion: 'apps/v1' },
  Job: { plural: 'jobs', apiVersion: 'batch/v1' },
} as const;

/** The workload as its author wrote it. */
export function manifestOf(wanted: DemoWorkload): JsonRecord {
  const { namespace, kind, name, accelerator, pods } = wanted;
  const amounts = requestsOf(wanted);
  const template = {
    spec: {
      nodeSelector: { accelerator },
      containers: [{ name: 'main', image: name, resources: { limits: amounts, requests: amounts } }],
    },
  };
  return {
    apiVersion: DEMO_KINDS[kind].apiVersion,
    kind,
    metadata: { name, namespace, uid: `${namespace}-${name}`, labels: { [GROUP_LABEL]: namespace } },
    spec: { ...(kind === 'Job' ? { parallelism: pods.length } : { replicas: pods.length }), template },
  };
}

/** A pod of the workload as its controller makes it. */
export function podOfWorkload(wanted: DemoWorkload, suffix: string, nowMs: number): JsonRecord {
  const { namespace, kind, name, accelerator, priority = 0, ageMinutes, deadlineMinutes, isGang, pods } = wanted;
  const amounts = requestsOf(wanted);
  return {
    metadata: {
      ...{ name: `${name}${suffix}`, namespace, uid: `${namespace}-${name}${suffix}` },
      creationTimestamp: timestamp(nowMs - ageMinutes * 60_000),
      labels: {
        [GROUP_LABEL]: namespace,
        ...(isGang === true
          ? {
              'pod-group.scheduling.sigs.k8s.io': name,
              'pod-group.scheduling.sigs.k8s.io/min-available': String(pods.length),
            }
          : {}),
      },
      ownerReferences: [
        { apiVersion: DEMO_KINDS[kind].apiVersion, kind, name, uid: `${namespace}-${name}`, controller: true },
      ],
    },
    spec: {
      ...{ priority, nodeSelector: { accelerator } },
      ...(deadlineMinutes === undefined ? {} : { activeDeadlineSeconds: deadlineMinutes * 60 }),
      containers: [{ name: 'main', image: name, resources: { limits: amounts, requests: amounts } }],
    },
    status: { phase: 'Pending' },
  };
}
