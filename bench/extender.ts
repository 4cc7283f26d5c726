import { Agent, request } from 'node:http';
import type { NodeObject, PodObject } from '../test/scheduler/objects.js';
import type { FilterResult, HostPriority, PreemptionResult } from '../src/scheduler/results.js';
import { atOnce, UNPACED } from '../src/cluster/placement/pace.js';
import { Cluster } from '../src/cluster/placement/cluster.js';
import { policyOf } from '../src/cluster/placement/policy/policies.js';
import { ClusterCache } from '../src/cluster/cluster-cache.js';
import { explainPod } from '../src/cluster/explain/node-explanation.js';
import { viewPod } from '../src/cluster/pod-view.js';
import { readPod } from '../src/kube/pod.js';
import { silentLog } from '../src/host/log.js';
import { ExtenderChild, startEcho } from './extender/extender-child.js';
import { importantPod, largeCluster, newPod, newPodOf, type LargeCluster } from './extender/large-cluster.js';
import { seededRandom, type Random } from './openb/random.js';
import { measured, type BenchOptions } from './report.js';

interface Size {
  readonly name: string;
  readonly nodes: number;
  readonly pods: number;
  readonly gpuPods: number;
  readonly decisions: number;
}

const SEED = 7;

/** The openb cluster's number of nodes; and a cluster at the limits that Kubernetes states, except for pods. */
const SIZES: readonly Size[] = [
  { name: '1,213 nodes', nodes: 1213, pods: 12_000, gpuPods: 8000, decisions: 1000 },
  { name: '5,000 nodes, 100,000 pods', nodes: 5000, pods: 100_000, gpuPods: 30_000, decisions: 400 },
];

/**
 * Decisions before the measured ones. Of the placed pods the latest hundred stay, so that the load of the cluster is
 * constant.
 */
const WARM_UP = 50;

const QUANTILES = [
  ['p50', 0.5],
  ['p99', 0.99],
] as const;

/**
 * How long kube-scheduler waits for the extender: filter and prioritize over all nodes by name, over HTTP on loopback,
 * one pod after another; each pod is bound and later ends. The extender runs in a process of its own, as it ships. The
 * baseline is a server in another process that reads the same bodies and answers with as many names, without a
 * decision.
 *
 * Then the same with whole nodes in the body (`nodeCacheCapable: false`), each as large as a node of a cluster; and the
 * filter alone for pods of three containers on a cluster on which nearly every GPU is partly used (baseline: pods of
 * one container there). On this cluster also preempt, for a pod of higher priority that asks for a whole GPU, with the
 * candidates that kube-scheduler would name (a tenth of the nodes), and `--explain` of such a pod for every node.
 *
 *     npm run bench -- extender
 */
export async function run({ report, note }: BenchOptions): Promise<void> {
  const extender = new ExtenderChild();
  const nothing = await startEcho();
  try {
    for (const size of SIZES) await measureSize(size, extender, nothing.port, report, note);
    await measureSeveralContainers(extender, report, note);
  } finally {
    await Promise.all([extender.close(), nothing.close()]);
  }
}

async function measureSize(
  size: Size,
  extender: ExtenderChild,
  echoPort: number,
  report: BenchOptions['report'],
  note: BenchOptions['note'],
): Promise<void> {
  const random = seededRandom(SEED);
  const cluster = largeCluster(random, size.nodes, size.pods, size.gpuPods);
  const { port, listedMs } = await extender.start({ ...size, seed: SEED });
  const names = cluster.nodes.map((node) => node.metadata?.name ?? '');
  const caller = new Caller(extender);
  const times: Times = { decision: [], cpu: [], bind: [], echo: [] };
  const placed: string[] = [];
  for (let at = 0; at < size.decisions + WARM_UP; at++) {
    const pod = newPod(random, `new-${at}`);
    const echo = await echoTwice(caller, echoPort, pod, names);
    const { decision, cpu, bind } = await decide(caller, port, extender, pod, names, placed);
    if (at < WARM_UP) continue;
    times.cpu.push(cpu);
    times.echo.push(echo);
    times.decision.push(decision);
    if (bind !== null) times.bind.push(bind);
  }
  const { rss } = await extender.used();
  for (const [quantile, of] of QUANTILES) {
    report(
      measured(
        `${size.name}: decision (filter + prioritize), ${quantile}`,
        quantileOf(times.decision, of),
        'ms',
        quantileOf(times.echo, of),
      ),
    );
    report(measured(`${size.name}: CPU time of it, ${quantile}`, quantileOf(times.cpu, of), 'ms'));
  }
  report(measured(`${size.name}: bind, p99`, quantileOf(times.bind, 0.99), 'ms'));
  report(measured(`${size.name}: from lists to ready`, listedMs, 'ms'));
  report(measured(`${size.name}: resident memory, the bench's objects of the cluster included`, rss / 2 ** 20, 'MiB'));
  await measureWholeNodes(size, extender, port, cluster, echoPort, caller, random, report);
  note(`${size.name}: ${times.bind.length} of ${size.decisions} pods found a place`);
  caller.close();
  await extender.stop();
}

