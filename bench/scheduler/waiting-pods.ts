import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { systemClock } from '../../src/host/clock.js';
import { packageFile } from '../../src/host/package-files.js';
import { ALL_NODES, ALL_RESOURCE_SLICES, podsPath, resourceClaimsPath } from '../../src/kube/api-path.js';
import { MERGE_PATCH, type KubeClient, type KubeRequest } from '../../src/kube/client.js';
import { openKubeClient } from '../../src/kube/open-client.js';
import type { Offer } from '../../src/scheduler/extender-service.js';
import { TestCluster } from '../../test/e2e/cluster.js';
import type { KubernetesVersion } from '../../test/e2e/kubernetes-version.js';
import { until } from '../../test/harness/eventually.js';
import { cpuSeconds, mainThreadSeconds, residentMib } from '../agent/process-cost.js';
import { countsBetween, readApiCounts, type ApiCounts } from './api-counts.js';
import { splitOf, type CpuSplit } from './cpu-split.js';
import { claimObject, memberObject, nodeObject, podObject, resourceSlice, type Way } from './simulated-objects.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const INSTANT = fileURLToPath(new URL('./instant-extender.js', import.meta.url));
const execute = promisify(execFile);
const NAMESPACE = 'default';
/** Requests at a time that create or delete objects. */
const WRITERS = 8;
const LONGEST_MS = 180_000;
/** Pods before the measured ones: the first wait for the scheduler's start. */
const WARM_UP = 5;
const PROFILE_PORT = 10259;
const PROFILE_SECONDS = 60;
/** Where the extender runs if it has a processor for itself, and where all else runs. */
const OWN_PROCESSOR = String(availableParallelism() - 1);
const OTHER_PROCESSORS = availableParallelism() > 2 ? `0-${availableParallelism() - 2}` : '0';

const PROGRAMS = ['etcd', 'apiserver', 'scheduler', 'extender'] as const;

export type Program = (typeof PROGRAMS)[number];

/** What one scheduler took to bind all pods. */
export interface Binding {
  readonly pods: number;
  /** From the start of the scheduler's process to the last binding. */
  readonly seconds: number;
  /** From the first binding on. */
  readonly podsPerSecond: number;
  /** CPU time of each program in this time. */
  readonly cpuSeconds: ReadonlyMap<Program, number>;
  /** The extender's part of it in V8's helper threads, which compile and collect garbage; NaN without an extender. */
  readonly helperSeconds: number;
  /** What the extender did; null unless it was profiled. */
  readonly split: CpuSplit | null;
  /** From the start of the extender's process to ready, with all nodes and pods; NaN without an extender. */
  readonly readySeconds: number;
  /** The extender's resident memory after the last binding; NaN without an extender. */
  readonly extenderMib: number;
  /** What the API server answered and sent meanwhile. */
  readonly counts: ApiCounts;
}

/** What schedulers bind, and where the programs run. */
export interface WaitingPodsOptions {
  readonly nodes: number;
  readonly pods: number;
  /** The extender has the last processor for itself, and all other programs share the others. */
  readonly hasOwnCore: boolean;
  /** Pod groups are on (Kubernetes 1.37). */
  readonly hasGroups?: boolean;
}

/** How the extender runs beside a scheduler. */
export interface ExtenderRun {
  readonly offer: Offer;
  readonly isProfiled: boolean;
  /** The least that an extender can do (`instant-extender.ts`), instead of ours. */
  readonly isInstant?: boolean;
  /** It stays for the next pods, and is the one of the pods before if that stayed. */
  readonly stays?: boolean;
}

/** All nodes, as the shipped configuration has it, or as many as kube-scheduler does by default. */
export type LooksAt = 'all nodes' | 'some nodes';

export interface SchedulerRun {
  readonly looksAt?: LooksAt;
  /** Requests that the scheduler may make in a second; by default more than it can. */
  readonly requestsPerSecond?: number;
  readonly profile?: string | null;
}

/** Etcd, API server and simulated nodes, on which schedulers bind pods that wait for them, one scheduler at a time. */
export class WaitingPods {
  readonly #cluster: TestCluster;
  readonly #names: readonly string[];
  readonly #pods: readonly string[];
  readonly #hasOwnCore: boolean;
  readonly #gates: readonly string[];
  #groups = 0;
  #client: KubeClient | null = null;

