/** The policies that narrow the quota service's token, without a cluster. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Environment } from '@marcbachmann/cel-js';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';

interface Policy {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly matchConstraints: { readonly resourceRules: readonly Rule[] };
    readonly validations: readonly { readonly expression: string; readonly message: string }[];
  };
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs?: readonly string[];
}

const documents = (file: string): readonly unknown[] =>
  parseAllDocuments(readFileSync(fileURLToPath(new URL(`../../../${file}`, import.meta.url)), 'utf8')).map(
    (one) => one.toJS() as unknown,
  );

const policies = (documents('etc/admission/quota.yaml') as readonly Policy[]).filter(
  ({ kind }) => kind === 'ValidatingAdmissionPolicy',
);

/** The policies that match writes of a resource of any namespace. */
function policiesFor(group: string, resource: string): readonly Policy[] {
  return policies.filter(({ spec }) =>
    spec.matchConstraints.resourceRules.some(
      ({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(resource),
    ),
  );
}

test('every workload that the arbitrator may stop or scale is in a policy, which keeps kube-system out', (t) => {
  const roles = documents('etc/quota/arbitrator.yaml') as readonly {
    readonly metadata: { readonly name: string };
    readonly rules?: readonly Rule[];
  }[];
  const rules =
    roles.find(({ metadata, rules: own }) => own && metadata.name === 'gpu-manager-quota-give-back')?.rules ?? [];
  const written = rules.flatMap(({ apiGroups, resources }) =>
    resources.map((resource) => [apiGroups[0] ?? '', resource] as const),
  );
  t.ok(written.length > 10);
  const language = new Environment({ unlistedVariablesAreDyn: true });
  for (const [group, resource] of written) {
    const refusals = policiesFor(group, resource).flatMap(({ spec }) =>
      spec.validations.filter(({ expression }) => expression.includes('kube-system')),
    );
    t.equal(refusals.length, 1, `${group}/${resource}`);
    const evaluate = (namespace: string): unknown =>
      language.evaluate(refusals[0]?.expression ?? 'true', { request: { namespace } });
    t.same([evaluate('kube-system'), evaluate('team')], [false, true], `${group}/${resource}`);
  }
  t.end();
});
