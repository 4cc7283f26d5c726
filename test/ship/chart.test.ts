import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import { parse } from 'yaml';
import {
  CHART,
  documents,
  helmTemplate,
  inOrder,
  LOCAL_IMAGE,
  missingProgram,
  noHelm,
  read,
  ROOT,
  type ShippedObject,
} from './rendering.js';
import { kubernetesSchemas, noKubernetesSchemas } from './kubernetes-schemas.js';

const TEMPLATES = 'charts/gpu-manager/templates';
const EVERYTHING = [
  'extender.enabled=true',
  'console.enabled=true',
  'quota.enabled=true',
  'quota.arbitrator=on',
  'pluginProxy.enabled=true',
  'monitoring.podMonitor.enabled=true',
  'monitoring.prometheusRule.enabled=true',
  'monitoring.dashboards.enabled=true',
  'openshift.enabled=true',
  'claims.deviceClasses=true',
  'claims.extendedResource=true',
  'claims.webhook.enabled=true',
  'agent.allocation=mixed',
  'agent.auditPolicy=evict',
  'nodeConfig.flags.mig={--mig-strategy=whole}',
].flatMap((value) => ['--set', value]);
const NEWEST = [
  '--api-versions',
  'policy/v1',
  '--api-versions',
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy',
];

/** The path of every value as templates name it; a map that a template prints as a whole counts as one. */
function leaves(value: unknown, whole: ReadonlySet<string>, path = '.Values'): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || whole.has(path)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, whole, `${path}.${key}`));
}

test('the chart has the version of the package', (t) => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  t.match(parse(read('charts/gpu-manager/Chart.yaml')), { version, appVersion: version });
  t.end();
});

test('templates use every value, and no value that does not exist', (t) => {
  const text = readdirSync(join(ROOT, TEMPLATES))
    .map((name) => read(join(TEMPLATES, name)))
    .join('\n');
  const used = new Set([...text.matchAll(/\.Values(?:\.\w+)+/g)].map(([path]) => path));
  const known = leaves(parse(read('charts/gpu-manager/values.yaml')), used);
  t.same([...used].sort(), known.sort());
  t.end();
});

test('the table of values of the chart and the manifest at the top are those of their sources', (t) => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/chart-files.mjs'), '--check'], {
    encoding: 'utf8',
  });
  t.equal(stderr, '');
  t.equal(status, 0);
  t.end();
});

test('the chart permits evictions only where a value enables them', (t) => {
  const text = read(join(TEMPLATES, 'quota.yaml'));
  const [before = '', inside = '', ...more] = text.split(/^\{\{- if eq \.Values\.quota\.arbitrator "on" \}\}$/m);
  t.same(more, []);
  const [guarded = '', ...after] = inside.split(/^\{\{- end \}\}$/m);
  t.match(guarded, /pods\/eviction/);
  t.notMatch(before + after.join('\n'), /eviction/);
  const roles = (all: readonly ShippedObject[]): unknown[] => all.filter(({ kind }) => kind === 'ClusterRole');
  const [role] = roles(documents(guarded.replaceAll(/\{\{[^}]*\}\}/g, 'kube-system')));
  t.same(role, roles(documents(read('etc/quota/arbitrator.yaml')))[1], 'as in etc/quota');
  t.end();
});

test('the chart gives the permissions for Kueue only where a value enables them, as in etc/quota', (t) => {
  const [before = '', inside = ''] = read(join(TEMPLATES, 'quota.yaml')).split(
    /^\{\{- if \.Values\.quota\.kueue \}\}$/m,
  );
  const [guarded = '', ...after] = inside.split(/^\{\{- end \}\}$/m);
  t.notMatch(before + after.join('\n'), /kueue\.x-k8s\.io/);
  const made = documents(guarded.replaceAll(/\{\{[^}]*\}\}/g, 'kube-system'));
  t.same(inOrder(made), inOrder(documents(read('etc/quota/kueue.yaml'))));
  t.end();
});

