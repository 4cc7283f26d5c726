/**
 * Random histories of pods whose bindings are carried out late, answered with an error although they were carried out,
 * or sent again after the pod was bound, while the extender restarts, its watch of pods is open and silent, or replicas
 * lose the API server and take over from each other: no GPU may have more than it has.
 */
import tap, { test } from 'tap';
import { seededRandom } from '../../bench/openb/random.js';
import { silentLog } from '../../src/host/log.js';
import type { KubeAnswer } from '../../src/kube/client.js';
import { failure } from '../../src/kube/failure.js';
import { readPod } from '../../src/kube/pod.js';
import { BINDING_LASTS_MS } from '../../src/kube/pod-writes.js';
import { Cluster } from '../../src/cluster/placement/cluster.js';
import { policyOf } from '../../src/cluster/placement/policy/policies.js';
import { ClusterCache } from '../../src/cluster/cluster-cache.js';
import { Election } from '../../src/scheduler/election.js';
import { ExtenderService } from '../../src/scheduler/extender-service.js';
import type { PodName, PodWriter } from '../../src/scheduler/pod-writer.js';
import { ManualClock } from '../manual-clock.js';
import { FakeApi } from './fake-api.js';
import { LeaseApi } from './lease-api.js';
import { node, pod, type PodObject } from './objects.js';
import { cases } from '../cases.js';

/** Of all kinds together. */
const HISTORIES = cases(80, 1_600);
/** Restarts, silences and failovers, each or not. */
const KINDS = 8;

tap.setTimeout(1_200_000);

type Random = () => number;

/** A replica of the extender: it answers while `notReady` returns null. */
interface Replica {
  readonly service: ExtenderService;
  readonly election: Election | null;
  readonly connection: Connection;
}

/** The connection of one replica to the API server. */
interface Connection {
  /** Whether nothing arrives any more. */
  isCut: boolean;
}

/** An API server that loses answers, and carries out bindings late. */
class LateApi extends FakeApi {
  readonly #clock: ManualClock;
  readonly #random: Random;

  constructor(clock: ManualClock, random: Random) {
    super();
    this.#clock = clock;
    this.#random = random;
  }

