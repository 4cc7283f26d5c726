import { test } from 'tap';
import { cdiSupport } from '../../../src/agent/claims/cdi-support.js';

test('the check of CDI says whether the runtime accepts CDI devices, and reads the directory of the agent', (t) => {
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
    t.match(cdiSupport(runtime, cdi, '/etc/cdi'), { state, what });
  t.end();
});
