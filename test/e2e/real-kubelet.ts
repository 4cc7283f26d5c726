import type { Test } from 'tap';
import { RESOURCE_NAME, type ResourceKind } from '../../src/gpu/resources.js';
import type { EmulatedContainer, EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { until } from '../harness/eventually.js';
import type { Outcome, TestedKubelet } from '../simulation/kubelet/contract.js';
import { NODE, TestCluster } from './cluster.js';
import { podManifest } from './pods.js';

const PLUGINS = '/var/lib/kubelet/device-plugins';
const POD_RESOURCES = '/var/lib/kubelet/pod-resources/kubelet.sock';

interface NodeStatus {
  readonly status: {
    readonly allocatable: Readonly<Record<string, string>>;
    readonly conditions: readonly { readonly type: string; readonly lastHeartbeatTime: string }[];
  };
}

interface ContainerStatus {
  readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
}

interface PodStatus {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

/** The running kubelet of the test cluster; its pods are removed when the test ends. */
export async function realKubelet(t: Test): Promise<TestedKubelet> {
  const cluster = new TestCluster();
  const statusOf = ({ name }: EmulatedPod): Promise<PodStatus> => cluster.get<PodStatus>('pod', name);
  const remove = (...which: string[]): Promise<string> =>
    cluster.kubectl('delete', 'pods', ...which, '--wait=true', '--timeout=120s');
  t.teardown(() => remove('--all'));
  let restarted = false;
  return {
    directory: PLUGINS,
    podResourcesSocket: POD_RESOURCES,
    async offers(kind, count) {
      if (restarted) await cluster.kubeletIsBack(RESOURCE_NAME[kind]);
      await until(`${NODE} to offer ${count} of ${kind}`, async () => offered(await nodeOf(cluster), kind) === count);
    },
    async run(pod) {
      await cluster.apply(manifestOf(pod));
      return until(`${pod.name} to run or to fail`, async () => outcomeOf(await statusOf(pod)));
    },
    async remove({ name }) {
      await remove(name);
    },
    // The containers ignore SIGTERM, so they end after the grace period: time for the next pod's Allocate.
    async removeAfter({ name }) {
      await remove(name, '--grace-period=10');
    },
    uidOf: async (pod) => (await statusOf(pod)).metadata.uid,
    async restart() {
      // Heartbeats have whole seconds, so that of the new kubelet may look older than its start.
      const before = heartbeat(await nodeOf(cluster));
      await cluster.restartKubelet();
      await until('the kubelet to report its node', async () => heartbeat(await nodeOf(cluster)) > before);
      restarted = true;
    },
  };
}

const nodeOf = (cluster: TestCluster): Promise<NodeStatus> => cluster.get<NodeStatus>('node', NODE);

const offered = ({ status }: NodeStatus, kind: ResourceKind): number =>
  Number(status.allocatable[RESOURCE_NAME[kind]] ?? 0);

const heartbeat = ({ status }: NodeStatus): number =>
  Date.parse(status.conditions.find(({ type }) => type === 'Ready')?.lastHeartbeatTime ?? '');

function manifestOf({ name, initContainers, containers }: EmulatedPod): object {
  const doing = (command: string) => (container: EmulatedContainer) => ({ ...container, command });
  return podManifest(name, containers.map(doing('sleep 100000')), initContainers.map(doing('true')));
}

function outcomeOf({ status }: PodStatus): Outcome | null {
  if (status.phase === 'Running') return { ok: true };
  if (status.phase === 'Failed') return { ok: false, message: `${status.reason ?? ''}: ${status.message ?? ''}` };
  const waiting = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    .map(({ state }) => state?.waiting)
    .find((state) => state?.message !== undefined);
  return waiting === undefined ? null : { ok: false, message: `${waiting.reason ?? ''}: ${waiting.message ?? ''}` };
}
