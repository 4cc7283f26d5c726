import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parse, parseAllDocuments } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CHART = join(ROOT, 'charts/gpu-manager');
const templates = join(CHART, 'templates');

const read = (path: string): string => readFileSync(path, 'utf8');
const documents = (text: string): unknown[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as unknown)
    .filter((value) => value !== null);

/** The path of every value as templates name it; a map that a template prints as a whole counts as one. */
function leaves(value: unknown, whole: ReadonlySet<string>, path = '.Values'): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || whole.has(path)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, whole, `${path}.${key}`));
}

test('the chart has the version of the package', (t) => {
  const { version } = JSON.parse(read(join(ROOT, 'package.json'))) as { version: string };
  t.match(parse(read(join(CHART, 'Chart.yaml'))), { version, appVersion: version });
  t.end();
});

test('templates use every value, and no value that does not exist', (t) => {
  const text = readdirSync(templates)
    .map((name) => read(join(templates, name)))
    .join('\n');
  const used = new Set([...text.matchAll(/\.Values(?:\.\w+)+/g)].map(([path]) => path));
  const known = leaves(parse(read(join(CHART, 'values.yaml'))), used);
  t.same([...used].sort(), known.sort());
  t.end();
});

/** Sorts the fields of objects: Helm writes those of some objects in alphabetical order. */
const sorted = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

const noHelm = spawnSync('helm', ['version']).status === 0 ? false : 'helm is not installed';

test('the chart contains the custom resources unchanged', (t) => {
  t.equal(read(join(CHART, 'crds/quota.yaml')), read(join(ROOT, 'etc/quota/crds.yaml')));
  t.end();
});

test('the chart permits evictions only where a value enables them', (t) => {
  const text = read(join(templates, 'quota.yaml'));
  const [before = '', inside = '', ...more] = text.split(/^\{\{- if eq \.Values\.quota\.arbitrator "on" \}\}$/m);
  t.same(more, []);
  const [guarded = '', ...after] = inside.split(/^\{\{- end \}\}$/m);
  t.match(guarded, /pods\/eviction/);
  t.notMatch(before + after.join('\n'), /eviction/);
  const roles = (all: unknown[]): unknown[] =>
    all.filter((value) => (value as { kind: string }).kind === 'ClusterRole');
  const [role] = roles(documents(guarded.replaceAll(/\{\{[^}]*\}\}/g, 'kube-system')));
  t.same(role, roles(documents(read(join(ROOT, 'etc/quota/arbitrator.yaml'))))[1], 'as in etc/quota');
  t.end();
});

test('the chart with its default values renders the objects of the manifests', { skip: noHelm }, (t) => {
  const made = execFileSync(
    'helm',
    ['template', CHART, '--set', 'extender.enabled=true,quota.enabled=true', '--api-versions', 'policy/v1'],
    { encoding: 'utf8' },
  );
  const inOrder = (all: unknown[]): string[] => all.map((value) => JSON.stringify(value, sorted)).sort();
  const files = [
    'daemonset.yaml',
    'etc/extender/deployment.yaml',
    'etc/quota/deployment.yaml',
    'etc/quota/disruption-budget.yaml',
  ];
  t.same(inOrder(documents(made)), inOrder(files.flatMap((file) => documents(read(join(ROOT, file))))));
  const dividing = execFileSync(
    'helm',
    ['template', CHART, '--set', 'agent.enabled=false,quota.enabled=true,quota.arbitrator=on'],
    { encoding: 'utf8' },
  );
  const isRole = (value: unknown): boolean =>
    /arbitrator|reclaim/.test((value as { metadata: { name: string } }).metadata.name);
  t.same(
    inOrder(documents(dividing).filter(isRole)),
    inOrder(documents(read(join(ROOT, 'etc/quota/arbitrator.yaml')))),
  );
  t.end();
});

test('the chart renders the webhook and the classes of claims where values enable them', { skip: noHelm }, (t) => {
  const rendered = (...args: string[]): string[] =>
    documents(execFileSync('helm', ['template', CHART, '--set', 'agent.enabled=false', ...args], { encoding: 'utf8' }))
      .map((value) => JSON.stringify(value, sorted))
      .sort();
  const files = (...paths: string[]): string[] =>
    paths
      .flatMap((path) => documents(read(join(ROOT, path))))
      .map((value) => JSON.stringify(value, sorted))
      .sort();
  t.same(rendered(), []);
  t.same(rendered('--set', 'claims.webhook.enabled=true'), files('etc/dra/webhook.yaml'));
  t.same(
    rendered('--set', 'claims.deviceClasses=true,claims.extendedResource=true'),
    files('etc/dra/device-classes.yaml', 'etc/dra/extended-resource.yaml'),
  );
  t.end();
});

test('the chart restricts agents to their own node where the cluster supports it', { skip: noHelm }, (t) => {
  const policies = (...args: string[]): unknown[] =>
    documents(execFileSync('helm', ['template', CHART, ...args], { encoding: 'utf8' })).filter((value) =>
      (value as { kind: string }).kind.startsWith('ValidatingAdmissionPolicy'),
    );
  const known = ['--api-versions', 'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy'];
  t.same(policies(...known), documents(read(join(ROOT, 'etc/admission/agent-node.yaml'))));
  t.same(policies(), [], 'before Kubernetes 1.30');
  t.same(policies(...known, '--set', 'agent.nodePolicy=false'), []);
  t.match(JSON.stringify(policies(...known, '--set', 'namespace=gpu')), /serviceaccount:gpu:gpu-manager/);
  t.end();
});

test('agents may evict pods only where a value enables it', { skip: noHelm }, (t) => {
  const rules = (...args: string[]): string =>
    JSON.stringify(documents(execFileSync('helm', ['template', CHART, ...args], { encoding: 'utf8' })));
  t.notMatch(rules(), /eviction/);
  t.match(rules('--set', 'agent.auditPolicy=evict'), /pods\/eviction/);
  t.notMatch(read(join(ROOT, 'daemonset.yaml')), /eviction/);
  t.match(read(join(ROOT, 'etc/admission/evict-role.yaml')), /pods\/eviction/);
  t.end();
});
