import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import tap, { test } from 'tap';
import { PodResourcesClient } from '../../src/agent/device-plugin/pod-resources.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { nativeSkipReason } from '../containers/simulated-host.js';
import { manifestsOf } from '../quota-controller/setting.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { podManifest, readShown, SHOW, type TestContainer } from './pods.js';
import { until } from '../harness/eventually.js';

const GPUS = '{"gpus":[{},{}]}';
const SIMULATOR = fileURLToPath(new URL('../../../native/build/gpu-sim', import.meta.url));
const POD_RESOURCES = '/var/lib/kubelet/pod-resources/kubelet.sock';
const FALLEN_OFF_THE_BUS = '79';
const cluster = new TestCluster();
const needs = (minor: number): string | false =>
  cluster.version.atLeast(minor) ? false : `needs Kubernetes 1.${minor}, this is ${cluster.version.name}`;

tap.setTimeout(900_000);

interface Pod {
  readonly metadata: { readonly uid: string };
  readonly spec: { readonly containers: readonly object[] };
  readonly status: {
    readonly phase: string;
    readonly message?: string;
    readonly containerStatuses?: readonly {
      readonly restartCount: number;
      readonly allocatedResourcesStatus?: readonly {
        readonly name: string;
        readonly resources: readonly { readonly health: string }[];
      }[];
    }[];
  };
}

/** Fields of a pod that `podManifest` does not set. */
interface PodChanges {
  readonly spec?: object;
  readonly initContainer?: object;
}

function pod(
  name: string,
  containers: readonly TestContainer[],
  initContainers: readonly TestContainer[] = [],
  changes: PodChanges = {},
): object {
  const made = podManifest(name, containers, initContainers) as {
    readonly spec: { readonly initContainers: readonly object[] };
  };
  return {
    ...made,
    spec: {
      ...made.spec,
      initContainers: made.spec.initContainers.map((container) => ({ ...container, ...changes.initContainer })),
      ...changes.spec,
    },
  };
}

const worker = (cores: number, memoryBlocks: number, name = 'main'): TestContainer => ({
  name,
  cores,
  memoryBlocks,
  command: `${SHOW}; sleep 100000`,
});

async function phase(name: string, wanted: string): Promise<Pod> {
  return until(`pod ${name} to be ${wanted}`, async () => {
    const found = await cluster.get<Pod>('pod', name);
    if (found.status.phase === 'Failed' && wanted !== 'Failed')
      throw new Error(`${name} failed: ${found.status.message ?? ''}`);
    return found.status.phase === wanted && found;
  });
}

const remove = (...names: readonly string[]): Promise<string> =>
  cluster.kubectl('delete', 'pod', ...names, '--wait=true', '--timeout=60s');

/** The output of a container about its GPU. */
const shown = (name: string, container = 'main'): Promise<ReturnType<typeof readShown>> =>
  until(`the output of ${name}`, async () => {
    const text = await cluster.kubectl('logs', name, '-c', container);
    return text.includes('READABLE') && readShown(text);
  });

async function withAgent(flags: readonly string[], action: (agent: AgentProcess) => Promise<void>): Promise<void> {
  const agent = new AgentProcess(cluster, GPUS, flags);
  await agent.start();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
  try {
    await action(agent);
  } finally {
    await cluster.kubectl('delete', 'pods', '--all', '--force', '--grace-period=0', '--wait=true', '--timeout=60s');
    await agent.stop();
  }
}

test(
  'a native sidecar holds a GPU beside the container, and pod-resources names both',
  { skip: needs(29) },
  async (t) => {
    await withAgent([], async (agent) => {
      const sidecar = { initContainer: { restartPolicy: 'Always' } };
      await cluster.apply(pod('sidecar', [worker(30, 8)], [worker(20, 4, 'beside')], sidecar));
      const { metadata } = await phase('sidecar', 'Running');
      const seen = [await shown('sidecar', 'beside'), await shown('sidecar')];
      t.ok(seen.every(({ uuids }) => uuids.length === 1));
      t.same(Object.keys((await agent.usage())[metadata.uid]?.spec ?? {}).sort(), ['beside', 'main']);
      const client = new PodResourcesClient(POD_RESOURCES);
      t.teardown(() => client.close());
      const listed = (await client.list()).filter(({ pod: name }) => name === 'sidecar');
      t.same(
        listed.map(({ container, devices }) => [container, devices.get(CORE_RESOURCE)?.length]).sort(),
        [
          ['beside', 20],
          ['main', 30],
        ],
        'each container with cores of its own',
      );
      t.notOk(
        listed[0]?.devices.get(CORE_RESOURCE)?.some((id) => listed[1]?.devices.get(CORE_RESOURCE)?.includes(id)),
        'a sidecar does not share its cores with the container',
      );
      const before = await agent.usage();
      await agent.restart();
      t.same(await agent.usage(), before, 'the agent finds both containers again');
      await remove('sidecar');
    });
  },
);

