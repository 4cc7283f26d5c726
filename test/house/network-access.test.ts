/** Which pods reach the listeners of the manifests. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

interface Probe {
  readonly httpGet: { readonly port: string };
}

interface Manifest {
  readonly kind: string;
  readonly rules?: readonly { readonly nonResourceURLs?: readonly string[]; readonly verbs: readonly string[] }[];
  readonly spec?: {
    readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly policyTypes?: readonly string[];
    readonly ingress?: readonly { readonly ports: readonly { readonly port: number }[]; readonly from?: object[] }[];
    readonly template?: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly hostNetwork?: boolean;
        readonly containers: readonly {
          readonly args: readonly string[];
          readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
          readonly readinessProbe: Probe;
          readonly livenessProbe: Probe;
        }[];
      };
    };
  };
}

const manifestsOf = (path: string): readonly Manifest[] =>
  parseAllDocuments(readFileSync(join(ROOT, path), 'utf8')).map((document) => document.toJS() as Manifest);

for (const path of ['etc/agent/daemonset.yaml', 'etc/quota/deployment.yaml']) {
  const manifests = manifestsOf(path);
  const template = manifests.find(({ spec }) => spec?.template !== undefined)?.spec?.template;
  const container = template?.spec.containers[0];
  const policy = manifests.find(({ kind }) => kind === 'NetworkPolicy')?.spec;
  const portOf = (name: string): number | undefined =>
    container?.ports.find((port) => port.name === name)?.containerPort;

  test(`${path}: the probes use a port of their own, which the NetworkPolicy closes`, (t) => {
    t.equal(container?.readinessProbe.httpGet.port, 'probes');
    t.equal(container?.livenessProbe.httpGet.port, 'probes');
    t.ok(container?.args.includes(`--probe-port=${portOf('probes')}`));
    t.match(policy, { policyTypes: ['Ingress'], podSelector: { matchLabels: template?.metadata.labels ?? {} } });
    const open = policy?.ingress?.flatMap(({ ports }) => ports.map(({ port }) => port)) ?? [];
    t.ok(open.length > 0 && !open.includes(portOf('probes') ?? 0), open.join());
    t.end();
  });
}

test("the agent's data is read with a token over HTTPS, by pods of chosen namespaces", (t) => {
  const manifests = manifestsOf('etc/agent/daemonset.yaml');
  const args = manifests.find(({ kind }) => kind === 'DaemonSet')?.spec?.template?.spec.containers[0]?.args ?? [];
  t.ok(args.includes('--token-review=true') && args.includes('--tls-self-signed=true'), args.join(' '));
  const ingress = manifests.find(({ kind }) => kind === 'NetworkPolicy')?.spec?.ingress ?? [];
  t.ok(ingress.every(({ from = [] }) => from.length > 0));
  const reader = manifests.find(({ rules }) => rules?.some(({ nonResourceURLs }) => nonResourceURLs !== undefined));
  t.match(reader?.rules, [{ verbs: ['get'] }]);
  t.ok(reader?.rules?.[0]?.nonResourceURLs?.includes('/metrics'));
  t.end();
});
