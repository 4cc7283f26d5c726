import { test } from 'tap';
import { diagnoseCdi, diagnoseSlices } from '../../src/agent/doctor-claims.js';
import { failure } from '../../src/kube/failure.js';

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

test('the doctor says whether the runtime accepts CDI devices, and reads the directory of the agent', (t) => {
  const runtime = { name: 'containerd', version: 'v1.7.2' };
  for (const [cdi, state, what] of [
    [null, 'warning', /does not tell/],
    [{ enabled: null, directories: null }, 'warning', /does not tell/],
    [{ enabled: false, directories: null }, 'failed', /containerd v1\.7\.2 does not accept CDI devices/],
    [
      { enabled: true, directories: ['/var/run/cdi'] },
      'failed',
      /looks .* in \/var\/run\/cdi, and the agent .* \/etc\/cdi/,
    ],
    [{ enabled: true, directories: ['/etc/cdi', '/var/run/cdi'] }, 'ok', /accepts CDI devices of \/etc\/cdi/],
    [{ enabled: true, directories: null }, 'ok', /accepts CDI devices/],
  ] as const)
    t.match(diagnoseCdi(runtime, cdi, '/etc/cdi'), { check: 'claims', state, what });
  t.end();
});