test('an init container holds its GPU while it runs, and the container after it', { skip: needs(29) }, async (t) => {
  await withAgent([], async (agent) => {
    const before = { ...worker(40, 10, 'before'), command: `${SHOW}; sleep 8` };
    await cluster.apply(pod('init', [worker(20, 8)], [before]));
    const holders = async (): Promise<readonly string[]> =>
      Object.values(await agent.usage()).flatMap(({ spec }) => Object.keys(spec));
    await until('the init container to hold a GPU', async () => (await holders()).join() === 'before');
    const client = new PodResourcesClient(POD_RESOURCES);
    t.teardown(() => client.close());
    const listed = async (): Promise<readonly string[]> =>
      (await client.list()).filter(({ pod: name }) => name === 'init').map(({ container }) => container);
    t.same(await listed(), ['main'], 'pod-resources does not name init containers that end');
    await phase('init', 'Running');
    t.same((await shown('init', 'before')).uuids, (await shown('init')).uuids, 'the same GPU');
    await until('the container to hold it', async () => (await holders()).includes('main'));
    await remove('init');
  });
});

test('a resize in place changes cpu and leaves container and GPU alone', { skip: needs(33) }, async (t) => {
  await withAgent([], async (agent) => {
    const made = pod('resized', [worker(30, 8)]) as { spec: { containers: [{ resources: { limits: object } }] } };
    const [container] = made.spec.containers;
    const resources = { ...container.resources, requests: { cpu: '10m' } };
    await cluster.apply({ ...made, spec: { ...made.spec, containers: [{ ...container, resources }] } });
    const { metadata } = await phase('resized', 'Running');
    const before = (await agent.usage())[metadata.uid];
    const patch = { spec: { containers: [{ name: 'main', resources: { requests: { cpu: '20m' } } }] } };
    await cluster.kubectl('patch', 'pod', 'resized', '--subresource', 'resize', '--patch', JSON.stringify(patch));
    await until('the resize to be done', async () => {
      const column = 'jsonpath={.status.containerStatuses[0].resources.requests.cpu}';
      return (await cluster.kubectl('get', 'pod', 'resized', '-o', column)) === '20m';
    });
    const { status } = await cluster.get<Pod>('pod', 'resized');
    t.equal(status.containerStatuses?.[0]?.restartCount, 0);
    t.same((await agent.usage())[metadata.uid], before);
    await t.rejects(
      cluster.kubectl(
        'patch',
        'pod',
        'resized',
        '--subresource',
        'resize',
        '--patch',
        JSON.stringify({ spec: { containers: [{ name: 'main', resources: { limits: { [CORE_RESOURCE]: '40' } } }] } }),
      ),
      /only cpu and memory|Forbidden|Invalid/,
      'the API server refuses another number of cores',
    );
    await remove('resized');
  });
});

test(
  'a pod in a user namespace reads its limits, writes its usage file and reaches its socket',
  { skip: needs(33) },
  async (t) => {
    const ours = existsSync('/dev/nvidiactl') ? 'this machine has GPUs of its own' : false;
    if (ours !== false) {
      t.pass('is not tried', { skip: ours });
      return;
    }
    t.teardown(() => {
      for (const name of readdirSync('/dev').filter((entry) => entry.startsWith('nvidia')))
        rmSync(join('/dev', name), { recursive: true, force: true });
    });
    // A container of a user namespace gets the device node of the host with the same path.
    await withAgent(['--sim-device-path=/dev'], async () => {
      const look =
        'test -S /etc/vcuda/vcuda.sock && echo SOCKET; test -w /etc/vcuda/usage/vgpu.usage && echo WRITABLE; cat /proc/self/uid_map';
      await cluster.apply(
        pod('remapped', [{ ...worker(30, 8), command: `${look}; ${SHOW}; sleep 100000` }], [], {
          spec: { hostUsers: false, hostNetwork: false },
        }),
      );
      await phase('remapped', 'Running');
      const { text, uuids } = await shown('remapped');
      t.equal(uuids.length, 1);
      t.match(text, /^SOCKET$/m);
      t.match(text, /^WRITABLE$/m);
      t.notMatch(text, /^\s+0\s+0\s+4294967295$/m, 'root in the pod is another user outside');
      await remove('remapped');
    });
  },
);

test('a static pod gets a GPU from its file alone', { skip: needs(29) }, async (t) => {
  await withAgent([], async (agent) => {
    const made = pod('static', [worker(30, 8)]) as { spec: object };
    const { nodeName: _node, ...spec } = made.spec as Record<string, unknown>;
    const file = join(cluster.directory, 'static-pods/static.json');
    writeFileSync(file, JSON.stringify({ ...made, metadata: { name: 'static', namespace: 'default' }, spec }));
    t.teardown(() => rmSync(file, { force: true }));
    await phase('static-node1', 'Running');
    t.equal((await shown('static-node1')).uuids.length, 1);
    t.equal(Object.keys(await agent.usage()).length, 1);
    rmSync(file);
    await until(
      'the static pod to be deleted',
      async () => !(await cluster.kubectl('get', 'pods')).includes('static-node1'),
    );
  });
});

