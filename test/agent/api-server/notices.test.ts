import { test, type Test } from 'tap';
import type { Allocation, ContainerRef } from '../../../src/gpu/ledger/allocation.js';
import type { NodePod } from '../../../src/agent/api-server/node-pod.js';
import { refuse } from '../../../src/gpu/request.js';
import { Notices } from '../../../src/agent/api-server/notices.js';
import type { ObjectChange } from '../../../src/kube/informer.js';
import { readNodePod } from '../../../src/agent/api-server/pod-reader.js';
import { ManualClock } from '../../manual-clock.js';
import { podObject, type PodSpec } from '../../kube/setting.js';

const NOW = 1_700_000_000_123;

const ids = (kind: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${kind}-${index}`);

function allocation(owner: ContainerRef, cores: number, memoryBlocks: number, id = 'a1'): Allocation {
  return {
    id,
    parts: [{ gpuUuid: 'GPU-0', coreIds: ids('core', cores), memoryIds: ids('memory', memoryBlocks) }],
    phase: 'started',
    owners: [owner],
    allocatedAt: 0,
    missingSince: null,
  };
}

const gpus = (...indexes: readonly number[]) => indexes.map((index) => ({ index, uuid: `GPU-${index}` }));

const ref = (container = 'main', podUid = 'u1'): ContainerRef => ({
  podUid,
  namespace: 'default',
  pod: 'a',
  container,
});

class Scene {
  readonly annotated: Record<string, string>[] = [];
  readonly told: string[] = [];
  readonly started: string[] = [];
  readonly #pods = new Map<string, NodePod>();
  readonly #listeners = new Set<(change: ObjectChange<NodePod>) => void>();
  readonly notices = new Notices({
    pods: {
      get: (uid) => this.#pods.get(uid) ?? null,
      noteStarted: (uid, container) => void this.started.push(`${uid}/${container}`),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    },
    annotate: (_pod, annotations) => void this.annotated.push({ ...annotations }),
    record: (subject, note) =>
      void this.told.push(`${subject.container ?? ''} ${note.type} ${note.reason}: ${note.message}`),
    nodeName: 'node1',
    clock: new ManualClock(NOW),
  });

  constructor(t: Test) {
    this.notices.start();
    t.teardown(() => this.notices.stop());
  }

  see(spec: Partial<PodSpec> = {}): void {
    const after = readNodePod(podObject({ name: 'a', uid: 'u1', ...spec }));
    if (after === null) throw new Error('no pod');
    const before = this.#pods.get(after.uid) ?? null;
    this.#pods.set(after.uid, after);
    for (const listener of this.#listeners) listener({ before, after });
  }

  lose(): void {
    const before = this.#pods.get('u1') ?? null;
    this.#pods.clear();
    for (const listener of this.#listeners) listener({ before, after: null });
  }
}

const RIGHT = {
  'tencent.com/predicate-gpu-idx-0': '3',
  'tencent.com/predicate-gpu-uuid-0': '3:GPU-3',
  'tencent.com/gpu-assigned': 'true',
  'tencent.com/predicate-time': '7',
};

test('a container start writes the GPUs, the confirmation and the start time on the pod', (t) => {
  const scene = new Scene(t);
  scene.see({ containers: [{ name: 'log' }, { name: 'main', cores: 200, memory: 16 }] });
  scene.notices.started(allocation(ref(), 200, 16), ref(), gpus(1, 3));
  t.same(scene.annotated, [
    {
      'tencent.com/predicate-gpu-idx-1': '1,3',
      'tencent.com/predicate-gpu-uuid-1': '1:GPU-1,3:GPU-3',
      'tencent.com/gpu-assigned': 'true',
      'tencent.com/predicate-time': '1700000000123000000',
    },
  ]);
  t.same(scene.told, ['main Normal GPUAssigned: GPU 1, 3 of node node1: 2 whole, 4096 MiB']);
  t.same(scene.started, ['u1/main']);
  t.end();
});

test('the time of the decision of the extender stays, and its wrong prediction is corrected', (t) => {
  const scene = new Scene(t);
  scene.see({
    annotations: {
      'tencent.com/predicate-time': '42',
      'tencent.com/predicate-gpu-idx-0': '0',
      'tencent.com/gpu-assigned': 'false',
    },
  });
  scene.notices.started(allocation(ref(), 30, 16), ref(), gpus(3));
  t.same(scene.annotated, [
    {
      'tencent.com/predicate-gpu-idx-0': '3',
      'tencent.com/predicate-gpu-uuid-0': '3:GPU-3',
      'tencent.com/gpu-assigned': 'true',
    },
  ]);
  t.same(scene.told, ['main Normal GPUAssigned: GPU 3 of node node1: 30 of 100 cores, 4096 MiB']);
  t.end();
});

test('annotations are written again when the driver numbers the GPUs anew, without an event', (t) => {
  const scene = new Scene(t);
  scene.see({
    containers: [{ name: 'main', cores: 200, memory: 16 }],
    annotations: { 'tencent.com/predicate-time': '7' },
  });
  scene.notices.started(allocation(ref(), 200, 16), ref(), gpus(1, 3));
  scene.see({ annotations: scene.annotated[0] ?? {}, containers: [{ name: 'main', cores: 200, memory: 16 }] });
  scene.notices.renumbered([...gpus(1), { index: 2, uuid: 'GPU-3' }]);
  t.match(scene.annotated.slice(1), [
    { 'tencent.com/predicate-gpu-idx-0': '1,2', 'tencent.com/predicate-gpu-uuid-0': '1:GPU-1,2:GPU-3' },
  ]);
  t.equal(scene.told.length, 1);
  t.end();
});

test('annotations that the pod already has are neither written nor reported again', (t) => {
  const scene = new Scene(t);
  scene.see({ annotations: RIGHT });
  scene.notices.started(allocation(ref(), 30, 16), ref(), gpus(3));
  t.same(scene.annotated, []);
  t.same(scene.told, []);
  t.end();
});

test('a resize is in an annotation and an event, once, and is written again where it was changed', (t) => {
  const scene = new Scene(t);
  const KEY = 'tencent.com/vcuda-resize-status';
  const asked = { cores: 60, memoryBlocks: 16 };
  const waits = {
    cores: 30,
    memoryBlocks: 16,
    pending: { reason: 'Deferred', message: 'GPU 3 is full', asked },
  } as const;
  const text = JSON.stringify({ main: waits });
  scene.see();
  scene.notices.resized(ref(), waits);
  t.same(scene.annotated, [{ [KEY]: text }]);
  t.same(scene.told, [
    'main Warning GPUResizeDeferred: 30 cores and 4096 MiB; 60 cores and 4096 MiB asked for (Deferred): GPU 3 is full',
  ]);
  scene.see({ annotations: { [KEY]: text } });
  scene.notices.resized(ref(), waits);
  t.equal(scene.told.length, 1, 'the pod says so already');
  scene.see({ annotations: { [KEY]: '{}' } });
  t.same(scene.annotated.at(-1), { [KEY]: text });
  scene.notices.resized(ref(), asked);
  t.same(scene.annotated.at(-1), { [KEY]: JSON.stringify({ main: asked }) });
  t.equal(scene.told.at(-1), 'main Normal GPUResized: 60 cores and 4096 MiB');
  t.end();
});

test('a pod that is not known yet is annotated when it appears', (t) => {
  const scene = new Scene(t);
  scene.notices.started(allocation(ref(), 30, 16), ref(), gpus(3));
  t.same(scene.annotated, []);
  scene.see();
  t.match(scene.annotated, [{ 'tencent.com/predicate-gpu-idx-0': '3' }]);
  t.end();
});

test('each container and each init container of a pod gets its own index', (t) => {
  const scene = new Scene(t);
  const gpu = { cores: 30, memory: 16 };
  scene.see({
    initContainers: [{ name: 'fetch', ...gpu }],
    containers: [
      { name: 'one', ...gpu },
      { name: 'two', ...gpu },
    ],
  });
  scene.notices.started(allocation(ref('fetch'), 30, 16, 'a0'), ref('fetch'), gpus(0));
  t.same(scene.annotated, [{ 'tencent.com/init-gpu-idx-0': '0' }], 'the main containers are not confirmed by it');
  scene.notices.started(allocation(ref('one'), 30, 16, 'a1'), ref('one'), gpus(1));
  scene.notices.started(allocation(ref('two'), 30, 16, 'a2'), ref('two'), gpus(2));
  t.match(scene.annotated.at(-1), { 'tencent.com/predicate-gpu-idx-0': '1', 'tencent.com/predicate-gpu-idx-1': '2' });
  t.equal(scene.started.length, 3);
  t.end();
});

test('intermediate states on the way to the right annotations start no second write, and overwritten ones are restored', (t) => {
  const scene = new Scene(t);
  scene.see();
  scene.notices.started(allocation(ref(), 30, 16), ref(), gpus(3));
  scene.see({ status: { phase: 'Running' } });
  t.equal(scene.annotated.length, 1);
  scene.see({ annotations: RIGHT });
  scene.see({ annotations: { ...RIGHT, 'tencent.com/gpu-assigned': 'false' } });
  t.same(scene.annotated[1], { 'tencent.com/gpu-assigned': 'true' });
  t.end();
});

test('the agent stops restoring annotations that another writer keeps overwriting', (t) => {
  const scene = new Scene(t);
  scene.notices.started(allocation(ref(), 30, 16), ref(), gpus(3));
  for (let i = 0; i < 20; i += 1) {
    scene.see({ annotations: RIGHT });
    scene.see({ annotations: { ...RIGHT, 'tencent.com/gpu-assigned': 'false' } });
  }
  t.equal(scene.annotated.length, 5);
  t.end();
});

test('the annotations of a freed allocation or a deleted pod are not written any more', (t) => {
  const scene = new Scene(t);
  const held = allocation(ref(), 30, 16);
  scene.notices.started(held, ref(), gpus(3));
  scene.notices.freed(held);
  scene.see();
  t.same(scene.annotated, []);
  scene.notices.started(held, ref(), gpus(3));
  scene.lose();
  scene.see();
  t.equal(scene.annotated.length, 1);
  t.end();
});

test('freeing one allocation of a pod keeps the annotations of its other container', (t) => {
  const scene = new Scene(t);
  const gpu = { cores: 30, memory: 16 };
  const [one, two] = [allocation(ref('one'), 30, 16, 'a1'), allocation(ref('two'), 30, 16, 'a2')];
  scene.notices.started(one, ref('one'), gpus(1));
  scene.notices.started(two, ref('two'), gpus(2));
  scene.notices.freed(one);
  scene.see({
    containers: [
      { name: 'one', ...gpu },
      { name: 'two', ...gpu },
    ],
  });
  t.match(scene.annotated, [{ 'tencent.com/predicate-gpu-idx-1': '2' }]);
  t.notOk('tencent.com/predicate-gpu-idx-0' in (scene.annotated[0] ?? {}));
  t.end();
});

test('a container that the kubelet cannot name is written on no pod', (t) => {
  const scene = new Scene(t);
  const nobody = { podUid: '', namespace: '', pod: '', container: '' };
  scene.notices.started(allocation(nobody, 30, 16), nobody, gpus(3));
  t.same(scene.started, []);
  t.end();
});

test('refusals are counted by their code', (t) => {
  const scene = new Scene(t);
  scene.notices.refused('core', 150, refuse('bad-core-count', 'no'));
  scene.notices.refused('core', 150, refuse('bad-core-count', 'no'));
  scene.notices.refused('memory', 1, refuse('nothing-fits', 'no'));
  t.same(
    [...scene.notices.refusals],
    [
      ['bad-core-count', 2],
      ['nothing-fits', 1],
    ],
  );
  t.end();
});

test('the pods that hold a failed GPU get an event', (t) => {
  const scene = new Scene(t);
  scene.notices.gpuUnhealthy([ref(), { podUid: '', namespace: '', pod: '', container: '' }], 'GPU-7', 'XID 79');
  t.same(scene.told, ['main Warning GPUUnhealthy: GPU-7 of node node1: XID 79']);
  t.end();
});