const FULL_CLUSTER = { seed: 11, nodes: 5000, pods: 110_000, gpuPods: 110_000 };
const CALLS = 60;

/** Filter by names on a full cluster, for pods of one container and of three containers in turn. */
async function measureSeveralContainers(
  extender: ExtenderChild,
  report: BenchOptions['report'],
  note: BenchOptions['note'],
): Promise<void> {
  const { seed, nodes, pods, gpuPods } = FULL_CLUSTER;
  const random = seededRandom(seed);
  const cluster = largeCluster(random, nodes, pods, gpuPods);
  const { port } = await extender.start(FULL_CLUSTER);
  const caller = new Caller(extender);
  const names = cluster.nodes.map((node) => node.metadata?.name ?? '');
  const times = new Map([1, 3].map((count) => [count, { wall: [] as number[], cpu: [] as number[], fits: 0 }]));
  for (let at = 0; at < CALLS; at++) {
    for (const [count, { wall, cpu }] of times) {
      const pod = newPodOf(count, random, `of-${count}-${at}`);
      await extender.create(pod);
      const body = { Pod: pod, Nodes: null, NodeNames: names };
      const { answer, ms, cpuMs } = await caller.post<FilterResult>(port, 'predicates', body);
      await extender.delete(pod.metadata?.uid ?? '');
      wall.push(ms);
      cpu.push(cpuMs);
      if ((answer.NodeNames ?? []).length > 0) (times.get(count) as { fits: number }).fits++;
    }
  }
  const [one, three] = [times.get(1), times.get(3)];
  for (const [quantile, of] of QUANTILES) {
    const figure = (kind: 'wall' | 'cpu', what: string): void =>
      report(
        measured(
          `full cluster of 5,000 nodes: ${what} for pods of 3 containers, ${quantile}`,
          quantileOf(three?.[kind] ?? [], of),
          'ms',
          quantileOf(one?.[kind] ?? [], of),
        ),
      );
    figure('wall', 'filter');
    figure('cpu', 'CPU time of filter');
  }
  note(
    `full cluster: ${one?.fits ?? 0} pods of one container and ${three?.fits ?? 0} of three, of ${CALLS} each, fit on some node`,
  );
  await measurePreemption(extender, port, cluster, caller, report);
  caller.close();
  await extender.stop();
  measureExplanation(cluster, report);
}

const PREEMPTIONS = 40;
/** kube-scheduler looks for victims on a tenth of the nodes. */
const CANDIDATES = 500;