  constructor(version: KubernetesVersion, { nodes, pods, hasOwnCore, hasGroups = false }: WaitingPodsOptions) {
    this.#cluster = new TestCluster(version);
    this.#hasOwnCore = hasOwnCore;
    this.#gates = hasGroups ? ['--feature-gates=GenericWorkload=true'] : [];
    this.#names = Array.from({ length: nodes }, (_, at) => `node-${at}`);
    this.#pods = Array.from({ length: pods }, (_, at) => `pod-${at}`);
  }

  async start(): Promise<void> {
    // No controller runs that would remove the taint of new nodes or make service accounts.
    await this.#cluster.startServer({
      apiServerArgs: [
        '--disable-admission-plugins=TaintNodesByCondition,ServiceAccount',
        ...(this.#gates.length === 0 ? [] : ['--runtime-config=api/all=true', ...this.#gates]),
      ],
    });
    this.#client = await openKubeClient(this.#cluster.kubeconfig, systemClock);
    await until('the default namespace', async () => (await this.#get('/api/v1/namespaces/default')) !== null);
    await this.#create(ALL_NODES, this.#names.map(nodeObject));
    for (const name of ['etcd', 'apiserver'] as const) this.#pin(name);
    if (this.#hasOwnCore) pinTo(OTHER_PROCESSORS, process.pid);
  }

  async stop(): Promise<void> {
    this.#client?.close();
    await this.#cluster.stop();
  }

  /** Adds the GPUs of the nodes; call it before pods with claims. */
  async publishGpus(): Promise<void> {
    await this.#cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
    await this.#create(ALL_RESOURCE_SLICES, this.#names.map(resourceSlice));
  }

  /** Adds a claim that is not allocated for each pod, in place of those of an earlier run. */
  async renewClaims(): Promise<void> {
    const path = resourceClaimsPath(NAMESPACE);
    const { items } = (await this.#get(path)) as { readonly items: readonly { readonly metadata: { name: string } }[] };
    // No controller runs that would let go of a claim.
    await this.#forEach(items, ({ metadata: { name } }) => [
      { method: 'PATCH', path: `${path}/${name}`, body: { metadata: { finalizers: null } }, contentType: MERGE_PATCH },
      { method: 'DELETE', path: `${path}/${name}` },
    ]);
    await this.#create(path, this.#pods.map(claimObject));
  }

  /**
   * Creates the pods, starts a scheduler, waits until it has bound all, and removes pods and scheduler. `profile`: the
   * file for the scheduler's CPU profile.
   */
  async bindAll(
    way: Way,
    extender: ExtenderRun | null,
    { looksAt = 'all nodes', profile = null, requestsPerSecond = 2_000 }: SchedulerRun = {},
  ): Promise<Binding> {
    const { processes } = this.#cluster;
    const profiles = join(this.#cluster.directory, `profile-${performance.now()}`);
    await this.#create(
      podsPath(NAMESPACE),
      this.#pods.map((name) => podObject(name, way)),
    );
    const readySeconds =
      extender === null || processes.isAlive('extender') ? NaN : await this.#startExtender(extender, profiles);
    const countsBefore = await this.#apiCounts();
    const bound = this.#watchBindings();
    const before = this.#cpuSeconds();
    const mainBefore = this.#mainSeconds();
    const started = monotonicMs();
    this.#startScheduler(this.#schedulerConfig(extender !== null, looksAt, requestsPerSecond), profile !== null);
    const [times] = await Promise.all([bound, profile === null ? null : fetchSchedulerProfile(profile)]);
    const extenderMib = processes.isAlive('extender') ? residentMib(processes.pidOf('extender')) : NaN;
    const used = new Map([...this.#cpuSeconds()].map(([name, total]) => [name, total - (before.get(name) ?? 0)]));
    const helperSeconds = (used.get('extender') ?? NaN) - (this.#mainSeconds() - mainBefore);
    const counts = countsBetween(countsBefore, await this.#apiCounts());
    await processes.stop('scheduler');
    if (extender !== null && extender.stays !== true) await processes.stop('extender');
    await this.#removePods();
    const [first, last] = [times[0] ?? NaN, times.at(-1) ?? NaN];
    return {
      pods: times.length,
      seconds: (last - started) / 1_000,
      podsPerSecond: (1_000 * (times.length - 1)) / (last - first),
      cpuSeconds: used,
      helperSeconds,
      readySeconds,
      extenderMib,
      counts,
      split: extender?.isProfiled === true ? splitOf(profiles, 1_000 * started) : null,
    };
  }

  /**
   * With a group of `members` whole nodes that never all fit (null: without one), a scheduler binds the pods one after
   * another: the milliseconds from the creation of each but the first to its binding.
   */
  async bindOneByOne(extender: ExtenderRun | null, members: number | null): Promise<readonly number[]> {
    const { processes } = this.#cluster;
    if (extender !== null) await this.#startExtender(extender, '');
    this.#startScheduler(this.#schedulerConfig(extender !== null, 'all nodes', 2_000));
    // No controller runs that would end the deletion of a group, so each has a name of its own.
    if (members !== null) await this.#createGroup(`group-${(this.#groups += 1)}`, members);
    const times: number[] = [];
    for (const name of this.#pods) {
      const started = monotonicMs();
      await this.#create(podsPath(NAMESPACE), [podObject(name, 'resources')]);
      while (!(await this.#isBound(name))) {
        if (monotonicMs() - started > LONGEST_MS)
          throw new Error(
            `${name} was not bound in ${LONGEST_MS / 1_000} s, ${extender === null ? 'without' : 'with'} the extender, ` +
              (members === null ? 'without a group' : `beside a group of ${members}`),
          );
        await delay(2);
      }
      times.push(monotonicMs() - started);
    }
    await processes.stop('scheduler');
    if (extender !== null) await processes.stop('extender');
    await this.#removePods();
    return times.slice(WARM_UP);
  }

  async #isBound(pod: string): Promise<boolean> {
    const found = (await this.#get(`${podsPath(NAMESPACE)}/${pod}`)) as {
      readonly spec: { readonly nodeName?: string };
    };
    return found.spec.nodeName !== undefined;
  }

  /** A pod group of whole nodes with its members, all of which it needs. */
  async #createGroup(name: string, members: number): Promise<void> {
    const { versions } = (await this.#get('/apis/scheduling.k8s.io')) as {
      readonly versions: readonly { readonly groupVersion: string }[];
    };
    const groupVersion = versions.map((version) => version.groupVersion).find((name) => !name.endsWith('/v1')) ?? '';
    const path = `/apis/${groupVersion}/namespaces/${NAMESPACE}/podgroups`;
    const body = { apiVersion: groupVersion, kind: 'PodGroup', metadata: { name } };
    await this.#create(path, [{ ...body, spec: { schedulingPolicy: { gang: { minCount: members } } } }]);
    const pods = Array.from({ length: members }, (_, at) => memberObject(name, `member-${at}`));
    await this.#create(podsPath(NAMESPACE), pods);
  }

  /** Returns the seconds from its start to ready. */
  async #startExtender({ offer, isProfiled, isInstant = false }: ExtenderRun, profiles: string): Promise<number> {
    const { kubeconfig } = this.#cluster;
    const profiling = isProfiled ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [];
    const args = isInstant
      ? [INSTANT, kubeconfig]
      : [...profiling, MAIN, 'extender', `--offer=${offer}`, `--kubeconfig=${kubeconfig}`];
    const started = monotonicMs();
    this.#cluster.processes.start('extender', process.execPath, args);
    this.#pin('extender');
    await until('the extender to be ready', async () => (await fetch('http://127.0.0.1:3456/readyz')).ok, 60_000);
    return (monotonicMs() - started) / 1_000;
  }

  #startScheduler(config: string, isProfiled = false): void {
    this.#cluster.startScheduler(
      [`--config=${config}`, ...this.#gates],
      isProfiled ? [`--secure-port=${PROFILE_PORT}`, '--authorization-always-allow-paths=/debug/pprof/*'] : undefined,
    );
    this.#pin('scheduler');
  }

  /** Moves a program and its threads to the processors that it may use. */
  #pin(name: Program): void {
    if (this.#hasOwnCore)
      pinTo(name === 'extender' ? OWN_PROCESSOR : OTHER_PROCESSORS, this.#cluster.processes.pidOf(name));
  }

  /** CPU time of the programs that run, since their start. */
  #cpuSeconds(): ReadonlyMap<Program, number> {
    const { processes } = this.#cluster;
    const running = PROGRAMS.filter((name) => processes.isAlive(name));
    return new Map(running.map((name) => [name, cpuSeconds(processes.pidOf(name))]));
  }

  async #apiCounts(): Promise<ApiCounts> {
    return readApiCounts(await this.#cluster.kubectl('get', '--raw', '/metrics'));
  }

  /** CPU time of the extender's main thread since its start; NaN if it does not run. */
  #mainSeconds(): number {
    const { processes } = this.#cluster;
    return processes.isAlive('extender') ? mainThreadSeconds(processes.pidOf('extender')) : NaN;
  }

  /** Resolves with the time of each binding, in their order. */
  async #watchBindings(): Promise<number[]> {
    const times: number[] = [];
    const uids = new Set<string>();
    const started = monotonicMs();
    while (times.length < this.#pods.length) {
      if (monotonicMs() - started > LONGEST_MS)
        throw new Error(`${times.length} of ${this.#pods.length} pods were bound in ${LONGEST_MS / 1_000} s`);
      // The API server ends the watch of a reader that is too slow for it; the next watch begins with what is bound.
      await this.#watchBound((uid) => {
        if (uids.size < uids.add(uid).size) times.push(monotonicMs());
        return times.length === this.#pods.length;
      });
      if (times.length < this.#pods.length) await delay(10);
    }
    return times;
  }

  /** Tells the uid of each bound pod until the answer is that it was the last one, or the watch ends. */
  async #watchBound(isLast: (uid: string) => boolean): Promise<void> {
    const watch = this.#opened.watch(
      {
        path: podsPath(NAMESPACE),
        query: { watch: 'true', fieldSelector: 'spec.nodeName!=', timeoutSeconds: String(LONGEST_MS / 1_000) },
        idleMs: LONGEST_MS,
      },
      {
        opened: () => undefined,
        event: (event) => {
          const { uid } = (event as { readonly object: { readonly metadata: { readonly uid: string } } }).object
            .metadata;
          if (isLast(uid)) watch.close();
        },
      },
    );
    await watch.ended;
  }

  /** The shipped configuration, or one without the extender, with other limits than it has by default. */
  #schedulerConfig(hasExtender: boolean, looksAt: LooksAt, requestsPerSecond: number): string {
    const path = join(this.#cluster.directory, 'scheduler.yaml');
    const shipped = readFileSync(packageFile('etc/extender/scheduler-config.yaml'), 'utf8');
    const text = hasExtender ? shipped : shipped.slice(0, shipped.indexOf('extenders:'));
    writeFileSync(
      path,
      text
        .replace(
          '/etc/kubernetes/scheduler.conf',
          `${this.#cluster.kubeconfig}\n  qps: ${requestsPerSecond}\n  burst: ${requestsPerSecond}`,
        )
        .replace(/^percentageOfNodesToScore.*\n/m, looksAt === 'all nodes' ? '$&' : '')
        .concat('leaderElection:\n  leaderElect: false\n'),
    );
    return path;
  }

  async #removePods(): Promise<void> {
    const query = { gracePeriodSeconds: '0' };
    const answer = await this.#opened.request({
      method: 'DELETE',
      path: podsPath(NAMESPACE),
      query,
      timeoutMs: LONGEST_MS,
    });
    if (!answer.ok) throw new Error(`pods were not deleted: ${answer.message}`);
    await until('the pods to be deleted', async () => {
      const { items } = (await this.#get(podsPath(NAMESPACE))) as { readonly items: readonly unknown[] };
      return items.length === 0;
    });
  }

  async #create(path: string, objects: readonly object[]): Promise<void> {
    await this.#forEach(objects, (body) => [{ method: 'POST', path, body }]);
  }

  /** Sends the requests for each of these, several at a time. */
  async #forEach<T>(all: readonly T[], requests: (one: T) => readonly KubeRequest[]): Promise<void> {
    const left = [...all];
    const write = async (): Promise<void> => {
      for (let one = left.pop(); one !== undefined; one = left.pop())
        for (const request of requests(one)) {
          const answer = await this.#opened.request(request);
          if (!answer.ok) throw new Error(`${request.method} ${request.path}: ${answer.message}`);
        }
    };
    await Promise.all(Array.from({ length: WRITERS }, write));
  }

  async #get(path: string): Promise<unknown> {
    const answer = await this.#opened.request({ method: 'GET', path });
    return answer.ok ? answer.body : null;
  }

  get #opened(): KubeClient {
    if (this.#client === null) throw new Error('the cluster is not started');
    return this.#client;
  }
}

/** Writes the CPU profile of a running scheduler's next seconds, for `go tool pprof`. */
async function fetchSchedulerProfile(file: string): Promise<void> {
  const url = `https://127.0.0.1:${PROFILE_PORT}/debug/pprof/profile?seconds=${PROFILE_SECONDS}`;
  await execute('curl', [
    '--silent',
    '--show-error',
    '--fail',
    '--insecure',
    '--retry',
    '20',
    '--retry-connrefused',
    '--retry-delay',
    '1',
    '--output',
    file,
    url,
  ]);
}

function pinTo(processors: string, pid: number): void {
  execFileSync('taskset', ['--all-tasks', '--pid', '--cpu-list', processors, String(pid)], { stdio: 'ignore' });
}

/** The clock of V8's profiles, which is one for all processes. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
