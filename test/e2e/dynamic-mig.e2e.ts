import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { notBuilt } from '../agent/gpus/sim/simulated-machine.js';
import { until } from '../harness/eventually.js';
import { AgentProcess } from './agent-process.js';
import { ClaimPods, single, specFiles, template } from './claims.js';
import { TestCluster } from './cluster.js';

// The agent divides a GPU as pods with claims come and go. Scheduler, kubelet, runtime and agent are real, the driver
// is simulated.

const H100 = { model: 'NVIDIA H100 80GB HBM3', memoryMiB: 81_920, multiprocessors: 132, computeCapability: '9.0' };

const cluster = new TestCluster();
const directory = '/var/run/gm-e2e-dynamic';
const machine = join(directory, 'machine');
const agent = new AgentProcess(
  cluster,
  JSON.stringify({ gpus: [{ ...H100, mig: [] }, H100] }),
  ['--allocation=dra', '--mig-strategy=dynamic', `--sim-state=${machine}`],
  { directory },
);
const { isUnschedulable, phase, remove } = new ClaimPods(cluster, agent);
const skip = cluster.version.atLeast(36) ? notBuilt : 'shared counters need Kubernetes 1.36';

tap.setTimeout(600_000);
tap.teardown(() => agent.stop());

interface Slice {
  readonly spec: {
    readonly pool: { readonly resourceSliceCount: number };
    readonly devices?: readonly { readonly consumesCounters?: readonly object[] }[];
    readonly sharedCounters?: readonly { readonly counters: object }[];
  };
}

const slices = async (): Promise<readonly Slice[]> =>
  (JSON.parse(await cluster.kubectl('get', 'resourceslices', '-o', 'json')) as { readonly items: readonly Slice[] })
    .items;

/** The MIG instances of the simulated machine: their model names and UUIDs. */
function instances(): readonly { readonly model: string; readonly uuid: string }[] {
  const environment = { ...process.env, GPU_SIM_STATE: machine, GPU_SIM_NODE: join(directory, 'gpus') };
  const text = execFileSync(packageFile('native/build/gpu-sim'), ['status'], { env: environment, encoding: 'utf8' });
  return text
    .split('\n')
    .filter((line) => line.includes('"uuid":"MIG-'))
    .map((line) => JSON.parse(line) as { readonly model: string; readonly uuid: string })
    .sort((a, b) => (a.model < b.model ? -1 : 1));
}

const profiles = (): readonly string[] => instances().map(({ model }) => model.replace(/^.* MIG /u, ''));

const of = (profile: string): object =>
  template(profile.replace('.', '-'), [
    {
      name: 'gpu',
      exactly: {
        deviceClassName: 'mig.tencent.com',
        selectors: [{ cel: { expression: `device.attributes['gpu.tencent.com'].profile == '${profile}'` } }],
      },
    },
  ]);

const METADATA =
  '/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/g/gpu/gpu.tencent.com-metadata.json';
const SEEN = `ls /dev/nvidia-caps | sed 's/^/CAP=/'; ls /dev | grep -E '^nvidia[0-9]' | sed 's/^/GPU=/'; grep '"MIG-' ${METADATA} | head -1; echo END; sleep 100000`;

/** What a container sees of its instance. */
async function seen(
  pod: string,
): Promise<{ readonly caps: number; readonly gpus: readonly string[]; readonly uuid: string }> {
  const text = await until(`the output of ${pod}`, async () => {
    const log = await cluster.kubectl('logs', pod, '-c', 'main');
    return log.includes('END') ? log : null;
  });
  return {
    caps: [...text.matchAll(/^CAP=/gmu)].length,
    gpus: [...text.matchAll(/^GPU=(.*)$/gmu)].map((match) => match[1] ?? ''),
    uuid: /"(MIG-[^"]*)"/u.exec(text)?.[1] ?? '',
  };
}

test(
  'a node publishes the places of its GPU in MIG mode with counters, and the API server stores them',
  { skip },
  async (t) => {
    await agent.start();
    await cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
    const found = await until('two slices', async () => {
      const all = await slices();
      return all.length === 2 && all.every(({ spec }) => spec.pool.resourceSliceCount === 2) ? all : null;
    });
    const devices = found.flatMap(({ spec }) => spec.devices ?? []);
    t.equal(devices.filter(({ consumesCounters }) => consumesCounters !== undefined).length, 18);
    t.equal(devices.length, 19);
    t.equal(found.flatMap(({ spec }) => spec.sharedCounters ?? []).length, 1);
    t.same(instances(), []);
  },
);

test('pods get instances that are created for them, beside each other on one GPU', { skip }, async (t) => {
  await cluster.apply(of('1g.10gb'), of('3g.40gb'), of('4g.40gb'), of('7g.80gb'));
  await cluster.apply(single('small', '1g-10gb', SEEN), single('middle', '3g-40gb', SEEN));
  await phase('small', 'Running');
  await phase('middle', 'Running');
  t.same(profiles(), ['1g.10gb', '3g.40gb']);
  const [small, middle] = [await seen('small'), await seen('middle')];
  t.same(
    [small, middle],
    instances().map(({ uuid }) => ({ caps: 2, gpus: ['nvidia0'], uuid })),
    'each container has its instance, and access to no other',
  );
});

test('a profile that does not fit waits, and gets the GPU when it is cut anew', { skip }, async (t) => {
  await cluster.apply(single('whole', '7g-80gb', SEEN));
  await isUnschedulable('whole');
  await remove('small', 'middle');
  await phase('whole', 'Running');
  t.same(profiles(), ['7g.80gb']);
  t.equal((await seen('whole')).uuid, instances()[0]?.uuid);
});

test('a restarted agent keeps the instances of running pods, and destroys them with the pods', { skip }, async (t) => {
  const before = instances();
  await agent.restart('SIGKILL');
  t.same(instances(), before);
  await remove('whole');
  await until('all instances to be destroyed', async () => instances().length === 0 && specFiles().length === 0);
  await cluster.apply(single('half', '4g-40gb', SEEN), single('other', '3g-40gb', SEEN));
  await phase('half', 'Running');
  await phase('other', 'Running');
  t.same(profiles(), ['3g.40gb', '4g.40gb']);
  await remove('half', 'other');
  await until('all instances to be destroyed', async () => instances().length === 0);
});