/** Preempt for pods that ask for a whole GPU; the scheduler proposes one pod of each candidate node as the victim. */
async function measurePreemption(
  extender: ExtenderChild,
  port: number,
  cluster: LargeCluster,
  caller: Caller,
  report: BenchOptions['report'],
): Promise<void> {
  const victims = new Map<string, string>();
  for (const { metadata, spec } of cluster.pods)
    if (victims.size < CANDIDATES) victims.set(spec?.nodeName ?? '', metadata?.uid ?? '');
  const meta = [...victims].map(([node, UID]) => [node, { Pods: [{ UID }], NumPDBViolations: 0 }]);
  const [wall, cpu]: [number[], number[]] = [[], []];
  for (let at = 0; at < PREEMPTIONS; at++) {
    const pod = importantPod(`important-${at}`);
    await extender.create(pod);
    const body = { Pod: pod, NodeNameToMetaVictims: Object.fromEntries(meta) as unknown };
    const { answer, ms, cpuMs } = await caller.post<PreemptionResult>(port, 'preempt', body);
    await extender.delete(pod.metadata?.uid ?? '');
    if (Object.keys(answer.NodeNameToMetaVictims).length === 0) throw new Error('no node was found for preemption');
    wall.push(ms);
    cpu.push(cpuMs);
  }
  for (const [quantile, of] of QUANTILES) {
    const name = `full cluster of 5,000 nodes: preempt with ${CANDIDATES} candidates, ${quantile}`;
    report(measured(name, quantileOf(wall, of), 'ms'));
    report(measured(`${name}, CPU time`, quantileOf(cpu, of), 'ms'));
  }
}

const EXPLANATIONS = 20;

/** Explanations for every node, without the lists of the API server. */
function measureExplanation(source: LargeCluster, report: BenchOptions['report']): void {
  const policy = policyOf('fragmentation');
  const cluster = new Cluster(policy);
  const cache = new ClusterCache(cluster, silentLog(), { adopted: () => undefined, named: () => undefined });
  source.start(cache);
  const random = seededRandom(13);
  const times: number[] = [];
  for (let at = 0; at < EXPLANATIONS; at++) {
    const pod = viewPod(readPod(newPod(random, `explained-${at}`)));
    const started = performance.now();
    const rows = atOnce(explainPod(cluster, cache, policy, pod, [], UNPACED));
    times.push(performance.now() - started);
    if (rows.length !== source.nodes.length) throw new Error(`${rows.length} nodes were explained`);
  }
  for (const [quantile, of] of QUANTILES)
    report(measured(`full cluster of 5,000 nodes: explain, ${quantile}`, quantileOf(times, of), 'ms'));
}

const WHOLE_NODE_CALLS = 20;

/**
 * Filter with whole nodes: the body contains each node as the API server stores it. The client neither makes the nodes'
 * JSON anew nor reads it: its garbage of megabytes would compete with the extender for the CPUs.
 */
async function measureWholeNodes(
  size: Size,
  extender: ExtenderChild,
  port: number,
  cluster: LargeCluster,
  echoPort: number,
  caller: Caller,
  random: Random,
  report: BenchOptions['report'],
): Promise<void> {
  const items = Buffer.from(JSON.stringify(cluster.nodes.map(asApiServerHasIt)));
  const end = Buffer.from('},"NodeNames":null}');
  const [filters, scores, echoes]: number[][] = [[], [], []];
  for (let at = 0; at < WHOLE_NODE_CALLS; at++) {
    const pod = newPod(random, `whole-${at}`);
    const body = [Buffer.from(`{"Pod":${JSON.stringify(pod)},"Nodes":{"metadata":{},"items":`), items, end];
    await extender.create(pod);
    filters?.push((await caller.send(port, 'predicates', body)).ms);
    scores?.push((await caller.send(port, 'prioritize', body)).ms);
    echoes?.push((await caller.send(echoPort, 'predicates', body)).ms);
    await extender.delete(pod.metadata?.uid ?? '');
  }
  const baseline = quantileOf(echoes ?? [], 0.5);
  report(measured(`${size.name}: filter with whole nodes, p50`, quantileOf(filters ?? [], 0.5), 'ms', baseline));
  report(measured(`${size.name}: filter with whole nodes, p99`, quantileOf(filters ?? [], 0.99), 'ms', baseline));
  report(measured(`${size.name}: prioritize with whole nodes, p50`, quantileOf(scores ?? [], 0.5), 'ms', baseline));
}

/** With conditions, images and addresses, as nodes come from the API server. */
function asApiServerHasIt(node: NodeObject): unknown {
  const condition = (type: string) => ({
    type,
    status: 'False',
    lastHeartbeatTime: '2026-11-21T10:00:00Z',
    lastTransitionTime: '2026-11-20T10:00:00Z',
    reason: `KubeletHas${type}`,
    message: `kubelet has no ${type}, as "it" says`,
  });
  const image = (at: number) => ({
    names: [`registry.example.com/team/service-${at}@sha256:${'0123456789abcdef'.repeat(4)}`],
    sizeBytes: 123_456_789 + at,
  });
  return {
    ...node,
    status: {
      ...node.status,
      conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map(condition),
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      images: Array.from({ length: 5 }, (_, at) => image(at)),
    },
  };
}

