/**
 * Random histories of pods whose bindings are carried out late or answered with an error although they were carried
 * out, while the extender restarts, or its watch of pods is open and silent: no GPU may have more than it has.
 */
import tap, { test } from 'tap';
import { seededRandom } from '../../bench/openb/random.js';
import { silentLog } from '../../src/host/log.js';
import type { KubeAnswer } from '../../src/kube/client.js';
import { failure } from '../../src/kube/failure.js';
import { readPod } from '../../src/kube/pod.js';
import { BINDING_LASTS_MS } from '../../src/kube/pod-writes.js';
import { Cluster } from '../../src/scheduler/cluster/cluster.js';
import { policyOf } from '../../src/scheduler/cluster/policy/policies.js';
import { ClusterMirror } from '../../src/scheduler/cluster-mirror.js';
import { ExtenderService } from '../../src/scheduler/extender-service.js';
import type { PodName } from '../../src/scheduler/pod-writer.js';
import { ManualClock } from '../manual-clock.js';
import { FakeApi } from './fake-api.js';
import { node, pod, type PodObject } from './objects.js';

/** More with GPU_MANAGER_HISTORIES; each takes some milliseconds. */
const HISTORIES = Number(process.env.GPU_MANAGER_HISTORIES ?? 500);

tap.setTimeout(1_200_000);

type Random = () => number;

/** An API server that loses answers, and carries out bindings late. */
class LateApi extends FakeApi {
  readonly #clock: ManualClock;
  readonly #random: Random;

  constructor(clock: ManualClock, random: Random) {
    super();
    this.#clock = clock;
    this.#random = random;
  }

  override async bind(name: PodName, on: string, annotations: Readonly<Record<string, string>>): Promise<KubeAnswer> {
    const carryOut = (): Promise<KubeAnswer> => super.bind(name, on, annotations);
    const lateMs = Math.floor(this.#random() * BINDING_LASTS_MS);
    const kind = Math.floor(this.#random() * 8);
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
    return new Promise((resolve) => this.#clock.after(lateMs, () => void carryOut().then(resolve)));
  }

  override async read(name: PodName): ReturnType<FakeApi['read']> {
    return this.#random() < 0.3 ? failure('unreachable', 'no answer') : super.read(name);
  }
}

const NO_METRICS = {
  refused: () => undefined,
  conflict: () => undefined,
  expired: () => undefined,
  waited: () => undefined,
  cutOff: () => undefined,
};

function extender(api: FakeApi, clock: ManualClock): ExtenderService {
  const cluster = new Cluster(policyOf('binpack'));
  const mirror = new ClusterMirror(cluster, silentLog(), { adopted: () => undefined, named: () => undefined });
  const options = { reservationTtlMs: 30_000, settleTimeoutMs: 0, offer: 'all' } as const;
  const parts = { cluster, mirror, limits: api, writer: api, clock, log: silentLog(), metrics: NO_METRICS, options };
  const service = new ExtenderService(parts);
  api.start(mirror);
  return service;
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

interface Troubles {
  readonly restarts: boolean;
  /** The watch of pods shows nothing for some steps. */
  readonly silences: boolean;
}

/** A history of one cluster; returns the cores of the most used GPU. */
async function history(seed: number, { restarts, silences }: Troubles): Promise<number> {
  const random = seededRandom(seed);
  const clock = new ManualClock();
  const api = new LateApi(clock, random);
  for (const name of ['a', 'b']) api.setNode(node(name, [16, 16]));
  const pods = Array.from({ length: 8 }, (_, at) => pod(`p${at}`, [[30 + 10 * Math.floor(random() * 5), 2]]));
  pods.forEach((wanted) => api.setPod(wanted));
  let service = extender(api, clock);
  let most = 0;
  const schedule = async (wanted: PodObject): Promise<void> => {
    const nodeNames = [...api.nodes.keys()];
    const { NodeNames: offered } = await service.filter({ pod: readPod(wanted), nodes: null, nodeNames });
    const chosen = offered?.[Math.floor(random() * offered.length)];
    if (chosen === undefined) return;
    const { name: podName = '', uid: podUid = '' } = wanted.metadata ?? {};
    await service.bind({ podName, podNamespace: 'default', podUid, node: chosen });
  };
  for (let step = 0; step < 30; step++) {
    const wanted = api.pod(`p${Math.floor(random() * pods.length)}`);
    if (wanted.spec?.nodeName === undefined) void schedule(wanted);
    await settled();
    if (random() < 0.5) clock.advance(Math.floor(random() * 3_000));
    if (random() < 0.1) clock.advance(70_000);
    if (silences && random() < 0.2) {
      api.silent.pods = !api.silent.pods;
      if (!api.silent.pods) await api.refreshPods();
    }
    service.sweep();
    await settled();
    if (restarts && random() < 0.15) {
      await api.stop();
      clock.advance(BINDING_LASTS_MS);
      await settled();
      service = extender(api, clock);
    }
    most = Math.max(most, mostUsed(api));
  }
  return most;
}

for (const restarts of [false, true])
  for (const silences of [false, true]) {
    const during = [restarts ? 'restarts of the extender' : '', silences ? 'a silent watch' : ''].filter(Boolean);
    const title = `bindings with late and lost answers allocate no GPU twice${during.length === 0 ? '' : `, during ${during.join(' and ')}`}`;
    test(title, { timeout: 1_200_000 }, async (t) => {
      const wrong: number[] = [];
      for (let seed = 0; seed < HISTORIES; seed++)
        if ((await history(seed, { restarts, silences })) > 100) wrong.push(seed);
      t.same(wrong, [], `seeds of ${HISTORIES} histories that booked a GPU twice`);
    });
  }