  override async bind(...given: Parameters<PodWriter['bind']>): Promise<KubeAnswer> {
    const carryOut = (): Promise<KubeAnswer> => super.bind(...given);
    const lateMs = Math.floor(this.#random() * BINDING_LASTS_MS);
    const kind = Math.floor(this.#random() * 9);
    if (kind < 3) return carryOut();
    if (kind === 3) return failure('server-error', 'not carried out');
    if (kind === 4) {
      await carryOut();
      return failure('unreachable', 'the answer is lost');
    }
    if (kind === 5) {
      this.#clock.after(lateMs, () => void carryOut());
      return failure('timeout', 'carried out after the answer');
    }
    if (kind === 6) {
      // The client sends again on another connection, and only that answer arrives.
      await carryOut();
      return carryOut();
    }
    const mayStillSend = given[3];
    // The connection takes as long as the client waits at most.
    if (kind === 7)
      return new Promise((resolve) =>
        this.#clock.after(2 * lateMs, () =>
          resolve(mayStillSend() ? carryOut() : failure('unreachable', 'not sent: it would come too late')),
        ),
      );
    return new Promise((resolve) => this.#clock.after(lateMs, () => void carryOut().then(resolve)));
  }

  override async read(name: PodName): ReturnType<FakeApi['read']> {
    const kind = this.#random();
    if (kind < 0.3) return failure('unreachable', 'no answer');
    if (kind < 0.8) return super.read(name);
    const lateMs = 2 * BINDING_LASTS_MS * this.#random();
    return new Promise((resolve) => this.#clock.after(lateMs, () => resolve(super.read(name))));
  }
}

const LOG = silentLog();

const NO_METRICS = {
  refused: () => undefined,
  conflict: () => undefined,
  expired: () => undefined,
  waited: () => undefined,
  cutOff: () => undefined,
};

interface World {
  readonly api: FakeApi;
  readonly clock: ManualClock;
  /** Null: one replica without a Lease. */
  readonly leases: LeaseApi | null;
  readonly identity: string;
  /** Without Leases: whether the replica answers. */
  readonly leader?: { readonly notReady: string | null };
  readonly settleTimeoutMs?: number;
}

function replica(world: World): Replica {
  const { api, clock, leases, identity, leader = { notReady: null }, settleTimeoutMs = 0 } = world;
  const cluster = new Cluster(policyOf('binpack'));
  const cache = new ClusterCache(cluster, LOG, { adopted: () => undefined, named: () => undefined });
  const options = { reservationTtlMs: 30_000, settleTimeoutMs, offer: 'all' } as const;
  const connection: Connection = { isCut: false };
  const cutOff = failure('unreachable', 'cut off');
  const writer: PodWriter = {
    bind: async (name, on, annotations, mayStillSend) =>
      connection.isCut ? cutOff : api.bind(name, on, annotations, () => !connection.isCut && mayStillSend()),
    read: async (...given) => (connection.isCut ? cutOff : api.read(...given)),
    annotate: (...given) => api.annotate(...given),
  };
  const parts = { cluster, cache, limits: api, writer, clock, log: LOG, metrics: NO_METRICS, options };
  const notReady = (): string | null => (election === null ? leader.notReady : election.notReady());
  const service = new ExtenderService({ ...parts, notReady });
  const election =
    leases === null
      ? null
      : new Election({
          api: leases.forReplica(connection),
          lease: { namespace: 'kube-system', name: 'gpu-extender' },
          identity,
          clock,
          log: LOG,
          begin: () => api.refreshPods(),
          end: () => service.forget(),
          isWriting: () => service.isWriting,
        });
  api.start(cache);
  election?.start();
  return { service, election, connection };
}

/** The cores that bound pods take of the most used GPU. */
function mostUsed(api: FakeApi): number {
  const used = new Map<string, number>();
  for (const { spec, metadata } of api.pods.values()) {
    if (spec?.nodeName === undefined) continue;
    const gpu = `${spec.nodeName}/${metadata?.annotations?.['tencent.com/predicate-gpu-idx-0']}`;
    const cores = Number(spec.containers?.[0]?.resources?.limits?.['tencent.com/vcuda-core']);
    used.set(gpu, (used.get(gpu) ?? 0) + cores);
  }
  return Math.max(0, ...used.values());
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An API server that carries out bindings as usual, and answers them when the test says so. */
class HeldApi extends FakeApi {
  readonly held: ((answer: KubeAnswer) => void)[] = [];

  mayStillSend: () => boolean = () => true;

  override async bind(...given: Parameters<PodWriter['bind']>): Promise<KubeAnswer> {
    this.mayStillSend = given[3];
    const carriedOut = await super.bind(...given);
    return new Promise((resolve) => this.held.push((answer) => resolve(answer.ok ? carriedOut : answer)));
  }
}

const bindingOf = (name: string) => ({ podName: name, podNamespace: 'default', podUid: `uid-${name}`, node: 'a' });

function heldReplica(leader: { notReady: string | null }) {
  const api = new HeldApi();
  const { service } = replica({ api, clock: new ManualClock(), leases: null, identity: '', leader });
  api.setNode(node('a', [16]));
  for (const name of ['p', 'q']) api.setPod(pod(name, [[60, 2]]));
  const fits = async (name: string): Promise<readonly string[] | null> =>
    (await service.filter({ pod: readPod(api.pod(name)), nodes: null, nodeNames: ['a'] })).NodeNames;
  return { api, service, fits };
}

test('a binding that waited for an earlier one of its pod is not sent after the Lease was lost', async (t) => {
  const leader: { notReady: string | null } = { notReady: null };
  const { api, service, fits } = heldReplica(leader);
  api.failures.push(failure('server-error', 'not carried out'));
  t.same(await fits('p'), ['a']);
  const first = service.bind(bindingOf('p'));
  const second = service.bind(bindingOf('p'));
  await settled();
  t.equal(api.mayStillSend(), true);
  leader.notReady = 'another replica holds the Lease';
  t.equal(api.mayStillSend(), false, 'a connection that comes late is not used either');
  api.held[0]?.(failure('server-error', 'not carried out'));
  t.match((await first).Error, 'not carried out');
  t.same(await second, { Error: 'another replica holds the Lease' });
  t.equal(api.held.length, 1);
});

test('of several calls for a pod that come at once, one binding is written at a time', async (t) => {
  const { api, service, fits } = heldReplica({ notReady: null });
  api.failures.push(failure('server-error', 'not carried out'), failure('server-error', 'not carried out'));
  await fits('p');
  const calls = Array.from({ length: 3 }, () => service.bind(bindingOf('p')));
  for (let write = 1; write <= 3; write++) {
    await settled();
    t.equal(api.held.length, write);
    api.held[write - 1]?.(write < 3 ? failure('server-error', 'not carried out') : { ok: true, body: null });
  }
  t.same(
    (await Promise.all(calls)).map(({ Error }) => Error === ''),
    [false, false, true],
  );
});

test('the late end of a write from before the Lease was lost does not remove a later decision', async (t) => {
  const { api, service, fits } = heldReplica({ notReady: null });
  api.silent.pods = true;
  api.failures.push(failure('server-error', 'not carried out'));
  t.same(await fits('p'), ['a']);
  const before = service.bind(bindingOf('p'));
  await settled();
  service.forget();
  t.same(await fits('p'), ['a']);
  const after = service.bind(bindingOf('p'));
  await settled();
  api.held[0]?.(failure('invalid', 'not carried out'));
  t.match((await before).Error, 'not carried out');
  t.same(await fits('q'), [], 'the GPU is that of the second decision');
  api.held[1]?.({ ok: true, body: null });
  t.same(await after, { Error: '' });
});

test('a pod that is bound is answered without another decision, and keeps its GPUs', async (t) => {
  const api = new FakeApi();
  const { service } = replica({ api, clock: new ManualClock(), leases: null, identity: '' });
  api.setNode(node('a', [16, 16]));
  api.setPod(pod('p0', [[80, 2]]));
  for (const name of ['p1', 'p2', 'p3']) api.setPod(pod(name, [[60, 2]]));
  const settle = async (name: string): Promise<string> => {
    const { NodeNames } = await service.filter({ pod: readPod(api.pod(name)), nodes: null, nodeNames: ['a'] });
    return NodeNames?.[0] === undefined ? 'refused' : (await service.bind(bindingOf(name))).Error;
  };
  t.same([await settle('p0'), await settle('p1')], ['', '']);
  service.sweep();
  api.deletePod('p0');
  t.same(await service.bind(bindingOf('p1')), { Error: '' }, 'the scheduler lost the answer');
  t.match(await service.bind({ ...bindingOf('p1'), node: 'b' }), { Error: 'the pod is already on a' });
  t.equal(api.writes.length, 2, 'nothing is written again');
  t.same([await settle('p2'), await settle('p3')], ['', 'refused']);
  t.equal(mostUsed(api), 60);
});

test('a pod that was bound while its filter call waited keeps its node, and no room is reserved for it', async (t) => {
  const api = new FakeApi();
  const { service } = replica({ api, clock: new ManualClock(), leases: null, identity: '', settleTimeoutMs: 60_000 });
  for (const name of ['a', 'b']) api.setNode(node(name, [16]));
  for (const name of ['p', 'q', 'r']) api.setPod(pod(name, [[100, 0]]));
  const filter = async (name: string) =>
    service.filter({ pod: readPod(api.pod(name)), nodes: null, nodeNames: ['a', 'b'] });
  await filter('q');
  const waiting = filter('p');
  await settled();
  await service.bind(bindingOf('q'));
  api.setPod({ ...api.pod('p'), spec: { ...api.pod('p').spec, nodeName: 'b' } });
  t.same((await waiting).NodeNames, ['b']);
  api.deletePod('q');
  t.same((await filter('r')).NodeNames, ['a'], 'p holds one node only');
});

test('a binding of a pod that has run and ended meanwhile charges no GPU', async (t) => {
  const api = new FakeApi();
  const { service } = replica({ api, clock: new ManualClock(), leases: null, identity: '' });
  api.setNode(node('a', [16]));
  for (const name of ['p', 'q']) api.setPod(pod(name, [[60, 2]]));
  const fits = async (name: string) =>
    (await service.filter({ pod: readPod(api.pod(name)), nodes: null, nodeNames: ['a'] })).NodeNames;
  const before = api.pod('p');
  t.same(await fits('p'), ['a']);
  api.silent.pods = true;
  api.setPod({ ...before, spec: { ...before.spec, nodeName: 'a' }, status: { phase: 'Succeeded' } });
  t.same(await service.bind(bindingOf('p')), { Error: '' });
  t.same(await fits('q'), ['a']);
});

test('a pod without GPUs that is bound is answered as bound', async (t) => {
  const api = new FakeApi();
  const { service } = replica({ api, clock: new ManualClock(), leases: null, identity: '' });
  api.setNode(node('a', [16]));
  api.setPod(pod('p', [null]));
  t.same(await service.bind(bindingOf('p')), { Error: '' });
  t.same(await service.bind(bindingOf('p')), { Error: '' });
  service.sweep();
  t.same(await service.bind(bindingOf('p')), { Error: '' });
  t.equal(api.writes.length, 1);
});

interface Troubles {
  readonly restarts: boolean;
  /** The watches of pods show nothing for some steps. */
  readonly silences: boolean;
  /** Two replicas, which lose the API server, are killed, or are no longer called by the scheduler. */
  readonly failovers: boolean;
}

/** A history of one cluster; returns the cores of the most used GPU. */
async function history(seed: number, { restarts, silences, failovers }: Troubles): Promise<number> {
  const random = seededRandom(seed);
  const whole = (most: number): number => Math.floor(random() * most);
  const clock = new ManualClock();
  const api = new LateApi(clock, random);
  const leases = failovers ? new LeaseApi() : null;
  for (const name of ['a', 'b']) api.setNode(node(name, [16, 16]));
  const somePod = (name: string): PodObject => pod(name, [[30 + 10 * whole(5), 2]]);
  let made = 8;
  const names = Array.from({ length: made }, (_, at) => `p${at}`);
  names.forEach((name) => api.setPod(somePod(name)));
  let started = 0;
  const start = (): Replica => replica({ api, clock, leases, identity: `replica-${started++}` });
  const replicas = Array.from({ length: failovers ? 2 : 1 }, start);
  let most = 0;
  const schedule = async ({ service, election }: Replica, wanted: PodObject): Promise<void> => {
    const isReady = (): boolean => {
      election?.asked();
      return (election?.notReady() ?? null) === null;
    };
    if (!isReady()) return;
    const nodeNames = [...api.nodes.keys()];
    const { NodeNames: offered } = await service.filter({ pod: readPod(wanted), nodes: null, nodeNames });
    const chosen = offered?.[whole(offered.length)];
    if (chosen === undefined || !isReady()) return;
    const { name: podName = '', uid: podUid = '' } = wanted.metadata ?? {};
    await service.bind({ podName, podNamespace: 'default', podUid, node: chosen });
  };
  /** A scheduler that did not get the answer sends the binding again, at any time until the pod is deleted. */
  const bindAgain = async ({ service, election }: Replica, { metadata, spec }: PodObject): Promise<void> => {
    election?.asked();
    if ((election?.notReady() ?? null) !== null) return;
    const { name: podName = '', uid: podUid = '' } = metadata ?? {};
    await service.bind({ podName, podNamespace: 'default', podUid, node: spec?.nodeName ?? '' });
  };
  const someReplica = (): Replica => replicas[whole(replicas.length)] as Replica;
  /** With a Lease, answers of the API server must arrive between its renewals. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 250) {
      clock.advance(failovers ? Math.min(left, 250) : left);
      await settled();
      if (!failovers) return;
    }
  };
  if (failovers) await pass(1_000);
  for (let step = 0; step < (failovers ? 60 : 30); step++) {
    const at = whole(names.length);
    const wanted = api.pod(names[at] as string);
    if (!api.silent.pods && wanted.spec?.nodeName !== undefined && random() < 0.2) {
      api.deletePod(names[at] as string);
      api.setPod(somePod((names[at] = `p${made++}`)));
      continue;
    }
    void (wanted.spec?.nodeName === undefined ? schedule : bindAgain)(someReplica(), wanted);
    await settled();
    if (random() < 0.5) await pass(whole(3_000));
    if (random() < (failovers ? 0.02 : 0.1)) await pass(70_000);
    if (silences && random() < 0.2) {
      api.silent.pods = !api.silent.pods;
      if (!api.silent.pods) await api.refreshPods();
    }
    replicas.forEach(({ service }) => service.sweep());
    await settled();
    if (failovers) {
      const { connection } = replicas[whole(2)] as Replica;
      if (random() < (connection.isCut ? 0.5 : 0.15)) connection.isCut = !connection.isCut;
    }
    if (restarts && random() < (failovers ? 0.05 : 0.15)) {
      const at = whole(replicas.length);
      // Killed: what it sent arrives, and it says nothing more.
      const killed = replicas[at] as Replica;
      killed.connection.isCut = true;
      void killed.election?.stop();
      if (!failovers) {
        await api.stop();
        await pass(BINDING_LASTS_MS);
      }
      replicas[at] = start();
    }
    most = Math.max(most, mostUsed(api));
  }
  return most;
}

for (const failovers of [false, true])
  for (const restarts of [false, true])
    for (const silences of [false, true]) {
      const troubles = [
        restarts ? 'restarts of the extender' : '',
        silences ? 'silent watches' : '',
        failovers ? 'failovers' : '',
      ].filter(Boolean);
      const title = `bindings with late and lost answers allocate no GPU twice${troubles.length === 0 ? '' : `, during ${troubles.join(' and ')}`}`;
      test(title, { timeout: 1_200_000 }, async (t) => {
        const wrong: number[] = [];
        for (let seed = 0; seed < HISTORIES / KINDS; seed++)
          if ((await history(seed, { restarts, silences, failovers })) > 100) wrong.push(seed);
        t.same(wrong, [], `seeds of ${HISTORIES / KINDS} histories that booked a GPU twice`);
      });
    }
