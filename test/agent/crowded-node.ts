import { SUSPENDABLE_KEY } from '../../src/gpu/annotations.js';
import { silentLog } from '../../src/host/log.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { eventually } from '../harness/eventually.js';
import { buildProgram, tenantEnvironment, TenantProcess } from '../harness/gpu-machine/tenant.js';
import { scratchDirectory } from '../scratch.js';
import { cards } from './gpus.js';
import { libraryPath, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { limitsOf, runPod, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';
import { NATIVE, type Ending } from './suspending-node.js';

const MACHINE = new SimulatedMachine(cards(1));

/** A node that offers three times its one GPU, and pods that ask for the whole of it. */
export async function crowdedNode(t: Ending) {
  const directory = await scratchDirectory(t);
  const program = buildProgram('test/harness/gpu-machine/recall.c', directory, 'recall');
  const node = new SimulatedNode({
    ...{ directory, gpus: cards(1), log: silentLog(), knowsPods: true },
    config: {
      ...{ simStatePath: MACHINE.statePath, simNodePath: MACHINE.nodePath, nvmlPath: libraryPath },
      ...{ nativePath: NATIVE, allowSuspend: true, suspendFactor: 3 },
    },
  });
  await node.start();
  t.teardown(() => node.stop());
  const notebook = async () => {
    const pod = { ...simplePod(100, 0), annotations: { [SUSPENDABLE_KEY]: 'true' } };
    const given = await runPod(node, pod);
    const start = (): TenantProcess => {
      const environment = tenantEnvironment(MACHINE, { directory: sliceDirectory(given), gpu: 0 });
      const tenant = new TenantProcess(program, ['64'], environment);
      t.teardown(() => tenant.kill());
      return tenant;
    };
    return { pod, start, mark: async () => (await limitsOf(given)).suspended };
  };
  return { node, notebook };
}

export const holds = (tenant: TenantProcess): Promise<unknown> =>
  eventually(() => tenant.output.includes('holds\n'), 'the program has its memory');
