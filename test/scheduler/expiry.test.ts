import { failure } from '../../src/kube/failure.js';
import { test } from 'tap';
import { Cluster } from '../../src/cluster/placement/cluster.js';
import { policyOf } from '../../src/cluster/placement/policy/policies.js';
import { ClusterCache } from '../../src/cluster/cluster-cache.js';
import { ANSWER_WITHIN_MS, ExtenderService } from '../../src/scheduler/extender-service.js';
import { readPod } from '../../src/kube/pod.js';
import type { PodWriter } from '../../src/scheduler/pod-writer.js';
import type { KubeAnswer } from '../../src/kube/client.js';
import type { PodObject } from './objects.js';
import { silentLog } from '../../src/host/log.js';
import { ManualClock } from '../manual-clock.js';
import { FakeApi } from './fake-api.js';
import { node, pod } from './objects.js';

function service(
  api: FakeApi,
  writer: PodWriter = api,
): {
  readonly service: ExtenderService;
  readonly clock: ManualClock;
  readonly fits: (wanted: PodObject) => Promise<readonly string[] | null>;
} {
  const cluster = new Cluster(policyOf('binpack'));
  const cache = new ClusterCache(cluster, silentLog(), { adopted: () => undefined, named: () => undefined });
  const clock = new ManualClock();
  const metrics = {
    refused: () => undefined,
    conflict: () => undefined,
    expired: () => undefined,
    waited: () => undefined,
    cutOff: () => undefined,
  };
  const made = new ExtenderService({
    cluster,
    cache,
    limits: api,
    writer,
    clock,
    log: silentLog(),
    metrics,
    options: { reservationTtlMs: 30_000, settleTimeoutMs: 0, offer: 'all' },
    notReady: () => null,
  });
  api.start(cache);
  return {
    service: made,
    clock,
    fits: async (wanted) => (await made.filter({ pod: readPod(wanted), nodes: null, nodeNames: ['n'] })).NodeNames,
  };
}

const bindingOf = (name: string) => ({ podName: name, podNamespace: 'default', podUid: `uid-${name}`, node: 'n' });

test('the reservation of a pod that never appears ends after its time limit', async (t) => {
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

test('a pod whose binding got no answer and that never appears releases its GPUs', async (t) => {
  const api = new FakeApi();
  api.setNode(node('n', [16]));
  const { service: made, clock, fits } = service(api);
  api.setPod(pod('p', [[100, 0]]));
  await fits(pod('p', [[100, 0]]));
  api.failures.push(failure('unreachable', 'timeout'));
  t.match(await made.bind(bindingOf('p')), { Error: 'timeout' });
  clock.advance(59_999);
  made.sweep();
  t.same(await fits(pod('q', [[100, 0]])), []);
  clock.advance(1);
  made.sweep();
  await new Promise((resolve) => setImmediate(resolve));
  t.same(await fits(pod('q', [[100, 0]])), ['n']);
});

for (const wanted of [pod('gpu', [[60, 4]]), pod('web', [null])]) {
  test(`a pod that is seen on its node keeps its charge (${wanted.metadata?.name ?? ''})`, async (t) => {
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
      Error: /elsewhere|already on n|not known/,
    });
  });
}

test("the extender answers a binding before the scheduler's timeout, even if the API server does not answer", async (t) => {
  const api = new FakeApi();
  api.setNode(node('n', [16]));
  let answer = (_: KubeAnswer): void => undefined;
  let bindings = 0;
  const writer: PodWriter = {
    bind: () => {
      bindings++;
      return new Promise((resolve) => (answer = resolve));
    },
    read: async () => ({ ok: true, pod: null }),
    annotate: async () => 'done',
  };
  const { service: made, clock, fits } = service(api, writer);
  const told = async (): Promise<string | null> => {
    const bound = made.bind(bindingOf('p'));
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(ANSWER_WITHIN_MS - 1);
    const waits = await Promise.race([bound, new Promise<null>((resolve) => setImmediate(() => resolve(null)))]);
    t.equal(waits, null, 'the extender waits until its limit');
    clock.advance(1);
    return (await bound).Error;
  };
  await fits(pod('p', [[100, 0]]));
  t.match(await told(), /^timeout: the API server did not answer the binding within 4 s/);
  t.match(await told(), /has not answered an earlier binding/);
  t.equal(bindings, 1, 'the binding is written once');
  t.same(await fits(pod('q', [[100, 0]])), [], 'the GPUs of the pod stay reserved');
  answer(failure('conflict', 'is already assigned'));
  await new Promise((resolve) => setImmediate(resolve));
  t.same(await fits(pod('q', [[100, 0]])), ['n'], 'the reservation ends when the write has failed');
});
