/**
 * What an agent with a stolen token may do in the cluster: the expressions of the policy, evaluated as the API server
 * does.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Environment } from '@marcbachmann/cel-js';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';

interface Policy {
  readonly spec: {
    readonly failurePolicy: string;
    readonly matchConditions: readonly { readonly expression: string }[];
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly validations: readonly { readonly expression: string; readonly message: string }[];
  };
}

const path = fileURLToPath(new URL('../../../etc/admission/agent-node.yaml', import.meta.url));
const { spec } = parseAllDocuments(readFileSync(path, 'utf8'))[0]?.toJS() as Policy;
const language = new Environment({ unlistedVariablesAreDyn: true });
const AGENT = 'system:serviceaccount:kube-system:gpu-manager';

interface Attempt {
  readonly username?: string;
  readonly node?: string | null;
  readonly resource: 'pods' | 'nodes';
  readonly subResource?: string;
  readonly name?: string;
  readonly podNode?: string;
}

/** The policy's reason for a refusal; null where it admits the request or does not apply to the caller. */
function refusal({
  username = AGENT,
  node = 'one',
  resource,
  subResource = '',
  name = 'x',
  podNode,
}: Attempt): string | null {
  const extra = node === null ? {} : { 'authentication.kubernetes.io/node-name': [node] };
  const context: Record<string, unknown> = {
    request: { userInfo: { username, extra }, resource: { resource }, subResource, name },
    oldObject: { spec: podNode === undefined ? {} : { nodeName: podNode } },
  };
  const evaluate = (expression: string): unknown => language.evaluate(expression, context);
  if (!spec.matchConditions.every(({ expression }) => evaluate(expression) === true)) return null;
  context.variables = Object.fromEntries(spec.variables.map((one) => [one.name, evaluate(one.expression)]));
  return spec.validations.find(({ expression }) => evaluate(expression) !== true)?.message ?? null;
}

test('an agent may change its own node and the pods on it', (t) => {
  t.equal(refusal({ resource: 'nodes', name: 'one' }), null);
  t.equal(refusal({ resource: 'pods', podNode: 'one' }), null);
  t.end();
});

test('an agent may change no other node, and no pod of another node or without a node', (t) => {
  t.match(refusal({ resource: 'nodes', name: 'two' }), /its own node only/);
  t.match(refusal({ resource: 'pods', podNode: 'two' }), /pods of its own node only/);
  t.match(refusal({ resource: 'pods' }), /pods of its own node only/);
  t.end();
});

test('a token without a node may change nothing', (t) => {
  t.match(refusal({ resource: 'pods', podNode: 'one', node: null }), /names no node/);
  t.match(refusal({ resource: 'pods', podNode: '', node: '' }), /names no node/);
  t.end();
});

test('the policy applies to agents only, and refuses where it cannot be evaluated', (t) => {
  t.equal(refusal({ username: 'system:serviceaccount:kube-system:other', resource: 'pods', podNode: 'two' }), null);
  t.equal(spec.failurePolicy, 'Fail');
  t.end();
});
