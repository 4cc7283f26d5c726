import type { Command } from 'commander';
import { StartupError } from '../../host/startup-error.js';
import { podPath, podsPath, resourceClaimPath } from '../../kube/api-path.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { record } from '../../kube/json.js';
import { listAll } from '../../kube/list-all.js';
import { readPod, type Pod } from '../../kube/pod.js';
import { explainWaiting } from '../../cluster/explain/explain-waiting.js';
import { groupOf } from '../../cluster/pod-groups.js';
import { readState } from '../../cluster/explain/cluster-state.js';
import { podOf } from '../../cluster/explain/object-file.js';
import { waitingDocument, waitingText } from '../../cluster/explain/waiting-text.js';
import type { WaitingAnswer } from '../../cluster/explain/why-waiting.js';
import { outputOption, print, type Output } from '../output.js';
import { quotaOf } from '../quota-explain.js';
import { refuseOptions } from '../refused-options.js';
import { printable } from '../terminal-text.js';
import { clusterCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import { whyNot } from './pods.js';

/** Kinds that create pods by themselves: their collections in the API. Others are explained by a pod of theirs. */
const WORKLOADS: readonly { readonly names: readonly string[]; readonly api: string }[] = [
  { names: ['deployment', 'deployments', 'deploy'], api: 'apis/apps/v1' },
  { names: ['replicaset', 'replicasets', 'rs'], api: 'apis/apps/v1' },
  { names: ['statefulset', 'statefulsets', 'sts'], api: 'apis/apps/v1' },
  { names: ['job', 'jobs'], api: 'apis/batch/v1' },
  { names: ['cronjob', 'cronjobs', 'cj'], api: 'apis/batch/v1' },
];

/** `kubectl gpu explain`: why a pod, claim, workload or pod group waits. */
export function explainCommand(): Command {
  return refuseOptions(clusterCommand('explain'), {
    watch: 'it explains once; kubectl gpu pods -w follows the pods',
    selector: 'name one object, such as pod/train',
    allNamespaces: 'name one object, and its namespace with -n',
  })
    .description(
      'explain why a pod, claim, workload or pod group waits: nodes, the nearest fit, quota and the scheduler; exit code 1: it fits nowhere, or quota refuses it',
    )
    .argument('<object>', 'POD, or kind/name: claim/shared, deployment/web, podgroup/train')
    .addOption(namespaceOption())
    .addOption(outputOption())
    .action((written: string, options: NamespaceOptions & { readonly output: Output }) =>
      withCluster(options, async ({ cluster: { api }, namespace }) => {
        const explained = await explainNamed(api, namespace ?? 'default', written);
        const { answer, workload, scheduler, quota } = explained;
        await print(options.output, {
          document: () => ({
            ...(answer === null ? {} : waitingDocument(answer)),
            ...{ workload, scheduler: scheduler || null, quota: quota?.text ?? null },
          }),
          table: () => textOf(explained),
        });
        const fitsNowhere = answer !== null && answer.nodes.every(({ fits }) => !fits);
        if (fitsNowhere || (quota?.refused ?? 0) > 0) process.exitCode = 1;
      }),
    );
}

interface Explained {
  /** Null for a kind whose pods cannot be derived. */
  readonly answer: WaitingAnswer | null;
  /** Kind of the workload that creates such pods; null for a pod. */
  readonly workload: string | null;
  /** The scheduler's words about the pod; empty without them. */
  readonly scheduler: string;
  readonly quota: { readonly text: string; readonly refused: number } | null;
}

async function explainNamed(api: KubeApi, namespace: string, written: string): Promise<Explained> {
  const [name = '', kind = 'pod', more] = written.split('/').reverse();
  if (name === '' || kind === '' || more !== undefined)
    throw new StartupError(`"${written}" is no object: expected a pod, or kind/name such as claim/shared`);
  switch (kind.toLowerCase()) {
    case 'pod':
    case 'pods':
    case 'po':
      return explainPod(
        api,
        readPod(await read(api, podPath(namespace, name), `pod ${name} in namespace ${namespace}`)),
      );
    case 'claim':
    case 'resourceclaim':
    case 'resourceclaims':
      return explainPod(api, await podOfClaim(api, namespace, name));
    case 'podgroup':
    case 'podgroups':
    case 'gang':
      return explainPod(api, await podOfGroup(api, namespace, name));
    default:
      return explainWorkload(api, namespace, kind, name);
  }
}

/** The first waiting pod that uses the claim. */
async function podOfClaim(api: KubeApi, namespace: string, name: string): Promise<Pod> {
  const claim = await read(api, resourceClaimPath(namespace, name), `claim ${name} in namespace ${namespace}`);
  if (record(record(claim).status).allocation !== undefined)
    throw new Error(`claim ${namespace}/${name} does not wait: it has devices (kubectl gpu claims ${name})`);
  const users = await podsIn(api, namespace, ({ claims }) =>
    claims.some(({ claimName, madeName }) => (claimName || madeName) === name),
  );
  if (users[0] === undefined)
    throw new Error(
      `no waiting pod uses claim ${namespace}/${name}: the scheduler allocates a claim for its first pod`,
    );
  return users[0];
}

async function podOfGroup(api: KubeApi, namespace: string, name: string): Promise<Pod> {
  const [first] = await podsIn(api, namespace, (pod) => groupOf(pod)?.endsWith(`/${name}`) === true);
  if (first === undefined) throw new Error(`no waiting pod of namespace ${namespace} is in a pod group ${name}`);
  return first;
}

async function podsIn(api: KubeApi, namespace: string, isMeant: (pod: Pod) => boolean): Promise<readonly Pod[]> {
  const pods = (await listAll(api, 'the pods', podsPath(namespace))).map(readPod);
  return pods.filter((pod) => pod.node === null && !pod.isDone && isMeant(pod));
}

async function explainPod(api: KubeApi, pod: Pod): Promise<Explained> {
  const [state, quota] = await Promise.all([readState(api), quotaOr(api, 'pod', pod.namespace, pod.name)]);
  return { answer: await explainWaiting(api, state, pod), workload: null, scheduler: whyNot(pod), quota };
}

async function explainWorkload(api: KubeApi, namespace: string, kind: string, name: string): Promise<Explained> {
  const quota = await quotaOr(api, kind, namespace, name);
  const known = WORKLOADS.find(({ names }) => names.includes(kind.toLowerCase()));
  if (known === undefined && quota === null)
    throw new StartupError(
      `"${kind}" is not known: name a pod, claim, podgroup, ${WORKLOADS.map(({ names }) => names[0]).join(', ')}, or a kind with quota`,
    );
  if (known === undefined) return { answer: null, workload: kind, scheduler: '', quota };
  const path = `/${known.api}/namespaces/${encodeURIComponent(namespace)}/${known.names[1]}/${encodeURIComponent(name)}`;
  const [, plural = ''] = known.names;
  const object = await read(api, path, `${plural} ${name} in namespace ${namespace}`);
  const made = podOf({ kind: KINDS[plural], ...record(object) });
  if (made === null) throw new Error(`${plural} ${namespace}/${name} has no template of pods`);
  const answer = await explainWaiting(api, await readState(api), made.pod);
  return { answer, workload: made.workload, scheduler: '', quota };
}

/** What quota says; null, with a line on standard error, where it cannot be read. */
async function quotaOr(api: KubeApi, kind: string, namespace: string, name: string) {
  try {
    return await quotaOf(api, kind, namespace, name);
  } catch (error) {
    process.stderr.write(`kubectl gpu: quota is not shown: ${printable((error as Error).message)}\n`);
    return null;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  deployments: 'Deployment',
  replicasets: 'ReplicaSet',
  statefulsets: 'StatefulSet',
  jobs: 'Job',
  cronjobs: 'CronJob',
};

async function read(api: KubeApi, path: string, what: string): Promise<unknown> {
  const answer = await api.request({ method: 'GET', path });
  if (answer.ok) return answer.body;
  throw answer.code === 'not-found' ? new Error(`no ${what} (-n for another namespace)`) : new KubeError(what, answer);
}

function textOf({ answer, workload, scheduler, quota }: Explained): string {
  return [
    ...(scheduler === '' ? [] : [`scheduler: ${printable(scheduler)}\n`]),
    ...(quota === null ? [] : [`quota: ${quota.text}`]),
    ...(answer === null ? [] : [`${waitingText(answer, workload, Date.now())}\n`]),
  ].join('');
}
