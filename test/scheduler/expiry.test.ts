import { failure } from '../../src/kube/failure.js';
import { test } from 'tap';
import { Cluster } from '../../src/scheduler/cluster/cluster.js';
import { policyOf } from '../../src/scheduler/cluster/policy/policies.js';
import { ClusterMirror } from '../../src/scheduler/cluster-mirror.js';
import { ExtenderService } from '../../src/scheduler/extender-service.js';
import { readPod } from '../../src/kube/pod.js';
import type { PodObject } from './objects.js';
import type { Clock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { FakeApi } from './fake-api.js';
import { node, pod } from './objects.js';

/** A clock that stands until it is told. */
class ManualClock implements Clock {
  #now = 1_000_000;

  now(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  after(): () => void {
    throw new Error('nothing waits in these tests');
  }

  every(): () => void {
    throw new Error('nothing repeats in these tests');
  }
}

function service(api: FakeApi): {
  readonly service: ExtenderService;
  readonly clock: ManualClock;
  readonly fits: (wanted: PodObject) => Promise<readonly string[] | null>;
} {
  const cluster = new Cluster(policyOf('binpack'));
  const mirror = new ClusterMirror(cluster, silentLog(), { adopted: () => undefined, named: () => undefined });
  const clock = new ManualClock();
  const metrics = {
    refused: () => undefined,
    conflict: () => undefined,
    expired: () => undefined,
    waited: () => undefined,
  };
  const made = new ExtenderService({
    cluster,
    mirror,
    writer: api,
    clock,
    log: silentLog(),
    metrics,
    options: { claimTtlMs: 30_000, settleTimeoutMs: 0 },
  });
  api.start(mirror);
  return {
    service: made,
    clock,
    fits: async (wanted) => (await made.filter({ pod: readPod(wanted), nodes: null, nodeNames: ['n'] })).NodeNames,
  };
}

const bindingOf = (name: string) => ({ podName: name, podNamespace: 'default', podUid: `uid-${name}`, node: 'n' });

test('room is kept for a pod that never comes until its time is over', async (t) => {
  const api = new FakeApi();
  api.setNode(node('n', [16]));
  const { service: made, clock, fits } = service(api);
  t.same(await fits(pod('p', [[100, 0]])), ['n']);
  clock.advance(29_999);
  made.sweep();
  t.same(await fits(pod('q', [[100, 0]])), []);
  clock.advance(1);
  made.sweep();
  t.same(await fits(pod('q', [[100, 0]])), ['n']);
});

test('a pod of which the binding got no answer, and which is never seen, gives its GPUs back', async (t) => {
  const api = new FakeApi();
  api.setNode(node('n', [16]));
  const { service: made, clock, fits } = service(api);
  await fits(pod('p', [[100, 0]]));
  api.failures.push(failure('unreachable', 'timeout'));
  t.match(await made.bind(bindingOf('p')), { Error: 'timeout' });
  clock.advance(59_999);
  made.sweep();
  t.same(await fits(pod('q', [[100, 0]])), []);
  clock.advance(1);
  made.sweep();
  t.same(await fits(pod('q', [[100, 0]])), ['n']);
});

for (const wanted of [pod('gpu', [[60, 4]]), pod('web', [null])]) {
  test(`a pod that is seen on its node stays there (${wanted.metadata?.name ?? ''})`, async (t) => {
    const api = new FakeApi();
    api.setNode(node('n', [16]));
    const { service: made, clock, fits } = service(api);
    api.setPod(wanted);
    await fits(wanted);
    t.match(await made.bind(bindingOf(wanted.metadata?.name ?? '')), { Error: '' });
    clock.advance(3_600_000);
    made.sweep();
    made.sweep();
    t.same(await fits(pod('q', [[60, 4]])), wanted.metadata?.name === 'gpu' ? [] : ['n']);
    t.match(await made.bind({ ...bindingOf(wanted.metadata?.name ?? ''), node: 'elsewhere' }), {
      Error: /elsewhere|is on n already|not known/,
    });
  });
}
