import { GROUP_KIND, API_VERSION } from '../../src/kube/quota/names.js';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import { quotaServer } from '../../test/quota-controller/setting.js';

/** What the API server holds: this many Deployments, evenly in this many groups. */
const [workloads, groups] = [Number(process.argv[2]), Number(process.argv[3])];

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
process.on('disconnect', () => process.exit());
process.send?.(server.url);

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
