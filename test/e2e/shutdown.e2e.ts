import tap, { test } from 'tap';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { LoginManager, loginManagerSkipReason } from './login-manager.js';
import { podManifest } from './pods.js';
import { until } from '../harness/eventually.js';

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, '{"gpus":[{},{}]}');
const logins = new LoginManager(cluster);
/** Within the delay that the login manager allows by default, 5 s: the kubelet changes no file of the machine. */
const GRACE = { shutdownGracePeriod: '5s', shutdownGracePeriodCriticalPods: '2s' };

tap.setTimeout(900_000);
tap.teardown(() => agent.stop());

interface Pod {
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly containerStatuses?: readonly {
      readonly state: { readonly terminated?: { readonly finishedAt: string } };
    }[];
  };
}

const phase = (name: string, wanted: string): Promise<Pod> =>
  until(`pod ${name} to be ${wanted}`, async () => {
    const found = await cluster.get<Pod>('pod', name);
    return found.status.phase === wanted && found;
  });

const endOf = ({ status }: Pod): number =>
  Date.parse(status.containerStatuses?.[0]?.state.terminated?.finishedAt ?? '');

const readiness = (): Promise<string> =>
  cluster.kubectl('get', 'node', '-o', 'jsonpath={.items[0].status.conditions[?(@.type=="Ready")].message}');

/** A pod that needs `seconds` to end. */
function worker(name: string, cores: number, seconds: number, changes: object = {}): object {
  const command = `trap 'sleep ${seconds}; exit 143' TERM; sleep 100000 & wait`;
  const made = podManifest(name, [{ name: 'main', cores, memoryBlocks: 8, command }]) as { readonly spec: object };
  return { ...made, spec: { ...made.spec, terminationGracePeriodSeconds: 3, ...changes } };
}

const skip =
  loginManagerSkipReason() ||
  (!cluster.version.atLeast(21) && `needs Kubernetes 1.21, this is ${cluster.version.name}`);

test(
  'a graceful shutdown of the node ends GPU pods before critical ones, and a cancelled one leaves every GPU free',
  { skip },
  async (t) => {
    await logins.start();
    await cluster.processes.stop('kubelet');
    cluster.startKubelet({ settings: GRACE, environment: logins.environment });
    await agent.start();
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    await until('the lock of the kubelet', async () => /"kubelet"/.test(await logins.inhibitors()));

    await cluster.apply(
      worker('training', 60, 1),
      worker('critical', 30, 0, { priorityClassName: 'system-node-critical' }),
    );
    for (const name of ['training', 'critical']) await phase(name, 'Running');
    t.equal(Object.keys(await agent.usage()).length, 2);

    await logins.announceShutdown(true);
    const training = await phase('training', 'Failed');
    const critical = await phase('critical', 'Failed');
    for (const { status } of [training, critical]) t.match(status.message, /node shutdown/);
    t.ok(endOf(critical) >= endOf(training), 'a critical pod, as the agent is one, ends after the others');
    await until('the node to report its shutdown', async () => /shutting down/.test(await readiness()));
    await cluster.apply(worker('late', 10, 0));
    t.match((await phase('late', 'Failed')).status, { reason: /NodeShutdown/ }, 'a new pod is refused by the kubelet');
    await until('no container to hold a GPU', async () => Object.keys(await agent.usage()).length === 0);
    await until('the lock to be released', async () => !/"kubelet"/.test(await logins.inhibitors()));

    await logins.announceShutdown(false);
    // Not its new lock: a kubelet closes the descriptor of the old one again, which the new one may have by then.
    await until('the node to be ready', async () => !/shutting down/.test(await readiness()));
    await cluster.apply(worker('after', 200, 0));
    await phase('after', 'Running');
    t.equal(Object.keys(await agent.usage()).length, 1, 'a pod gets all GPUs');
  },
);
