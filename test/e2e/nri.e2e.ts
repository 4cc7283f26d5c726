import tap, { test } from 'tap';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { podManifest, readShown, SHOW, type Shown } from './pods.js';

const OURS = '/usr/local/nvidia/lib64';
const THEIRS = '/opt/conda/lib';
const cluster = new TestCluster();
const skip = cluster.version.atLeast(30) ? false : 'needs containerd 2, which is tested from Kubernetes 1.30 on';
const claims = cluster.version.atLeast(36) ? false : 'shares by claims need Kubernetes 1.36';
const FLAGS = ['--nri', `--nri-socket=${cluster.nriSocket}`];

tap.setTimeout(900_000);

interface Manifest {
  readonly spec: {
    readonly containers: readonly { readonly name: string; readonly volumeMounts: readonly object[] }[];
    readonly volumes: readonly object[];
  };
}

/** A pod that tries to bypass the control library: by its environment, and by a volume over the slice. */
function unhookingPod(name: string, changes: object = {}): object {
  const made = podManifest(name, [
    { name: 'main', cores: 30, memoryBlocks: 8, command: `${SHOW}; sleep 100000` },
  ]) as Manifest;
  return {
    ...made,
    spec: {
      ...made.spec,
      ...changes,
      containers: made.spec.containers.map((container) => ({
        ...container,
        env: [
          { name: 'LD_LIBRARY_PATH', value: THEIRS },
          { name: 'NVIDIA_VISIBLE_DEVICES', value: 'all' },
        ],
        volumeMounts: [...container.volumeMounts, { name: 'empty', mountPath: '/etc/vcuda/usage' }],
      })),
      volumes: [...made.spec.volumes, { name: 'empty', emptyDir: {} }],
    },
  };
}

/** The same pod with a part of a GPU through a claim; the scheduler has to choose its node. */
function claimingPod(name: string): object {
  const { nodeName: _, ...spec } = (unhookingPod(name) as { readonly spec: { readonly nodeName: string } }).spec;
  const { containers } = spec as unknown as Manifest['spec'];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { suite: 'gpu-manager' } },
    spec: {
      ...spec,
      resourceClaims: [{ name: 'g', resourceClaimTemplateName: 'share' }],
      containers: containers.map((container) => ({ ...container, resources: { claims: [{ name: 'g' }] } })),
    },
  };
}

async function running(name: string): Promise<Shown> {
  await until(
    `pod ${name} to run`,
    async () => (await cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.phase}')) === 'Running',
    120_000,
  );
  return until(`the output of ${name}`, async () => {
    const text = await cluster.kubectl('logs', name, '-c', 'main');
    return text.includes('READABLE') && readShown(text);
  });
}

/** Whether a volume of the pod lies inside the directory of the slice. */
const hidden = ({ readOnly }: Shown): boolean => '/etc/vcuda/usage' in readOnly;

async function metric(agent: AgentProcess, name: string): Promise<number> {
  const text = await (await fetch(`http://localhost:${agent.port}/metrics`)).text();
  const line = text.split('\n').find((entry) => entry.startsWith(`${name} `) || entry.startsWith(`${name}{`));
  return Number(line?.split(' ').at(-1) ?? NaN);
}

const asked = (agent: AgentProcess): Promise<unknown> =>
  until('the runtime to ask the agent', async () => (await metric(agent, 'vgpu_nri_connected')) === 1);

async function withAgent(flags: readonly string[], action: (agent: AgentProcess) => Promise<void>): Promise<void> {
  const agent = new AgentProcess(cluster, '{"gpus":[{},{}]}', flags);
  await agent.start();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
  try {
    await action(agent);
  } finally {
    await cluster.kubectl('delete', 'pods', '--all', '--force', '--grace-period=0', '--wait=true', '--timeout=60s');
    await agent.stop();
  }
}

test('a pod cannot disable the control library through its environment or its volumes', { skip }, async (t) => {
  await withAgent([...FLAGS, '--interposition=cdi', '--cpu-affinity=prefer'], async (agent) => {
    await asked(agent);
    await cluster.apply(unhookingPod('unhooking'));
    const seen = await running('unhooking');
    t.equal(seen.libraryPath, OURS);
    t.match(seen.uuids, [/^GPU-/]);
    t.notOk(hidden(seen), 'the usage file is where the library looks for it');
    t.equal(await metric(agent, 'vgpu_nri_corrected_containers_total'), 1);
    // The state of the kubelet was read; without it the CPU manager would be unknown.
    t.match(agent.log(), /a container is not bound to CPUs/);
    t.notMatch(agent.log(), /its state cannot be read/);
  });
});

test('containers start while the agent is away, and the audit reports them', { skip }, async (t) => {
  await withAgent([...FLAGS, '--interposition=cdi'], async (agent) => {
    await asked(agent);
    await cluster.apply(unhookingPod('restarted'));
    t.notOk(hidden(await running('restarted')));
    await agent.restart('SIGKILL');
    await asked(agent);
    t.equal(await metric(agent, 'vgpu_findings_total{code="not-injected"}'), 0, 'the corrected settings stay');

    await cluster.processes.restart('containerd');
    await asked(agent);
    await cluster.apply(unhookingPod('after'));
    t.notOk(hidden(await running('after')));
  });
  await withAgent([], async (agent) => {
    await cluster.apply(unhookingPod('unseen'));
    const seen = await running('unseen');
    t.equal(seen.libraryPath, THEIRS, 'without --nri the settings of the pod apply');
    t.ok(hidden(seen));
    await agent.stop();
    await agent.start(FLAGS);
    await asked(agent);
    await until(
      'the finding',
      async () => (await metric(agent, 'vgpu_findings_total{code="not-injected"}')) === 1,
      60_000,
    );
  });
});

test('containers with resource claims are corrected, too', { skip: skip || claims }, async (t) => {
  await withAgent([...FLAGS, '--allocation=dra'], async (agent) => {
    await cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
    await asked(agent);
    await until(
      'the GPUs to be published',
      async () => (await cluster.kubectl('get', 'resourceslices', '-o', 'name')) !== '',
    );
    await cluster.apply(
      {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'ResourceClaimTemplate',
        metadata: { name: 'share' },
        spec: {
          spec: {
            devices: {
              requests: [
                {
                  name: 'gpu',
                  exactly: {
                    deviceClassName: 'vgpu.tencent.com',
                    capacity: { requests: { cores: '30', memory: '4Gi' } },
                  },
                },
              ],
            },
          },
        },
      },
      claimingPod('claiming'),
    );
    const seen = await running('claiming');
    t.equal(seen.libraryPath, OURS);
    t.same(seen.uuids, ['void']);
    t.notOk(hidden(seen));
  });
});
