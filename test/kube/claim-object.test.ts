import { test } from 'tap';
import { readResourceClaim } from '../../src/kube/claim-object.js';

const claim = (nameInPod?: string) =>
  readResourceClaim({
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: {
      ...{ name: 'pod-gpu-x7k2p', namespace: 'a', uid: 'u1' },
      ...(nameInPod === undefined ? {} : { annotations: { 'resource.kubernetes.io/pod-claim-name': nameInPod } }),
    },
  });

test('the name of a claim in its pod becomes a part of a path, so nothing but a name is read', (t) => {
  t.equal(claim()?.nameInPod, null);
  t.equal(claim('gpu')?.nameInPod, 'gpu');
  for (const text of ['', '..', '../../etc', 'a/b', 'GPU', 'gpu\n', '-gpu', 'x'.repeat(64)])
    t.equal(claim(text)?.nameInPod, null, JSON.stringify(text));
  t.end();
});
