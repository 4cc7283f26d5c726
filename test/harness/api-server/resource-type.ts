import type { CustomSchema } from './custom-schema.js';

/** One kind of object that the server stores: a built-in one or a custom resource. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Lower-case plural, as in URLs. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly shortNames?: readonly string[];
  /** With a status subresource, `status` changes through it alone and everything else through the object alone. */
  readonly statusSubresource?: boolean;
  /** The status of a new object; where absent, the status as sent. */
  readonly initialStatus?: () => unknown;
  /** metadata.generation counts changes outside metadata and status. */
  readonly generation?: boolean;
  /** Fields besides metadata.name and metadata.namespace that field selectors support. */
  readonly selectableFields?: readonly string[];
  /**
   * Custom resources: an update needs a resourceVersion, strategic merge patches are refused, list items carry their
   * kind.
   */
  readonly custom?: boolean;
  /** The schema of a custom resource: unknown fields are dropped, invalid values refused. */
  readonly schema?: CustomSchema;
  /** Paths of the fields of the scale subresource, dotted. */
  readonly scale?: { readonly specReplicas: string; readonly statusReplicas: string };
  /** An object that is bound to a node stays, marked, until a deletion without grace period: pods. */
  readonly deletedGracefully?: boolean;
}

const SCALE = { specReplicas: 'spec.replicas', statusReplicas: 'status.replicas' };

function workload(plural: string, kind: string, shortName: string): ResourceType {
  return {
    group: 'apps',
    version: 'v1',
    plural,
    kind,
    namespaced: true,
    shortNames: [shortName],
    statusSubresource: true,
    generation: true,
    scale: SCALE,
  };
}

/** The resources that this project uses on a cluster. ApiServer.define adds more. */
export const BUILT_IN: readonly ResourceType[] = [
  {
    group: '',
    version: 'v1',
    plural: 'pods',
    kind: 'Pod',
    namespaced: true,
    shortNames: ['po'],
    statusSubresource: true,
    deletedGracefully: true,
    initialStatus: () => ({ phase: 'Pending', qosClass: 'BestEffort' }),
    selectableFields: [
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'status.phase',
      'status.podIP',
      'status.nominatedNodeName',
    ],
  },
  {
    group: '',
    version: 'v1',
    plural: 'nodes',
    kind: 'Node',
    namespaced: false,
    shortNames: ['no'],
    statusSubresource: true,
    selectableFields: ['spec.unschedulable'],
  },
  {
    group: '',
    version: 'v1',
    plural: 'events',
    kind: 'Event',
    namespaced: true,
    shortNames: ['ev'],
    selectableFields: [
      'involvedObject.kind',
      'involvedObject.namespace',
      'involvedObject.name',
      'involvedObject.uid',
      'involvedObject.apiVersion',
      'involvedObject.resourceVersion',
      'involvedObject.fieldPath',
      'reason',
      'reportingComponent',
      'source',
      'type',
    ],
  },
  {
    group: '',
    version: 'v1',
    plural: 'namespaces',
    kind: 'Namespace',
    namespaced: false,
    shortNames: ['ns'],
    statusSubresource: true,
    selectableFields: ['status.phase'],
  },
  { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true, shortNames: ['cm'] },
  { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true, selectableFields: ['type'] },
  {
    group: '',
    version: 'v1',
    plural: 'services',
    kind: 'Service',
    namespaced: true,
    shortNames: ['svc'],
    statusSubresource: true,
  },
  {
    group: '',
    version: 'v1',
    plural: 'resourcequotas',
    kind: 'ResourceQuota',
    namespaced: true,
    shortNames: ['quota'],
    statusSubresource: true,
  },
  { group: '', version: 'v1', plural: 'serviceaccounts', kind: 'ServiceAccount', namespaced: true, shortNames: ['sa'] },
  {
    group: '',
    version: 'v1',
    plural: 'replicationcontrollers',
    kind: 'ReplicationController',
    namespaced: true,
    shortNames: ['rc'],
    statusSubresource: true,
    generation: true,
    scale: SCALE,
  },
  workload('deployments', 'Deployment', 'deploy'),
  workload('replicasets', 'ReplicaSet', 'rs'),
  workload('statefulsets', 'StatefulSet', 'sts'),
  {
    group: 'apps',
    version: 'v1',
    plural: 'daemonsets',
    kind: 'DaemonSet',
    namespaced: true,
    shortNames: ['ds'],
    statusSubresource: true,
    generation: true,
  },
  {
    group: 'batch',
    version: 'v1',
    plural: 'jobs',
    kind: 'Job',
    namespaced: true,
    statusSubresource: true,
    generation: true,
    selectableFields: ['status.successful'],
  },
  {
    group: 'autoscaling',
    version: 'v1',
    plural: 'horizontalpodautoscalers',
    kind: 'HorizontalPodAutoscaler',
    namespaced: true,
    shortNames: ['hpa'],
    statusSubresource: true,
  },
  {
    group: 'policy',
    version: 'v1',
    plural: 'poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    namespaced: true,
    shortNames: ['pdb'],
    statusSubresource: true,
    generation: true,
  },
  { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true },
  { group: '', version: 'v1', plural: 'limitranges', kind: 'LimitRange', namespaced: true, shortNames: ['limits'] },
  {
    group: '',
    version: 'v1',
    plural: 'persistentvolumeclaims',
    kind: 'PersistentVolumeClaim',
    namespaced: true,
    shortNames: ['pvc'],
    statusSubresource: true,
  },
  { group: 'node.k8s.io', version: 'v1', plural: 'runtimeclasses', kind: 'RuntimeClass', namespaced: false },
  { group: 'scheduling.k8s.io', version: 'v1', plural: 'priorityclasses', kind: 'PriorityClass', namespaced: false },
  {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    plural: 'mutatingwebhookconfigurations',
    kind: 'MutatingWebhookConfiguration',
    namespaced: false,
    generation: true,
  },
  {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    plural: 'validatingwebhookconfigurations',
    kind: 'ValidatingWebhookConfiguration',
    namespaced: false,
    generation: true,
  },
  {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    namespaced: false,
    shortNames: ['crd'],
    statusSubresource: true,
    generation: true,
  },
];

export function apiVersionOf(type: ResourceType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** `/api/v1` or `/apis/<group>/<version>`. */
export function groupPath(type: ResourceType): string {
  return type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
}

/** `pods`, `deployments.apps`: the name of the resource in errors and permissions. */
export function resourceName(type: ResourceType): string {
  return type.group === '' ? type.plural : `${type.plural}.${type.group}`;
}