test('the chart with its default values renders the objects of the manifests', { skip: noHelm }, (t) => {
  const made = helmTemplate(
    '--set',
    'extender.enabled=true,console.enabled=true,quota.enabled=true,quota.crds=false',
    '--api-versions',
    'policy/v1',
  );
  const files = [
    'etc/agent/daemonset.yaml',
    'etc/extender/deployment.yaml',
    'etc/console/deployment.yaml',
    'etc/quota/deployment.yaml',
    'etc/quota/disruption-budget.yaml',
  ];
  t.same(inOrder(documents(made)), inOrder(files.flatMap((file) => documents(read(file)))));
  const dividing = helmTemplate('--set', 'agent.enabled=false,quota.enabled=true,quota.arbitrator=on');
  t.same(
    inOrder(documents(dividing).filter(({ metadata }) => /arbitrator|reclaim|give-back/.test(metadata.name))),
    inOrder(documents(read('etc/quota/arbitrator.yaml'))),
  );
  const second = helmTemplate(
    ...['--set', 'agent.enabled=false,scheduler.enabled=true,scheduler.image=kube-scheduler:v1.37.0'],
    ...['--api-versions', 'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy'],
  );
  const scheduling = ['etc/scheduler/deployment.yaml', 'etc/scheduler/policy.yaml'];
  t.same(
    inOrder(documents(second).filter(({ metadata }) => metadata.name.startsWith('gpu-manager-scheduler'))),
    inOrder(scheduling.flatMap((file) => documents(read(file)))),
  );
  const history = helmTemplate(
    ...['--set', 'agent.enabled=false,console.enabled=true,console.prometheus.url=https://prometheus:9090'],
    ...['--set', 'console.prometheus.caSecretName=ca,console.prometheus.tokenSecretName=reader'],
  );
  t.match(history, /--prometheus-url=https:\/\/prometheus:9090\n/);
  t.match(
    history,
    /name: prometheus-ca, secret: \{ secretName: ca \}[^]*name: prometheus-token, secret: \{ secretName: reader/,
  );
  t.equal(documents(history).length, documents(read('etc/console/deployment.yaml')).length);
  const proxy = helmTemplate('--set', 'pluginProxy.enabled=true', '--show-only', 'templates/plugin-proxy.yaml');
  t.same(inOrder(documents(proxy)), inOrder(documents(read('etc/plugin-proxy/daemonset.yaml'))));
  t.end();
});

test('custom resource definitions come with quota only, and stay when it goes', { skip: noHelm }, (t) => {
  const definitions = (...args: string[]): ShippedObject[] =>
    documents(helmTemplate('--include-crds', ...args)).filter(({ kind }) => kind === 'CustomResourceDefinition');
  t.same(definitions(), []);
  t.same(definitions('--set', 'quota.enabled=true,quota.crds=false'), []);
  const made = definitions('--set', 'quota.enabled=true').map((definition) => {
    const { annotations, ...metadata } = definition.metadata as { annotations?: object; name: string };
    t.same(annotations, { 'helm.sh/resource-policy': 'keep' }, metadata.name);
    return { ...definition, metadata };
  });
  t.same(inOrder(made), inOrder(documents(read('etc/quota/crds.yaml'))));
  t.end();
});

test('the chart renders the webhook and the classes of claims where values enable them', { skip: noHelm }, (t) => {
  const rendered = (...args: string[]): string[] =>
    inOrder(documents(helmTemplate('--set', 'agent.enabled=false', ...args)));
  const files = (...paths: string[]): string[] => inOrder(paths.flatMap((path) => documents(read(path))));
  t.same(rendered(), []);
  t.same(rendered('--set', 'claims.webhook.enabled=true'), files('etc/dra/webhook.yaml'));
  t.same(
    rendered('--set', 'claims.deviceClasses=true,claims.extendedResource=true'),
    files('etc/dra/device-classes.yaml', 'etc/dra/extended-resource.yaml'),
  );
  t.end();
});

test(
  'a Job registers the webhooks where a value says so, and the replicas have no right to them',
  { skip: noHelm },
  (t) => {
    const programs = [
      ['quota', 'gpu-manager-quota', 'etc/quota/deployment.yaml', 'etc/quota/registration.yaml'],
      ['claims.webhook', 'gpu-manager-claims', 'etc/dra/webhook.yaml', 'etc/dra/webhook-registration.yaml'],
    ] as const;
    for (const [value, name, plain, added] of programs) {
      const rendered = (registration: string): ShippedObject[] =>
        documents(
          helmTemplate(
            ...[
              '--set',
              `agent.enabled=false,quota.crds=false,${value}.enabled=true,${value}.registration=${registration}`,
            ],
          ),
        );
      const key = ({ kind, metadata }: ShippedObject): string => `${kind} ${metadata.name}`;
      const withoutPods = (all: readonly ShippedObject[]): string[] =>
        inOrder(
          [...new Map(all.map((one) => [key(one), one])).values()].filter(
            ({ kind }) => !/Deployment|^Job$|DisruptionBudget/.test(kind),
          ),
        );
      const byJob = rendered('job');
      t.same(withoutPods(byJob), withoutPods([...documents(read(plain)), ...documents(read(added))]));
      t.match(JSON.stringify(byJob.find(({ kind }) => kind === 'Deployment')), /"--register=job"/);
      const [job] = byJob.filter(({ kind }) => kind === 'Job') as (ShippedObject & { readonly spec: object })[];
      t.match(job?.metadata, { annotations: { 'helm.sh/hook': 'post-install,post-upgrade' } });
      const cron = byJob.find(({ kind }) => kind === 'CronJob') as unknown as {
        readonly spec: { readonly jobTemplate: { readonly spec: object } };
      };
      t.same(job?.spec, cron.spec.jobTemplate.spec, 'at once, and then again and again, the same');
      const none = rendered('none');
      t.notMatch(JSON.stringify(none), /admissionregistration|WebhookConfiguration|CronJob/, name);
      t.match(JSON.stringify(none), /"--no-register"/);
    }
    t.end();
  },
);

test('the chart restricts each program to what it does, where the cluster supports it', { skip: noHelm }, (t) => {
  const policies = (...args: string[]): ShippedObject[] =>
    documents(helmTemplate(...args)).filter(({ kind }) => kind.startsWith('ValidatingAdmissionPolicy'));
  const [node, classes, slices] = ['admission/agent-node', 'admission/classes', 'dra/own-node-policy'].map((file) =>
    documents(read(`etc/${file}.yaml`)),
  ) as [ShippedObject[], ShippedObject[], ShippedObject[]];
  t.same(inOrder(policies(...NEWEST)), inOrder([...node, ...classes]));
  const mixed = policies(...NEWEST, '--set', 'agent.allocation=mixed');
  t.same(inOrder(mixed), inOrder([...node, ...classes, ...slices]));
  const onlyConsole = ['--set', 'agent.nodePolicy=false,agent.classPolicy=false,console.enabled=true'];
  t.same(policies(...NEWEST, ...onlyConsole), documents(read('etc/admission/console-proxy.yaml')));
  t.same(policies(...onlyConsole), [], 'before Kubernetes 1.30');
  for (const program of ['extender', 'quota']) {
    const only = ['--set', `agent.nodePolicy=false,agent.classPolicy=false,${program}.enabled=true`];
    t.same(inOrder(policies(...NEWEST, ...only)), inOrder(documents(read(`etc/admission/${program}.yaml`))));
    t.match(JSON.stringify(policies(...NEWEST, ...only, '--set', 'namespace=gpu')), /serviceaccount:gpu:gpu-/);
  }
  t.match(
    JSON.stringify(policies(...NEWEST, ...onlyConsole, '--set', 'nameOverride=gpus,namespace=gpu')),
    /serviceaccount:gpu:gpu-console.*\(https:\)\?gpus-\[/,
  );
  t.same(policies(), [], 'before Kubernetes 1.30');
  t.same(inOrder(policies(...NEWEST, '--set', 'agent.nodePolicy=false')), inOrder(classes));
  t.match(JSON.stringify(policies(...NEWEST, '--set', 'namespace=gpu')), /serviceaccount:gpu:gpu-manager/);
  t.end();
});

test('agents may write ResourceSlices and claims only where claims give GPUs', { skip: noHelm }, (t) => {
  // Users of kubectl gpu read claims too.
  for (const text of [helmTemplate(), read('etc/agent/daemonset.yaml')]) {
    const others = documents(text).filter(({ metadata }) => metadata.name !== 'gpu-manager-viewer');
    t.notMatch(JSON.stringify(others), /resource\.k8s\.io/);
  }
  const more = documents(helmTemplate('--set', 'agent.allocation=dra')).filter(
    ({ metadata }) => metadata.name === 'gpu-manager-dra',
  );
  t.same(more, documents(read('etc/dra/agent-role.yaml')));
  t.end();
});

test('agents may evict pods only where a value enables it', { skip: noHelm }, (t) => {
  t.notMatch(helmTemplate(), /eviction/);
  t.match(helmTemplate('--set', 'agent.auditPolicy=evict'), /pods\/eviction/);
  t.notMatch(read('etc/agent/daemonset.yaml'), /eviction/);
  t.match(read('etc/admission/evict-role.yaml'), /pods\/eviction/);
  t.end();
});

interface Workload extends ShippedObject {
  readonly spec: {
    readonly selector: object;
    readonly template: { readonly metadata: object; readonly spec: PodSpec };
  };
}
interface PodSpec {
  readonly containers: readonly [{ readonly args: readonly string[]; readonly image: string }];
  readonly [field: string]: unknown;
}

function workloads(...values: readonly string[]): readonly Workload[] {
  const made = documents(helmTemplate(...values.flatMap((value) => ['--set', value]))) as Workload[];
  return made.filter(({ kind }) => kind === 'DaemonSet' || kind === 'Deployment');
}

test('values reach the pods', { skip: noHelm }, (t) => {
  const all = ['extender.enabled', 'quota.enabled', 'pluginProxy.enabled', 'claims.webhook.enabled'].map(
    (value) => `${value}=true`,
  );
  const names = (made: readonly Workload[]): string[] => made.map(({ metadata }) => metadata.name).sort();
  const every = workloads(
    ...all,
    'image.registry=registry.example.com/gpu/',
    'image.tag=1.2.3',
    'image.pullSecrets={one,two}',
    'namespace=gpu',
    'nameOverride=sharing',
  );
  t.same(names(every), ['gpu-extender', 'gpu-manager-claims', 'gpu-manager-quota', 'sharing', 'sharing-plugin-proxy']);
  for (const { metadata, spec } of every) {
    t.equal(metadata.namespace, 'gpu');
    t.equal(spec.template.spec.containers[0].image, 'registry.example.com/gpu/gpu-manager:1.2.3');
    t.same(spec.template.spec['imagePullSecrets'], [{ name: 'one' }, { name: 'two' }]);
  }
  const digest = `sha256:${'a'.repeat(64)}`;
  const [pinned] = workloads(`image.digest=${digest}`);
  t.equal(pinned?.spec.template.spec.containers[0].image, `gpu-manager@${digest}`);
  const quota = every.find(({ metadata }) => metadata.name === 'gpu-manager-quota');
  t.ok(quota?.spec.template.spec.containers[0].args.includes('--namespace=gpu'), 'quota writes where its role allows');

  for (const [component, name] of [
    ['agent', 'gpu-manager'],
    ['extender', 'gpu-extender'],
    ['quota', 'gpu-manager-quota'],
  ] as const) {
    const set = (...values: readonly string[]): Workload | undefined =>
      workloads(...all, ...values.map((value) => `${component}.${value}`)).find(
        ({ metadata }) => metadata.name === name,
      );
    const made = set(
      'extraEnv[0].name=A',
      'extraEnv[0].value=b',
      'extraVolumes[0].name=more',
      'extraVolumes[0].emptyDir.medium=Memory',
      'extraVolumeMounts[0].name=more',
      'extraVolumeMounts[0].mountPath=/more',
      'podAnnotations.one=two',
      'priorityClassName=mine',
      'affinity.nodeAffinity.of=it',
      'nodeSelector.disk=fast',
      'tolerations[0].key=mine',
      'securityContext.runAsGroup=7',
      'probes.liveness.failureThreshold=9',
      'resources.limits.memory=3Gi',
      'tls.secretName=certificate',
      'extraArgs={--log-level=debug}',
    );
    t.match(made?.spec.template.metadata, { annotations: { one: 'two' } }, name);
    t.match(
      made?.spec.template.spec,
      {
        priorityClassName: 'mine',
        affinity: { nodeAffinity: { of: 'it' } },
        nodeSelector: { disk: 'fast' },
        tolerations: [{ key: 'mine' }],
        containers: [
          {
            securityContext: { runAsGroup: 7 },
            livenessProbe: { failureThreshold: 9, httpGet: { path: '/healthz' } },
            resources: { limits: { memory: '3Gi' } },
          },
        ],
      },
      name,
    );
    const text = JSON.stringify(made?.spec.template.spec);
    for (const part of [
      '{"name":"A","value":"b"}',
      '{"emptyDir":{"medium":"Memory"},"name":"more"}',
      '"mountPath":"/more"',
      '"secretName":"certificate"',
      '--tls-cert-file=/etc/gpu-manager/tls/tls.crt',
      '--log-level=debug',
    ])
      t.ok(text.includes(part), `${name}: ${part}`);
  }
  t.end();
});

test("a driver below another root is the driver of NVIDIA's GPU Operator", { skip: noHelm }, (t) => {
  const [agent] = workloads('agent.driverRoot=/run/nvidia/driver');
  const [containers, volumes] = [agent?.spec.template.spec.containers, agent?.spec.template.spec['volumes']];
  t.match(JSON.stringify(volumes), /"name":"host","hostPath":\{"path":"\/run\/nvidia\/driver"/);
  t.match(
    JSON.stringify(containers),
    /"mountPath":"\/usr\/local\/host","readOnly":true,"mountPropagation":"HostToContainer"/,
  );
  t.end();
});

test('agent.driver=sim makes the agents that etc/simulated makes', { skip: noHelm }, (t) => {
  const [agent] = workloads('agent.driver=sim', 'agent.tokenReview=false');
  const [patch] = documents(read('etc/simulated/agent.yaml')) as Workload[];
  t.same(agent?.spec.template.spec.containers[0].args, patch?.spec.template.spec.containers[0].args);
  t.end();
});

test('nodes with a label have the flags of its value, and one agent', { skip: noHelm }, (t) => {
  const flags = [
    'nodeConfig.flags.mig={--mig-strategy=whole,--memory-oversubscription=1.5}',
    'nodeConfig.flags.quiet={--v=0}',
  ];
  const [plain, mig, quiet] = workloads(...flags, 'agent.affinity.nodeAffinity.x=y');
  const label = 'gpu-manager.io/config';
  t.match(plain, {
    metadata: { name: 'gpu-manager' },
    spec: {
      template: {
        spec: {
          affinity: {
            nodeAffinity: {
              x: 'y',
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: label, operator: 'NotIn', values: ['mig', 'quiet'] }] },
                ],
              },
            },
          },
        },
      },
    },
  });
  t.notMatch(JSON.stringify(plain), /EXTRA_FLAGS/);
  for (const [name, made] of [
    ['mig', mig],
    ['quiet', quiet],
  ] as const) {
    t.match(made, {
      metadata: { name: `gpu-manager-${name}` },
      spec: {
        selector: { matchLabels: { 'gpu-manager.io/node-config': name } },
        template: { spec: { nodeSelector: { 'nvidia-device-enable': 'enable', [label]: name } } },
      },
    });
    t.match(
      JSON.stringify(made),
      new RegExp(`EXTRA_FLAGS","valueFrom":{"configMapKeyRef":{"name":"gpu-manager-node-config","key":"${name}"`),
    );
  }
  const map = documents(helmTemplate(...flags.flatMap((value) => ['--set', value]))).find(
    ({ kind }) => kind === 'ConfigMap',
  );
  t.match(map, { data: { mig: '--mig-strategy=whole --memory-oversubscription=1.5', quiet: '--v=0' } });
  t.end();
});

