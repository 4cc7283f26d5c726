import { test } from 'tap';
import { KNOWN_KINDS } from '../../src/quota/index.js';
import { webhookConfiguration } from '../../src/quota-controller/admission/quota-webhooks.js';
import { resourceOf } from '../../src/quota/internal.js';
import { WORKLOAD_KIND } from '../../src/quota-controller/workloads/kueue-workload.js';
import {
  ALLOCATIONS_PATH,
  API_GROUP,
  CONSUMERS_PATH,
  GROUPS_PATH,
  LEDGERS_PATH,
  TRANSACTIONS_PATH,
} from '../../src/kube/quota/names.js';
import { readQuantity } from '../../src/manifests/quantity.js';
import type { Json } from '../harness/api-server/kube-object.js';
import { CRDS, manifestsOf } from './setting.js';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

test('the role allows watching every kind of workload, without wildcards', (t) => {
  const rules = ['etc/quota/deployment.yaml', 'etc/quota/arbitrator.yaml', 'etc/quota/kueue.yaml']
    .flatMap(manifestsOf)
    .flatMap((object) => (object as unknown as { readonly rules?: readonly Rule[] }).rules ?? []);
  for (const evaluator of [...KNOWN_KINDS.filter(({ charges }) => charges), WORKLOAD_KIND]) {
    const resource = resourceOf(evaluator);
    const rule = rules.find(
      ({ apiGroups, resources }) => apiGroups.includes(evaluator.apiGroup) && resources.includes(resource),
    );
    t.same(rule?.verbs, ['get', 'list', 'watch'], evaluator.resource);
  }
  t.notMatch(JSON.stringify(rules), /\*/);
  t.end();
});

test('the service creates no object whose creation a role cannot limit; the manifests contain it', (t) => {
  const objects = manifestsOf('etc/quota/deployment.yaml');
  const rules = objects.flatMap((object) => (object as unknown as { readonly rules?: readonly Rule[] }).rules ?? []);
  const created = rules
    .filter(({ verbs }) => verbs.includes('create'))
    .flatMap(({ resources }) => resources)
    // The API server answers a review and stores nothing.
    .filter((resource) => !resource.endsWith('reviews'));
  t.same(created.sort(), ['bizgroupledgers', 'bizgrouptransactions', 'events']);
  const kinds: Readonly<Record<string, string>> = {
    secrets: 'Secret',
    leases: 'Lease',
    validatingwebhookconfigurations: 'ValidatingWebhookConfiguration',
  };
  for (const { resources, verbs, resourceNames } of rules) {
    for (const resource of resources.filter((name) => name in kinds)) {
      t.same(verbs, ['get', 'update'], resource);
      for (const name of resourceNames ?? [''])
        t.ok(
          objects.some(({ kind, metadata }) => kind === kinds[resource] && metadata.name === name),
          `${resource} ${name}`,
        );
    }
  }
  t.end();
});

test('the definitions and the code name the same resources', (t) => {
  const served = CRDS.map(
    ({ spec }) =>
      spec as { readonly group: string; readonly scope: string; readonly names: { readonly plural: string } },
  );
  t.ok(served.every(({ group, scope }) => group === API_GROUP && scope === 'Cluster'));
  for (const path of [GROUPS_PATH, LEDGERS_PATH, TRANSACTIONS_PATH, CONSUMERS_PATH, ALLOCATIONS_PATH])
    t.ok(
      served.some(({ names }) => path.endsWith(`/${names.plural}`)),
      path,
    );
  t.end();
});

test('by default only requests that show a group fail while no replica answers', (t) => {
  const kinds = KNOWN_KINDS.filter(({ charges }) => charges).map((evaluator) => ({
    evaluator,
    resource: resourceOf(evaluator),
    path: '',
    shortNames: [],
    scalePath: null,
  }));
  const of = (unlabelled: 'Ignore' | 'Fail') =>
    webhookConfiguration({ name: 'q', target: { url: 'https://127.0.0.1:1' }, authority: 'PEM', kinds, unlabelled })
      .webhooks as readonly {
      readonly failurePolicy: string;
      readonly objectSelector?: object;
      readonly rules: readonly Rule[];
    }[];
  for (const { failurePolicy, objectSelector, rules } of of('Ignore')) {
    t.ok(
      failurePolicy === 'Ignore' ||
        objectSelector !== undefined ||
        rules.every(({ apiGroups }) => apiGroups.includes(API_GROUP)),
    );
  }
  t.ok(of('Fail').every(({ failurePolicy }) => failurePolicy === 'Fail'));
  t.ok(of('Ignore').some(({ rules }) => rules.some(({ resources }) => resources.includes('deployments/scale'))));
  t.end();
});

test('the heap is three quarters of the memory limit, so that it is collected in time', (t) => {
  const service = manifestsOf('etc/quota/deployment.yaml').find(({ kind }) => kind === 'Deployment');
  const { spec } = (service?.spec as Json)['template'] as {
    readonly spec: { readonly containers: readonly Container[] };
  };
  const [container] = spec.containers;
  const options = container?.env.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
  const limit = readQuantity('memory', container?.resources.limits['memory'] ?? '', 'down');
  const heapMib = Number(/^--max-old-space-size=(\d+)$/.exec(options)?.[1]);
  t.equal(heapMib * 1024 * 1024, limit.ok ? (Number(limit.amount) * 3) / 4 : NaN);
  t.end();
});

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly resources: { readonly limits: Readonly<Record<string, string>> };
}
