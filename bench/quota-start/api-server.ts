import { GROUP_KIND, API_VERSION } from '../../src/kube/quota/names.js';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import { quotaServer } from '../../test/quota-controller/setting.js';

/** What the API server holds: this many Deployments, evenly in this many groups, and this many pods of theirs. */
const [workloads = 0, groups = 0, pods = 0] = process.argv.slice(2).map(Number);

/**
 * The test API server with groups and Deployments as a process of its own. Sends its URL to its parent, and ends with
 * it.
 */
const server = await quotaServer({ historyLimit: 200, recordsRequests: false });
for (let at = 0; at < groups; at++)
  server.seed('bizgroupresourcequotas', {
    apiVersion: API_VERSION,
    kind: GROUP_KIND,
    metadata: { name: `team-${at}` },
    spec: { hard: { 'limits.cpu': 100_000_000, 'limits.memory': '100Pi', pods: 100_000_000 } },
  });
for (let at = 0; at < workloads; at++) server.seed('deployments.apps', deployment(at));
for (let at = 0; at < Math.min(workloads, pods); at++) server.seed('replicasets.apps', replicaSet(at));
for (let at = 0; at < pods; at++) server.seed('pods', pod(at));
process.on('disconnect', () => process.exit());
process.send?.(server.url);

function ownedBy(plural: string, apiVersion: string, kind: string, at: number, name: string): object {
  const uid = server.read(plural, `space-${at % 500}`, name)?.metadata.uid ?? '';
  return { ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }] };
}

/** The ReplicaSet of a Deployment. As the guide says, only the Deployment has the label of its group. */
function replicaSet(at: number): Parameters<typeof server.seed>[1] {
  const { metadata, spec } = deployment(at);
  const labels = { app: `service-${at}`, tier: 'backend' };
  const owner = ownedBy('deployments.apps', 'apps/v1', 'Deployment', at, `service-${at}`);
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { ...metadata, name: `service-${at}-5d4f8c7b9`, labels, ...owner },
    spec,
  };
}

/** A pod of about 4 KB that runs. */
function pod(index: number): Parameters<typeof server.seed>[1] {
  const at = index % workloads;
  const { metadata, spec } = deployment(at);
  const template = (spec as { readonly template: { readonly spec: object } }).template;
  const owner = ownedBy('replicasets.apps', 'apps/v1', 'ReplicaSet', at, `service-${at}-5d4f8c7b9`);
  const labels = { app: `service-${at}`, tier: 'backend', 'pod-template-hash': '5d4f8c7b9' };
  const startedAt = '2026-11-28T00:00:00Z';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name: `service-${at}-5d4f8c7b9-${index.toString(36)}`, labels, ...owner },
    spec: { ...template.spec, nodeName: `node-${index % 200}` },
    status: {
      phase: 'Running',
      startTime: startedAt,
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
        type,
        status: 'True',
        lastTransitionTime: startedAt,
      })),
      containerStatuses: [{ name: 'main', ready: true, restartCount: 0, state: { running: { startedAt } } }],
    },
  };
}

/** A Deployment of about 4 KB, as tools write them: with managed fields, variables, probes and a status. */
function deployment(at: number): Parameters<typeof server.seed>[1] {
  const name = `service-${at}`;
  const labels = { app: name, tier: 'backend', [GROUP_LABEL]: `team-${at % groups}` };
  const variables = Array.from({ length: 12 }, (_, index) => ({
    name: `SETTING_${index}`,
    value: `http://upstream-${index}.example.svc.cluster.local:8080/${name}`,
  }));
  const fields = Object.fromEntries(
    variables.map(({ name: key }) => [`k:{"name":"${key}"}`, { '.': {}, 'f:value': {} }]),
  );
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name,
      namespace: `space-${at % 500}`,
      labels,
      annotations: { 'deployment.kubernetes.io/revision': '1' },
      managedFields: [
        { manager: 'kubectl', operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': { 'f:env': fields } } },
        {
          manager: 'kube-controller-manager',
          operation: 'Update',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:status': fields },
        },
      ],
    },
    spec: {
      replicas: 1 + (at % 3),
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels },
        spec: {
          containers: [
            {
              name: 'main',
              image: `registry.example/${name}:1.0`,
              env: variables,
              resources: {
                requests: { cpu: `${100 + (at % 7) * 50}m`, memory: '256Mi' },
                limits: { cpu: `${1 + (at % 4)}`, memory: '1Gi' },
              },
              readinessProbe: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 5 },
              volumeMounts: [{ name: 'config', mountPath: '/etc/config' }],
            },
          ],
          volumes: [{ name: 'config', configMap: { name } }],
        },
      },
    },
    status: { observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1 },
  };
}
