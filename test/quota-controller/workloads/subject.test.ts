import { test } from 'tap';
import { KNOWN_KINDS } from '../../../src/quota/index.js';
import type { KubeApi } from '../../../src/kube/client.js';
import { failure } from '../../../src/kube/failure.js';
import type { ServedKind } from '../../../src/quota-controller/workloads/kinds.js';
import { findSubject } from '../../../src/quota-controller/workloads/subject.js';
import { WorkloadReader } from '../../../src/quota-controller/workloads/workload-reader.js';

const pod = { spec: { containers: [{ name: 'main', resources: { limits: { cpu: 2 } } }] } };

function served(kind: string, scalePath: readonly string[]): ServedKind {
  const evaluator = KNOWN_KINDS.find((known) => known.kind === kind);
  if (evaluator === undefined) throw new Error(kind);
  const resource = evaluator.resource.split('.')[0] ?? '';
  return { evaluator, resource, path: `/apis/x/v1/${resource}`, shortNames: [], scalePath };
}

function holding(object: object): KubeApi {
  return {
    request: async ({ method }) => (method === 'GET' ? { ok: true, body: object } : failure('invalid', 'only read')),
  };
}

function reading(object: object, kind: ServedKind): WorkloadReader {
  return new WorkloadReader({ api: holding(object), evaluation: () => ({}), kinds: () => [kind] });
}

test('replicas are set in the field that the scale subresource of the kind writes', async (t) => {
  const job = {
    apiVersion: 'kubeflow.org/v1',
    kind: 'PyTorchJob',
    metadata: { name: 'train', namespace: 'default', uid: 'u' },
    spec: { pytorchReplicaSpecs: { Master: { replicas: 1, template: pod }, Worker: { replicas: 2, template: pod } } },
  };
  const kind = served('PyTorchJob', ['spec', 'pytorchReplicaSpecs', 'Worker', 'replicas']);
  const found = await findSubject(reading(job, kind), kind, 'default', 'train', 7);
  t.match(found, {
    ok: true,
    subject: {
      evaluation: {
        ok: true,
        demand: {
          podSets: [
            { name: 'Master', count: 1 },
            { name: 'Worker', count: 7 },
          ],
        },
      },
    },
  });
  const plain = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'default', uid: 'u' }, ...pod };
  const pods = served('Pod', ['spec', 'replicas']);
  t.match(await findSubject(reading(plain, pods), pods, 'default', 'a', 7), { ok: false, reason: /has no replicas/ });
});