test('the affinity of nodes without a configuration keeps every term of the value', { skip: noHelm }, (t) => {
  const terms = 'agent.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  const [agent] = workloads(
    'nodeConfig.flags.mig={--mig-strategy=whole}',
    `${terms}[0].matchExpressions[0].key=a,${terms}[0].matchExpressions[0].operator=Exists`,
    `${terms}[1].matchExpressions[0].key=b,${terms}[1].matchExpressions[0].operator=Exists`,
  );
  const other = { key: 'gpu-manager.io/config', operator: 'NotIn', values: ['mig'] };
  t.match(agent?.spec.template.spec['affinity'], {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: ['a', 'b'].map((key) => ({ matchExpressions: [{ key, operator: 'Exists' }, other] })),
      },
    },
  });
  t.end();
});

const REFUSED: readonly (readonly [value: string, message: RegExp])[] = [
  ['agent.driver=amd', /agent.driver|one of/],
  ['agent.quryPort=1', /additional properties? 'quryPort'|quryPort is not allowed/i],
  ['agent.queryPort=70000', /queryPort/],
  ['agent.driverRoot=run/nvidia', /driverRoot/],
  ['quota.arbitrator=true', /arbitrator/],
  ['image.digest=latest', /digest/],
  ['extender.policy=best', /policy/],
  ['nodeConfig.flags.mig={mig-strategy}', /mig/],
  ['nodeConfig.flags.mig={--allocation=dra}', /holds for all nodes: set the value of agent instead/],
  ['monitoring.podMonitor.interval=often', /interval/],
];

