import { dirname } from 'node:path';
import { test } from 'tap';
import { controlGroups } from '../../../src/agent/runtimes/control-groups.js';
import { doubleGroups } from '../../harness/control-groups/test-groups.js';
import { eventually } from '../../harness/eventually.js';
import { Hoarder } from '../../harness/gpu-machine/hoarder.js';
import { buildProgram, tenantEnvironment, tenantSkipReason } from '../../harness/gpu-machine/tenant.js';
import { scratchDirectory } from '../../scratch.js';
import { NODE_NAME } from '../cluster.js';
import { libraryPath, noCompiler, notBuilt, SimulatedMachine } from '../gpus/sim/simulated-machine.js';
import { startedDraNode } from './dra-node.js';

const skip =
  notBuilt ||
  tenantSkipReason ||
  noCompiler ||
  (process.getuid?.() === 0 ? false : 'only root may set limits of groups');

test(
  'static programs in the containers of pods that share a claim are held by its memory limit',
  { skip },
  async (t) => {
    const made = await doubleGroups(t);
    const machine = new SimulatedMachine(JSON.stringify({ driverVersion: '615.10.01', gpus: [{}, {}] }), {
      controlGroups: made.root,
    });
    const first = new Map<string, number>();
    const node = await startedDraNode(
      t,
      2,
      { groups: controlGroups({ ...made, pidOf: async (podUid, name) => first.get(`${podUid}/${name}`) ?? null }) },
      { simStatePath: machine.statePath, simNodePath: machine.nodePath, nvmlPath: libraryPath },
    );
    node.allocate('shared', { cores: 40, memory: '2Gi', pods: ['one', 'two'] });
    for (const name of ['one', 'two'])
      node.cluster.server.seed('pods', {
        metadata: { name, namespace: 'team', uid: name },
        spec: {
          nodeName: NODE_NAME,
          resourceClaims: [{ name: 'g', resourceClaimName: 'shared' }],
          containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
        },
        status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' },
      });
    t.type(await node.given('shared'), Array);
    const program = buildProgram('test/harness/gpu-machine/hoarder.c', await scratchDirectory(t), 'hoarder');
    const environment = {
      ...tenantEnvironment(machine, { directory: '/', gpu: 0 }),
      LD_LIBRARY_PATH: dirname(libraryPath),
    };
    const outsider = machine.open();
    t.teardown(() => outsider.close());
    const gpu = machine.node.gpus[0]?.uuid ?? '';
    const programs = ['one', 'two'].map((podUid) => {
      const running = new Hoarder(program, environment);
      t.teardown(() => running.kill());
      const { path } = made.container(podUid);
      made.enter(path, running.pid);
      first.set(`${podUid}/main`, running.pid);
      return { path, running };
    });
    for (const { path, running } of programs) {
      await eventually(
        async () => typeof (await outsider.groupLimiter?.get(gpu, path)) === 'object',
        'the limit of a container',
      );
      t.equal(await running.order('fill'), `held ${2048 - 256} 2`);
    }
  },
);
