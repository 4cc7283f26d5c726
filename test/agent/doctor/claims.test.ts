import { test } from 'tap';
import { diagnoseSlices } from '../../../src/agent/doctor/claims.js';
import { failure } from '../../../src/kube/failure.js';

const slices = (...devices: object[]) => ({ ok: true as const, body: { items: [{ spec: { devices } }] } });

test('the doctor says whether the API server serves claims, and whether it stores shares', (t) => {
  for (const [answer, state, what] of [
    [failure('not-found', 'HTTP 404'), 'failed', /does not serve resource\.k8s\.io\/v1/],
    [failure('forbidden', 'no'), 'warning', /cannot be listed: forbidden: no/],
    [slices(), 'warning', /has no device of node node1/],
    [slices({ name: 'a' }), 'warning', /1 devices of this node, and none can be shared/],
    [slices({ name: 'a', allowMultipleAllocations: true }), 'ok', /can be shared/],
  ] as const)
    t.match(diagnoseSlices(answer, 'node1'), { check: 'claims', state, what });
  t.end();
});
