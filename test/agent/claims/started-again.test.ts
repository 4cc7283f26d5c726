import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { packageFile } from '../../../src/host/package-files.js';
import { NODE_NAME } from '../cluster.js';
import { startedDraNode } from './dra-node.js';

const MIRROR = packageFile('native/build/mirror');
/** A context takes memory too, and the probe takes 64 MiB at once. */
const CONTEXT_MIB = 256 + 64;
const isolated = ['--pid', '--fork', '--mount-proc'];
const missing = !existsSync(MIRROR)
  ? 'the control library and the simulated driver are not built (npm run native)'
  : spawnSync('unshare', [...isolated, 'true']).status !== 0 && 'pid namespaces cannot be made here (root is needed)';

test('a container that starts again under its claim has all of its memory again', { skip: missing }, async (t) => {
  const node = await startedDraNode(t);
  node.cluster.server.seed('pods', {
    metadata: { name: 'one', namespace: 'team', uid: 'one' },
    spec: {
      nodeName: NODE_NAME,
      resourceClaims: [{ name: 'g', resourceClaimName: 'part' }],
      containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
    },
    status: { phase: 'Running' },
  });
  node.allocate('part', { cores: 40, memory: '1Gi', pods: ['one'] });
  t.match(await node.given('part'), [/./]);
  const base = node.node.config.virtualManagerPath;
  const [slice = ''] = (await readdir(base)).filter((name) => /^[0-9a-f]{16}$/.test(name));
  // Each life has a pid namespace of its own, and the program ends without giving its memory back.
  const live = () =>
    spawnSync('unshare', [...isolated, packageFile('native/build/gpu-probe'), 'memory'], {
      encoding: 'utf8',
      env: {
        ...process.env,
        LD_LIBRARY_PATH: MIRROR,
        VGPU_SANDBOX_DIRECTORY: join(base, slice),
        GPU_SIM_STATE: join(node.directory, 'state'),
      },
    }).stdout;
  for (const life of ['first', 'second', 'third']) {
    const said = live();
    const [mib = 0] = (/^memory (\d+) /m.exec(said) ?? []).slice(1).map(Number);
    t.ok(mib <= 1024 && mib >= 1024 - CONTEXT_MIB, `${life}: ${said}`);
  }
});
