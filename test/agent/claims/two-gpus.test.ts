import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { encodeUsage } from '../../../src/abi/usage-file.js';
import { LIMITS_FILE, USAGE_FILE } from '../../../src/abi/vgpu-abi.js';
import { packageFile } from '../../../src/host/package-files.js';
import { scratchDirectory } from '../../scratch.js';
import { NODE_NAME } from '../cluster.js';
import { startedDraNode } from './dra-node.js';

const MIRROR = packageFile('native/build/mirror');
/** A context takes memory too. */
const CONTEXT_MIB = 256 + 64;

test(
  'a container with a claim of parts of two GPUs gets from each what it may have, whatever context is current',
  { skip: existsSync(MIRROR) ? false : 'the control library and the simulated driver are not built (npm run native)' },
  async (t) => {
    const node = await startedDraNode(t);
    const second = { cores: 20, memory: '1Gi', device: 1 };
    // The whole claim is for one container, so it has one slice.
    node.cluster.server.seed('pods', {
      metadata: { name: 'one', namespace: 'team', uid: 'one' },
      spec: {
        nodeName: NODE_NAME,
        resourceClaims: [{ name: 'g', resourceClaimName: 'both' }],
        containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
      },
      status: { phase: 'Pending' },
    });
    node.allocate('both', { cores: 40, memory: '4Gi', device: 0, pods: ['one'], second });
    t.match(await node.given('both'), [/./, /./]);
    t.same(node.booked(), ['20/4', '40/16']);
    const base = node.node.config.virtualManagerPath;
    const slices = (await readdir(base)).filter((name) => /^[0-9a-f]{16}$/.test(name));
    t.equal(slices.length, 1);

    const container = await scratchDirectory(t);
    await mkdir(join(container, 'usage'));
    await copyFile(join(base, slices[0] ?? '', LIMITS_FILE), join(container, LIMITS_FILE));
    await writeFile(join(container, USAGE_FILE), encodeUsage());
    await writeFile(join(container, 'node.json'), '{"gpus": [{}, {}]}');
    const said = execFileSync(packageFile('native/build/gpu-probe'), ['streams'], {
      encoding: 'utf8',
      env: {
        LD_LIBRARY_PATH: MIRROR,
        VGPU_SANDBOX_DIRECTORY: container,
        GPU_SIM_STATE: join(container, 'state'),
        GPU_SIM_NODE: join(container, 'node.json'),
      },
    });
    const [first = 0, other = 0] = (/^streams (\d+) (\d+)$/m.exec(said) ?? []).slice(1).map(Number);
    t.ok(first <= 4096 && first >= 4096 - CONTEXT_MIB, said);
    t.ok(other <= 1024 && other >= 1024 - CONTEXT_MIB, said);
  },
);
