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
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly failurePolicy: string;
    readonly matchConditions: readonly { readonly expression: string }[];
    readonly variables?: readonly { readonly name: string; readonly expression: string }[];
    readonly validations: readonly {
      readonly expression: string;
      readonly message?: string;
      readonly messageExpression?: string;
    }[];
  };
}

const NODE_POLICY = 'etc/admission/agent-node.yaml';
const SLICE_POLICY = 'etc/dra/own-node-policy.yaml';
const AGENT = 'system:serviceaccount:kube-system:gpu-manager';
const language = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true });

function policy(file: string, name?: string): Policy['spec'] {
  const path = fileURLToPath(new URL(`../../../${file}`, import.meta.url));
  const documents = parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as Policy);
  return (documents.find(({ metadata }) => name === undefined || metadata.name === name) as Policy).spec;
}

interface Attempt {
  readonly username?: string;
  readonly node?: string | null;
  readonly resource: 'pods' | 'nodes' | 'resourceslices';
  readonly operation?: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly name?: string;
  readonly subResource?: string;
  readonly before?: object;
  readonly after?: object;
}

/** The reason of a policy for a refusal; null where it admits the request or does not apply to the caller. */
function refusal(spec: Policy['spec'], attempt: Attempt): string | null {
  const { username = AGENT, node = 'one', resource, operation = 'UPDATE', name = 'x', before = {}, after } = attempt;
  const extra = node === null ? {} : { 'authentication.kubernetes.io/node-name': [node] };
  const context: Record<string, unknown> = {
    request: {
      userInfo: { username, extra },
      resource: { resource },
      operation,
      name,
      ...(attempt.subResource === undefined ? {} : { subResource: attempt.subResource }),
    },
    oldObject: { metadata: {}, spec: {}, ...before },
    object: operation === 'DELETE' ? null : { metadata: {}, spec: {}, ...(after ?? before) },
  };
  const evaluate = (expression: string): unknown => language.evaluate(expression, context);
  if (!spec.matchConditions.every(({ expression }) => evaluate(expression) === true)) return null;
  // As in the API server, a variable is evaluated where an expression needs it.
  const variables: Record<string, unknown> = {};
  context.variables = variables;
  for (const one of spec.variables ?? []) {
    const isUsable = operation !== 'DELETE' || !one.expression.includes('object.metadata');
    variables[one.name] = isUsable ? evaluate(one.expression) : {};
  }
  const failed = spec.validations.find(({ expression }) => evaluate(expression) !== true);
  return failed === undefined ? null : (failed.message ?? failed.messageExpression ?? '');
}

const onNode = (attempt: Attempt): string | null => refusal(policy(NODE_POLICY), attempt);
const pod = (node: string | null, metadata: object = {}, spec: object = {}): object => ({
  metadata,
  spec: { ...(node === null ? {} : { nodeName: node }), ...spec },
});

test('an agent may label and annotate its own node, and annotate and delete the pods on it', (t) => {
  const labels = { 'kubernetes.io/arch': 'amd64' };
  const before = { metadata: { labels }, spec: { podCIDR: '10.0.0.0/24' } };
  const after = {
    ...before,
    metadata: {
      labels: { ...labels, 'gaia.tencent.com/gpu-model': 'H200' },
      annotations: { 'tencent.com/gpu-inventory': '{}' },
    },
  };
  t.equal(onNode({ resource: 'nodes', name: 'one', before, after }), null);
  t.equal(onNode({ resource: 'nodes', name: 'one', before: after, after: before }), null, 'and remove them');
  const assigned = pod('one', { annotations: { 'tencent.com/gpu-assigned': 'true' } });
  t.equal(onNode({ resource: 'pods', before: pod('one'), after: assigned }), null);
  t.equal(onNode({ resource: 'pods', operation: 'DELETE', before: pod('one') }), null);
  t.end();
});

test('an agent may change no other node, and no pod of another node or without a node', (t) => {
  t.match(onNode({ resource: 'nodes', name: 'two' }), /its own node only/);
  for (const operation of ['UPDATE', 'DELETE'] as const)
    for (const before of [pod('two'), pod(null)])
      t.match(onNode({ resource: 'pods', operation, before }), /pods of its own node only/);
  t.end();
});

test('an agent may change nothing of its node but labels and annotations of tencent.com', (t) => {
  const labels = { 'node-restriction.kubernetes.io/pool': 'secret' };
  const before = { metadata: { labels, annotations: { other: 'x' } }, spec: { taints: [{ key: 'reserved' }] } };
  const changed = (metadata: object, spec: object = before.spec): string | null =>
    onNode({ resource: 'nodes', name: 'one', before, after: { metadata: { ...before.metadata, ...metadata }, spec } });
  t.match(changed({}, {}), /no taint/);
  t.match(changed({}, { ...before.spec, unschedulable: true }), /no taint/);
  t.match(changed({ labels: {} }), /labels of tencent\.com/);
  t.match(changed({ labels: { 'node-restriction.kubernetes.io/pool': 'mine' } }), /labels of tencent\.com/);
  for (const key of [
    'node-role.kubernetes.io/control-plane',
    'tencent.com.evil.example/x',
    'tencent.com',
    'xtencent.com/x',
  ])
    t.match(changed({ labels: { ...labels, [key]: '' } }), /labels of tencent\.com/, key);
  t.match(changed({ annotations: {} }), /annotations of tencent\.com/);
  t.match(changed({ finalizers: ['x/y'] }), /finalizer/);
  t.match(changed({ ownerReferences: [{ uid: 'gone' }] }), /owner/);
  t.end();
});

