/** What a stolen token of the console may reach through the API server's proxy: the expression of the policy. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Environment } from '@marcbachmann/cel-js';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';

const path = fileURLToPath(new URL('../../../etc/admission/console-proxy.yaml', import.meta.url));
const { spec } = parseAllDocuments(readFileSync(path, 'utf8'))[0]?.toJS() as {
  readonly spec: {
    readonly failurePolicy: string;
    readonly matchConditions: readonly { readonly expression: string }[];
    readonly validations: readonly { readonly expression: string }[];
  };
};
const language = new Environment({ unlistedVariablesAreDyn: true });

function admits(name: string, target: string, username = 'system:serviceaccount:kube-system:gpu-console'): boolean {
  const context = { request: { name, userInfo: { username } }, object: { path: target } };
  const isTrue = ({ expression }: { readonly expression: string }): boolean =>
    language.evaluate(expression, context) === true;
  return !spec.matchConditions.every(isTrue) || spec.validations.every(isTrue);
}

test('the console reads two paths of agents, and of no other pod', (t) => {
  t.ok(admits('https:gpu-manager-x7k2p:5678', '/api/node'));
  t.ok(admits('gpu-manager-mig-x7k2p:5678', 'api/node'));
  t.ok(admits('https:gpu-manager-x7k2p:5678', '/api/use'));
  for (const name of [
    'coredns-1:9153',
    'https:etcd-one:2379',
    'x-gpu-manager-a:1',
    'gpu-manager-a',
    'gpu-manager-a:1/..',
  ])
    t.notOk(admits(name, '/api/node'), name);
  for (const target of ['/metrics', '/api/node/..', '/api/nodes', '', '/api/doctor'])
    t.notOk(admits('https:gpu-manager-x7k2p:5678', target), target);
  t.ok(admits('coredns-1:9153', '/metrics', 'jane'), 'other users keep their rights');
  t.equal(spec.failurePolicy, 'Fail');
  t.end();
});