test('helm refuses values that do not exist or cannot be', { skip: noHelm }, (t) => {
  for (const [value, message] of REFUSED) {
    const { status, stderr } = spawnSync('helm', ['template', CHART, ...LOCAL_IMAGE, '--set', value], {
      encoding: 'utf8',
    });
    t.not(status, 0, value);
    t.match(stderr, message, value);
  }
  t.end();
});

test('the chart needs a registry, or nodes that have the image', { skip: noHelm }, (t) => {
  const rendered = (...args: readonly string[]) =>
    spawnSync('helm', ['template', CHART, ...args], { encoding: 'utf8', maxBuffer: 1 << 26 });
  const { status, stderr } = rendered();
  t.not(status, 0);
  t.match(
    stderr,
    /image\.registry is empty, so nodes cannot pull the image: name its registry \(--set image\.registry=/,
  );
  t.match(stderr, /or set image\.local=true if every node has the image/);
  for (const value of ['image.registry=registry.example.com/gpu', 'image.local=true'])
    t.equal(rendered('--set', value).status, 0, value);
  t.end();
});

test(
  'the published chart names its image by digest and needs no value, and says what catalogues show',
  { skip: noHelm },
  (t) => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const directory = join(t.testdir(), 'gpu-manager');
    const script = (...args: readonly string[]) =>
      spawnSync(process.execPath, [join(ROOT, 'scripts/release-chart.mjs'), directory, ...args], { encoding: 'utf8' });
    t.match(script('registry.example.com/gpu', 'https://git.example.com/me/it', 'latest'), {
      status: 2,
      stderr: /^usage: release-chart\.mjs /,
    });
    t.equal(script('registry.example.com/gpu', 'https://git.example.com/me/it', digest).status, 0);
    const lint = spawnSync('helm', ['lint', '--strict', directory], { encoding: 'utf8' });
    t.equal(lint.status, 0, lint.stdout);
    const image = `registry.example.com/gpu/gpu-manager@${digest}`;
    t.match(spawnSync('helm', ['template', directory], { encoding: 'utf8' }).stdout, `image: ${image}\n`);
    const rules = (...args: readonly string[]) =>
      spawnSync('helm', ['template', directory, '--set', 'monitoring.prometheusRule.enabled=true', ...args], {
        encoding: 'utf8',
        maxBuffer: 1 << 26,
      }).stdout;
    t.match(
      rules(),
      /runbook_url: https:\/\/git\.example\.com\/me\/it\/blob\/v[^/]+\/docs\/guides\/runbooks\.md#gpudriverdown\n/,
    );
    t.match(
      rules('--set', 'monitoring.prometheusRule.runbooks=https://wiki.example.com/gpu/'),
      'runbook_url: https://wiki.example.com/gpu/docs/guides/runbooks.md#gpudriverdown\n',
    );
    const chart = parse(readFileSync(join(directory, 'Chart.yaml'), 'utf8')) as Record<string, unknown>;
    const version = String(chart['version']);
    t.match(chart, {
      icon: `https://git.example.com/me/it/raw/v${version}/docs/icon.svg`,
      home: 'https://git.example.com/me/it',
      sources: ['https://git.example.com/me/it'],
      annotations: { 'artifacthub.io/license': 'Apache-2.0', 'artifacthub.io/prerelease': 'false' },
    });
    t.match(read('docs/icon.svg'), /^<svg /);
    const { annotations } = chart as { readonly annotations: Readonly<Record<string, string>> };
    t.same(parse(annotations['artifacthub.io/images'] ?? ''), [
      { name: 'gpu-manager', image, platforms: ['linux/amd64', 'linux/arm64'] },
    ]);
    for (const { url } of parse(annotations['artifacthub.io/links'] ?? '') as readonly { readonly url: string }[])
      t.ok(existsSync(join(ROOT, url.replace(/^.*\/blob\/v[^/]*\//, ''))), url);
    t.end();
  },
);

test('helm lint finds nothing', { skip: noHelm }, (t) => {
  for (const values of [[], EVERYTHING]) {
    const { status, stdout } = spawnSync('helm', ['lint', '--strict', CHART, ...LOCAL_IMAGE, ...values], {
      encoding: 'utf8',
    });
    t.equal(status, 0, stdout);
  }
  t.end();
});

test('optional objects come only where they are enabled', { skip: noHelm }, (t) => {
  const kinds = (...args: readonly string[]): ReadonlySet<string> =>
    new Set(documents(helmTemplate(...args)).map(({ kind }) => kind));
  const optional = ['PodMonitor', 'PrometheusRule', 'SecurityContextConstraints', 'ConfigMap', 'Secret'];
  const [few, all] = [kinds(), kinds(...EVERYTHING)];
  for (const kind of optional) {
    t.notOk(few.has(kind), kind);
    t.ok(all.has(kind), kind);
  }
  const made = documents(helmTemplate(...EVERYTHING));
  const rules = made.find(({ kind }) => kind === 'PrometheusRule');
  const groups = ['etc/prometheus/rules.yaml', 'etc/prometheus/quota-rules.yaml'].flatMap(
    (path) => (parse(read(path)) as { groups: object[] }).groups,
  );
  t.match(rules, { spec: { groups } });
  const dashboards = made.find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'gpu-manager-dashboards',
  ) as unknown as { readonly data: Readonly<Record<string, string>> };
  t.same(Object.keys(dashboards.data), ['gpu-manager.json', 'gpu-manager-usage.json', 'gpu-manager-quota.json']);
  t.equal(dashboards.data['gpu-manager.json'], read('etc/grafana/gpu-manager.json'));
  t.end();
});

/**
 * Fields and types of kinds that are not Kubernetes' own, from the custom resource definitions of the Prometheus
 * Operator 0.93 and of OpenShift in August 2026. Of what the chart does not set, they have the names only.
 */
const FOREIGN_SCHEMAS = join(ROOT, 'test/ship/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json');
const noKubeconform = noHelm || missingProgram('kubeconform', '-v') || noKubernetesSchemas;

test('every object that the chart renders has the schema of its kind', { skip: noKubeconform }, (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'gm-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const made = [helmTemplate(...NEWEST), helmTemplate(...EVERYTHING, ...NEWEST)].join('\n---\n');
  const location = kubernetesSchemas(directory, new Set(documents(made).map(({ kind }) => kind)));
  const locations = [location, FOREIGN_SCHEMAS].flatMap((each) => ['-schema-location', each]);
  const check = (input: string): string =>
    spawnSync('kubeconform', ['-strict', '-summary', '-output', 'json', ...locations], { input, encoding: 'utf8' })
      .stdout;
  const { resources, summary } = JSON.parse(check(made)) as { readonly resources: object[]; readonly summary: object };
  t.same(resources, []);
  t.match(summary, { invalid: 0, errors: 0, skipped: 0 });
  const wrong = helmTemplate('--show-only', 'templates/agent-daemonset.yaml').replace('hostPID: true', 'hostPid: true');
  t.match(check(wrong), /hostPid/, 'a misspelt field is found');
  t.match(check(made.replace('podMetricsEndpoints', 'podMetricEndpoints')), /podMetricEndpoints/);
  t.match(check(made.replace('allowHostPID', 'allowHostPid')), /allowHostPid/);
  t.end();
});