test('an agent may change one condition in the status of its own node, and nothing else there', (t) => {
  const ready = { type: 'Ready', status: 'True' };
  const ours = { type: 'GPUMemoryLimitsByDriver', status: 'True' };
  const status = { conditions: [ready], capacity: { cpu: '4' }, addresses: [{ type: 'Hostname', address: 'one' }] };
  const written = (after: object, name = 'one'): string | null =>
    onNode({ resource: 'nodes', subResource: 'status', name, before: { status }, after: { status: after } });
  t.equal(written({ ...status, conditions: [ready, ours] }), null);
  t.equal(written({ ...status, conditions: [ours, ready] }), null);
  t.match(written({ ...status, conditions: [ready, ours] }, 'two'), /its own node only/);
  t.match(written({ ...status, conditions: [{ ...ready, status: 'False' }, ours] }), /condition GPUMemoryLimits/);
  t.match(written({ ...status, conditions: [ours] }), /condition GPUMemoryLimits/);
  t.match(written({ ...status, capacity: { cpu: '5' } }), /condition GPUMemoryLimits/);
  t.match(written({ ...status, allocatable: { cpu: '5' } }), /condition GPUMemoryLimits/);
  t.match(written({ ...status, addresses: [] }), /condition GPUMemoryLimits/);
  t.end();
});

test('an agent may change no image, label or foreign annotation of a pod on its node', (t) => {
  const before = pod('one', { labels: { app: 'a' } }, { containers: [{ image: 'good' }] });
  const changed = (metadata: object, spec: object): string | null =>
    onNode({ resource: 'pods', before, after: pod('one', metadata, spec) });
  const [metadata, spec] = [{ labels: { app: 'a' } }, { containers: [{ image: 'good' }] }];
  t.equal(changed(metadata, spec), null);
  t.match(changed(metadata, { containers: [{ image: 'evil' }] }), /image/);
  t.match(changed({ labels: { app: 'a', 'tencent.com/x': '' } }, spec), /labels/);
  t.match(changed({ ...metadata, annotations: { 'kubernetes.io/x': '' } }, spec), /annotations/);
  t.end();
});

test('a token without a node may change nothing', (t) => {
  t.match(onNode({ resource: 'pods', before: pod('one'), node: null }), /names no node/);
  t.match(onNode({ resource: 'pods', before: pod(''), node: '' }), /names no node/);
  t.end();
});

test('an agent writes ResourceSlices of its own node and driver only', (t) => {
  const slice = (nodeName: string, driver: string): object => ({ spec: { nodeName, driver } });
  const written = (object: object, operation: 'CREATE' | 'UPDATE' | 'DELETE', node: string | null = 'one') =>
    refusal(policy(SLICE_POLICY), { resource: 'resourceslices', operation, node, before: object });
  for (const operation of ['CREATE', 'UPDATE', 'DELETE'] as const) {
    t.equal(written(slice('one', 'gpu.tencent.com'), operation), null);
    t.type(written(slice('two', 'gpu.tencent.com'), operation), 'string');
    t.match(written(slice('one', 'gpu.nvidia.com'), operation), /driver gpu\.tencent\.com only/);
    t.type(written(slice('', 'gpu.tencent.com'), operation, null), 'string');
  }
  t.end();
});

test('only the DaemonSet controller makes pods under the account of the agents', (t) => {
  const account = policy(NODE_POLICY, 'gpu-manager-account');
  const made = (username: string, serviceAccountName?: string): string | null =>
    refusal(account, { username, resource: 'pods', operation: 'CREATE', after: pod(null, {}, { serviceAccountName }) });
  t.match(made('jane', 'gpu-manager'), /only the DaemonSet controller/);
  t.match(made(AGENT, 'gpu-manager'), /only the DaemonSet controller/);
  t.equal(made('system:serviceaccount:kube-system:daemon-set-controller', 'gpu-manager'), null);
  t.equal(made('jane', 'default'), null);
  t.equal(account.failurePolicy, 'Fail');
  t.end();
});

test('the policies apply to agents only, and refuse where they cannot be evaluated', (t) => {
  const username = 'system:serviceaccount:kube-system:other';
  t.equal(onNode({ username, resource: 'pods', before: pod('two') }), null);
  for (const file of [NODE_POLICY, SLICE_POLICY]) t.equal(policy(file).failurePolicy, 'Fail');
  t.end();
});