interface Times {
  readonly decision: number[];
  /** CPU time of the extender's process for the same calls: the cost of a decision, however busy the machine is. */
  readonly cpu: number[];
  readonly bind: number[];
  readonly echo: number[];
}

async function decide(
  caller: Caller,
  port: number,
  extender: ExtenderChild,
  pod: PodObject,
  names: readonly string[],
  placed: string[],
): Promise<{ decision: number; cpu: number; bind: number | null }> {
  await extender.create(pod);
  const filtered = await caller.post<FilterResult>(port, 'predicates', { Pod: pod, Nodes: null, NodeNames: names });
  const fits = filtered.answer.NodeNames ?? [];
  const { name = '', uid = '' } = pod.metadata ?? {};
  if (fits.length === 0) {
    await extender.delete(uid);
    return { decision: filtered.ms, cpu: filtered.cpuMs, bind: null };
  }
  const scored = await caller.post<HostPriority[]>(port, 'prioritize', { Pod: pod, Nodes: null, NodeNames: fits });
  const node = scored.answer.reduce((best, score) => (score.Score > best.Score ? score : best)).Host;
  const bound = await caller.post(port, 'bind', { PodName: name, PodNamespace: 'default', PodUID: uid, Node: node });
  placed.push(uid);
  if (placed.length > 100) await extender.delete(placed.shift() ?? '');
  return { decision: filtered.ms + scored.ms, cpu: filtered.cpuMs + scored.cpuMs, bind: bound.ms };
}

/** The calls of filter and prioritize, without a decision. */
async function echoTwice(caller: Caller, port: number, pod: PodObject, names: readonly string[]): Promise<number> {
  const body = { Pod: pod, Nodes: null, NodeNames: names };
  const [first, second] = [await caller.post(port, 'predicates', body), await caller.post(port, 'prioritize', body)];
  return first.ms + second.ms;
}

/** A client that keeps its connection, like the scheduler. */
class Caller {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #extender: ExtenderChild;

  constructor(extender: ExtenderChild) {
    this.#extender = extender;
  }

  /**
   * The answer, milliseconds from the first byte of the request to the last byte of the answer, and the CPU time of the
   * extender's process. The scheduler's own cost for JSON is not included.
   */
  async post<T>(
    port: number,
    verb: string,
    body: unknown,
  ): Promise<{ readonly answer: T; readonly ms: number; readonly cpuMs: number }> {
    const { chunks, ...times } = await this.send(port, verb, [Buffer.from(JSON.stringify(body))]);
    return { answer: JSON.parse(Buffer.concat(chunks).toString('utf8')) as T, ...times };
  }

  /** The same for a body in pieces; the answer is as received. */
  async send(
    port: number,
    verb: string,
    body: readonly Buffer[],
  ): Promise<{ readonly chunks: readonly Buffer[]; readonly ms: number; readonly cpuMs: number }> {
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    const before = await this.#extender.used();
    const started = performance.now();
    const chunks = await new Promise<Buffer[]>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': length };
      const outgoing = request(
        { host: '127.0.0.1', port, path: `/scheduler/${verb}`, method: 'POST', agent: this.#agent, headers },
        (response) => {
          if (response.statusCode !== 200) reject(new Error(`${verb} was answered with ${response.statusCode}`));
          const received: Buffer[] = [];
          response.on('data', (chunk: Buffer) => received.push(chunk));
          response.on('end', () => resolve(received));
        },
      );
      outgoing.on('error', reject);
      for (const piece of body) outgoing.write(piece);
      outgoing.end();
    });
    const ms = performance.now() - started;
    const after = await this.#extender.used();
    return { chunks, ms, cpuMs: after.cpuMs - before.cpuMs };
  }

  close(): void {
    this.#agent.destroy();
  }
}

function quantileOf(times: readonly number[], quantile: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? NaN;
}