test(
  'with CDI the runtime applies all edits from the specification of the allocation',
  { skip: needs(29) },
  async (t) => {
    const specs = '/var/run/cdi';
    await withAgent(['--interposition=cdi', `--cdi-path=${specs}`], async () => {
      await cluster.apply(pod('cdi', [worker(30, 8)]));
      await phase('cdi', 'Running');
      const { uuids, devices, readOnly } = await shown('cdi');
      t.equal(uuids.length, 1);
      t.ok(devices.includes('/dev/nvidiactl'));
      t.same(readOnly, {
        '/etc/vcuda': true,
        '/etc/vcuda/usage/vgpu.usage': false,
        '/etc/vcuda/usage/vgpu.activity': false,
      });
      const files = readdirSync(specs).filter((name) => name.startsWith('tencent.com-vcuda_'));
      t.equal(files.length, 1);
      t.match(readFileSync(join(specs, files[0] ?? ''), 'utf8'), /NVIDIA_VISIBLE_DEVICES/);
      await remove('cdi');
    });
  },
);

test('an XID of a GPU appears in the status of its pod', { skip: needs(36) || nativeSkipReason() }, async (t) => {
  const machine = join(cluster.directory, 'gpu-sim');
  const simulator = (...args: string[]): void =>
    void execFileSync(SIMULATOR, args, { env: { ...process.env, GPU_SIM_STATE: machine } });
  await withAgent([`--sim-state=${machine}`], async () => {
    await cluster.apply(pod('status', [worker(30, 8)]));
    await phase('status', 'Running');
    const health = async (): Promise<readonly string[]> => {
      const { status } = await cluster.get<Pod>('pod', 'status');
      const resources = (status.containerStatuses?.[0]?.allocatedResourcesStatus ?? []).flatMap(
        (each) => each.resources,
      );
      return [...new Set(resources.map((resource) => resource.health))];
    };
    await until('the health of its devices', async () => (await health()).join() === 'Healthy');
    for (const gpu of ['0', '1']) simulator('xid', gpu, FALLEN_OFF_THE_BUS);
    await until('the XID to show', async () => (await health()).join() === 'Unhealthy', 120_000);
    t.pass('Healthy, then Unhealthy');
    await remove('status');
  });
});

test(
  'a real server enforces the rules of the custom resources, with server-side apply, too',
  { skip: needs(29) },
  async (t) => {
    await cluster.apply(...manifestsOf('etc/quota/crds.yaml'));
    await cluster.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s');
    const group = (spec: object): object => ({
      apiVersion: 'quota.gpu-manager.io/v1',
      kind: 'BizGroupResourceQuota',
      metadata: { name: 'rules' },
      spec,
    });
    const apply = async (object: object): Promise<string> => {
      const file = join(cluster.directory, 'server-side.json');
      writeFileSync(file, JSON.stringify(object));
      return cluster.kubectl('apply', '--server-side', '-f', file);
    };
    await t.rejects(
      apply(group({ hard: { 'limits.cpu': 4 }, borrow: { 'limits.cpu': 1 } })),
      /only elastic groups borrow/,
    );
    t.match(await apply(group({ hard: { 'limits.cpu': 4 } })), /serverside-applied/);
    await t.rejects(apply(group({ hard: { 'limits.cpu': 4 }, parentBizGroup: 'other' })), /groups do not move/);
    t.match(await apply(group({ hard: { 'limits.cpu': 5 } })), /serverside-applied/);
    t.match(await cluster.kubectl('describe', 'bizgroupresourcequota', 'rules'), /limits\.cpu/);
    await cluster.kubectl('delete', 'bizgroupresourcequota', 'rules');
  },
);

test('a ValidatingAdmissionPolicy reads the request of a pod', { skip: needs(30) }, async (t) => {
  const name = 'whole-gpus-only';
  await cluster.apply(
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
        validations: [
          {
            expression: `object.spec.containers.all(c, !has(c.resources.limits) || !('${CORE_RESOURCE}' in c.resources.limits) || int(string(c.resources.limits['${CORE_RESOURCE}'])) >= 100)`,
            message: 'whole GPUs only',
          },
        ],
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  );
  t.teardown(() => cluster.kubectl('delete', 'validatingadmissionpolicy,validatingadmissionpolicybinding', name));
  await until('the policy to be enforced', async () => {
    const refused = await cluster.apply(podManifest('part', [worker(30, 8)])).then(
      () => null,
      (error: Error) => error.message,
    );
    if (refused === null) await cluster.kubectl('delete', 'pod', 'part', '--force', '--grace-period=0');
    return refused !== null && /whole GPUs only/.test(refused);
  });
  await withAgent([], async () => {
    await cluster.apply(podManifest('whole', [worker(100, 0)]));
    await phase('whole', 'Running');
    t.match(await cluster.kubectl('describe', 'node', 'node1'), /tencent\.com\/vcuda-core\s+100\s+100/);
    t.match(await cluster.kubectl('describe', 'pod', 'whole'), /tencent\.com\/vcuda-core:\s+100/);
    await remove('whole');
  });
});
