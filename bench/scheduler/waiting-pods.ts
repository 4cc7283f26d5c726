import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/host/clock.js';
import { packageFile } from '../../src/host/package-files.js';
import { ALL_NODES, ALL_RESOURCE_SLICES, podsPath, resourceClaimsPath } from '../../src/kube/api-path.js';
import type { KubeClient } from '../../src/kube/client.js';
import { openKubeClient } from '../../src/kube/open-client.js';
import type { Offer } from '../../src/scheduler/extender-service.js';
import { TestCluster } from '../../test/e2e/cluster.js';
import type { KubernetesVersion } from '../../test/e2e/kubernetes-version.js';
import { until } from '../../test/harness/eventually.js';
import { cpuSeconds, mainThreadSeconds } from '../agent/process-cost.js';
import { splitOf, type CpuSplit } from './cpu-split.js';
import { claimObject, nodeObject, podObject, resourceSlice, type Way } from './simulated-objects.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const NAMESPACE = 'default';
/** Requests at a time that create or delete objects. */
const WRITERS = 8;
const LONGEST_MS = 180_000;

const PROGRAMS = ['etcd', 'apiserver', 'scheduler', 'extender'] as const;

export type Program = (typeof PROGRAMS)[number];

/** What one scheduler took to bind all pods. */
export interface Binding {
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
}

/** How the extender runs beside a scheduler. */
export interface ExtenderRun {
  readonly offer: Offer;
  readonly isProfiled: boolean;
}

/** Etcd, API server and simulated nodes, on which schedulers bind pods that wait for them, one scheduler at a time. */
export class WaitingPods {
  readonly #cluster: TestCluster;
  readonly #names: readonly string[];
  readonly #pods: readonly string[];
  #client: KubeClient | null = null;

  constructor(version: KubernetesVersion, nodes: number, pods: number) {
    this.#cluster = new TestCluster(version);
    this.#names = Array.from({ length: nodes }, (_, at) => `node-${at}`);
    this.#pods = Array.from({ length: pods }, (_, at) => `pod-${at}`);
  }

  async start(): Promise<void> {
    // No controller runs that would remove the taint of new nodes or make service accounts.
    await this.#cluster.startServer({
      apiServerArgs: ['--disable-admission-plugins=TaintNodesByCondition,ServiceAccount'],
    });
    this.#client = await openKubeClient(this.#cluster.kubeconfig, systemClock);
    await until('the default namespace', async () => (await this.#get('/api/v1/namespaces/default')) !== null);
    await this.#create(ALL_NODES, this.#names.map(nodeObject));
  }

  async stop(): Promise<void> {
    this.#client?.close();
    await this.#cluster.stop();
  }

  /** Adds the GPUs of the nodes and one claim for each pod; call it before pods with claims. */
  async publishClaims(): Promise<void> {
    await this.#cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
    await this.#create(ALL_RESOURCE_SLICES, this.#names.map(resourceSlice));
    await this.#create(resourceClaimsPath(NAMESPACE), this.#pods.map(claimObject));
  }

  /** Creates the pods, starts a scheduler, waits until it has bound all, and removes pods and scheduler. */
  async bindAll(way: Way, extender: ExtenderRun | null): Promise<Binding> {
    const { processes } = this.#cluster;
    const profiles = join(this.#cluster.directory, `profile-${performance.now()}`);
    await this.#create(
      podsPath(NAMESPACE),
      this.#pods.map((name) => podObject(name, way)),
    );
    if (extender !== null) {
      const profiling = extender.isProfiled ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [];
      const args = [
        ...profiling,
        MAIN,
        'extender',
        `--offer=${extender.offer}`,
        `--kubeconfig=${this.#cluster.kubeconfig}`,
      ];
      processes.start('extender', process.execPath, args);
      await until('the extender to be ready', async () => (await fetch('http://127.0.0.1:3456/readyz')).ok, 60_000);
    }
    const bound = this.#watchBindings();
    const before = this.#cpuSeconds();
    const mainBefore = this.#mainSeconds();
    const started = monotonicMs();
    this.#cluster.startScheduler([`--config=${this.#schedulerConfig(extender !== null)}`]);
    const times = await bound;
    const used = new Map([...this.#cpuSeconds()].map(([name, total]) => [name, total - (before.get(name) ?? 0)]));
    const helperSeconds = (used.get('extender') ?? NaN) - (this.#mainSeconds() - mainBefore);
    await processes.stop('scheduler');
    if (extender !== null) await processes.stop('extender');
    await this.#removePods();
    const [first, last] = [times[0] ?? NaN, times.at(-1) ?? NaN];
    return {
      seconds: (last - started) / 1_000,
      podsPerSecond: (1_000 * (times.length - 1)) / (last - first),
      cpuSeconds: used,
      helperSeconds,
      split: extender?.isProfiled === true ? splitOf(profiles, 1_000 * started) : null,
    };
  }

  /** CPU time of the programs that run, since their start. */
  #cpuSeconds(): ReadonlyMap<Program, number> {
    const { processes } = this.#cluster;
    const running = PROGRAMS.filter((name) => processes.isAlive(name));
    return new Map(running.map((name) => [name, cpuSeconds(processes.pidOf(name))]));
  }

  /** CPU time of the extender's main thread since its start; NaN if it does not run. */
  #mainSeconds(): number {
    const { processes } = this.#cluster;
    return processes.isAlive('extender') ? mainThreadSeconds(processes.pidOf('extender')) : NaN;
  }

  /** Resolves with the time of each binding, in their order. */
  async #watchBindings(): Promise<number[]> {
    const client = this.#opened;
    const times: number[] = [];
    const uids = new Set<string>();
    return new Promise((resolve, reject) => {
      const watch = client.watch(
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
            if (uids.size < uids.add(uid).size) times.push(monotonicMs());
            if (times.length < this.#pods.length) return;
            resolve(times);
            watch.close();
          },
        },
      );
      void watch.ended.then(() =>
        reject(new Error(`${times.length} of ${this.#pods.length} pods were bound in ${LONGEST_MS / 1_000} s`)),
      );
    });
  }

  /** The shipped configuration, or one without the extender, with limits that do not slow the scheduler down. */
  #schedulerConfig(hasExtender: boolean): string {
    const path = join(this.#cluster.directory, 'scheduler.yaml');
    const shipped = readFileSync(packageFile('etc/extender/scheduler-config.yaml'), 'utf8');
    const text = hasExtender ? shipped : shipped.slice(0, shipped.indexOf('extenders:'));
    writeFileSync(
      path,
      text
        .replace('/etc/kubernetes/scheduler.conf', `${this.#cluster.kubeconfig}\n  qps: 2000\n  burst: 2000`)
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
    const left = [...objects];
    const write = async (): Promise<void> => {
      for (let body = left.pop(); body !== undefined; body = left.pop()) {
        const answer = await this.#opened.request({ method: 'POST', path, body });
        if (!answer.ok) throw new Error(`POST ${path}: ${answer.message}`);
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

/** The clock of V8's profiles, which is one for all processes. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
