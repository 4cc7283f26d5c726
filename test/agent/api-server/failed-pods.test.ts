import { test, type Test } from 'tap';
import type { NodePod } from '../../../src/agent/api-server/node-pod.js';
import { markRefusal } from '../../../src/gpu/refusal-mark.js';
import { silentLog } from '../../../src/host/log.js';
import { FailedPods } from '../../../src/agent/api-server/failed-pods.js';
import type { ObjectChange } from '../../../src/kube/informer.js';
import { readNodePod } from '../../../src/agent/api-server/pod-reader.js';
import { ManualClock } from '../../manual-clock.js';
import { podObject, type PodSpec } from '../../kube/setting.js';

const NOW = Date.UTC(2026, 10, 21, 10);
const at = (ms: number): string => new Date(ms).toISOString();
const OWNER = { kind: 'ReplicaSet', name: 'web-5d' };

/** The status as a kubelet writes it. */
const failed = (reason: string): Record<string, unknown> => ({
  phase: 'Failed',
  reason: 'UnexpectedAdmissionError',
  message: `Allocate failed due to rpc error: code = InvalidArgument desc = ${reason}, which is unexpected`,
  startTime: at(NOW),
});
const OURS = failed(markRefusal('150 is not a multiple of 100'));

const refusedStart = (text = markRefusal('no such ids')): Record<string, unknown> => ({
  phase: 'Pending',
  startTime: at(NOW),
  containerStatuses: [
    {
      name: 'main',
      state: {
        waiting: {
          reason: 'PreStartHookError',
          message: `device plugin PreStartContainer rpc failed with err: rpc error: code = NotFound desc = ${text}`,
        },
      },
    },
  ],
});

class Scene {
  readonly clock = new ManualClock(NOW);
  readonly removed: string[] = [];
  readonly told: string[] = [];
  readonly #pods = new Map<string, NodePod>();
  readonly #listeners = new Set<(change: ObjectChange<NodePod>) => void>();
  readonly failedPods = new FailedPods({
    pods: {
      get: (uid) => this.#pods.get(uid) ?? null,
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    },
    remove: (pod) => this.removed.push(pod.name),
    record: (subject, note) =>
      this.told.push(
        `${subject.name}${subject.container === undefined ? '' : `/${subject.container}`} ${note.reason}: ${note.message}`,
      ),
    clock: this.clock,
    log: silentLog(),
  });

  constructor(t: Test) {
    this.failedPods.start();
    t.teardown(() => this.failedPods.stop());
  }

  see(spec: PodSpec): void {
    const after = readNodePod(podObject({ uid: `uid-${spec.name}`, createdAt: at(NOW), ...spec }));
    if (after === null) throw new Error('no pod');
    const before = this.#pods.get(after.uid) ?? null;
    this.#pods.set(after.uid, after);
    for (const listener of this.#listeners) listener({ before, after });
  }

  lose(name: string): void {
    const before = this.#pods.get(`uid-${name}`) ?? null;
    this.#pods.delete(`uid-${name}`);
    for (const listener of this.#listeners) listener({ before, after: null });
  }
}

test('a pod that failed because the agent refused it gets an event with the reason, and is deleted for its controller', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'web', owner: OWNER });
  scene.see({ name: 'web', owner: OWNER, status: OURS });
  t.same(scene.told, [
    'web GPURefused: 150 is not a multiple of 100; deleted, so that ReplicaSet web-5d can create it anew',
  ]);
  scene.clock.advance(1_000);
  t.same(scene.removed, ['web']);
  t.end();
});

test('a pod without a controller gets an event with the reason and is not deleted', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'naked', status: OURS });
  scene.clock.advance(3_600_000);
  t.same(scene.told, ['naked GPURefused: 150 is not a multiple of 100']);
  t.same(scene.removed, []);
  t.end();
});

const NOT_OURS: readonly (readonly [string, PodSpec])[] = [
  ["another plugin's refusal", { name: 'a', status: failed('no more FPGAs') }],
  [
    "the kubelet's own refusal",
    {
      name: 'b',
      status: {
        phase: 'Failed',
        reason: 'UnexpectedAdmissionError',
        message:
          'requested number of devices unavailable for tencent.com/vcuda-core. Requested: 10, Available: 5, which is unexpected',
      },
    },
  ],
  ['an eviction', { name: 'c', status: { phase: 'Failed', reason: 'Evicted', message: markRefusal('quoted') } }],
  ['a program that failed', { name: 'd', status: { phase: 'Failed' } }],
  ['a pod that runs', { name: 'e', status: { phase: 'Running' } }],
  ['a pod that succeeded', { name: 'f', status: { ...OURS, phase: 'Succeeded' } }],
  ['a pod that wants no GPU', { name: 'g', containers: [{ name: 'main' }], status: OURS }],
  [
    'a container that waits for its image',
    {
      name: 'h',
      status: {
        phase: 'Pending',
        containerStatuses: [
          {
            name: 'main',
            state: { waiting: { reason: 'ErrImagePull', message: `cannot pull "${markRefusal('x')}"` } },
          },
        ],
      },
    },
  ],
];

for (const [what, reason, message] of [
  [
    'while no plugin was registered',
    'UnexpectedAdmissionError',
    'Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices tencent.com/vcuda-core, which is unexpected',
  ],
  [
    "by the kubelet's old count of the devices",
    'OutOftencent.com/vcuda-memory',
    "Pod was rejected: Node didn't have enough resource: tencent.com/vcuda-memory, requested: 8, used: 30, capacity: 36",
  ],
] as const) {
  test(`a pod that failed ${what} gets an event, and is deleted for its controller`, (t) => {
    const scene = new Scene(t);
    scene.see({ name: 'web', owner: OWNER, status: { phase: 'Failed', reason, message, startTime: at(NOW) } });
    t.match(scene.told, [/tencent\.com\/vcuda-.*deleted, so that ReplicaSet web-5d can create it anew/]);
    scene.clock.advance(1_000);
    t.same(scene.removed, ['web']);
    t.end();
  });
}

test('the agent leaves pods alone that failed for any other reason', (t) => {
  const scene = new Scene(t);
  for (const [what, spec] of NOT_OURS) {
    scene.see({ ...spec, owner: OWNER });
    scene.clock.advance(3_600_000);
    t.same(scene.told, [], what);
    t.same(scene.removed, [], what);
  }
  t.end();
});

test('the agent leaves pods alone whose controller deletes or replaces them itself', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'agent', owner: { kind: 'DaemonSet', name: 'agent' }, status: OURS });
  scene.see({ name: 'owned', owner: { kind: 'ConfigMap', name: 'x', controller: false }, status: OURS });
  scene.see({
    name: 'static',
    owner: { kind: 'Node', name: 'node1' },
    status: OURS,
    annotations: { 'kubernetes.io/config.hash': 'h', 'kubernetes.io/config.mirror': 'h' },
  });
  scene.clock.advance(3_600_000);
  t.equal(scene.told.length, 3);
  t.same(scene.removed, []);
  t.end();
});

test('a failed pod is handled once, however often it is observed', (t) => {
  const scene = new Scene(t);
  for (let i = 0; i < 5; i += 1) scene.see({ name: 'web', owner: OWNER, status: OURS });
  scene.clock.advance(3_600_000);
  t.equal(scene.told.length, 1);
  t.equal(scene.removed.length, 1);
  t.end();
});

test('a pod that is being deleted already is not deleted again', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'web', owner: OWNER, deletedAt: at(NOW + 30_000), status: OURS });
  scene.clock.advance(3_600_000);
  t.equal(scene.told.length, 1);
  t.same(scene.removed, []);
  t.end();
});

test('a later pod with the same name is handled on its own', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'web', owner: OWNER, status: OURS });
  scene.lose('web');
  scene.see({ name: 'web', owner: OWNER, status: OURS });
  scene.clock.advance(3_600_000);
  t.same(scene.removed, ['web', 'web']);
  t.end();
});

test('pods that are refused repeatedly are deleted more slowly each time', (t) => {
  const scene = new Scene(t);
  const deletedAfter: number[] = [];
  for (let i = 0; i < 12; i += 1) {
    const name = `web-${i}`;
    scene.see({ name, owner: OWNER, createdAt: at(scene.clock.now()), status: OURS });
    const begin = scene.clock.now();
    while (!scene.removed.includes(name)) scene.clock.advance(1_000);
    deletedAfter.push((scene.clock.now() - begin) / 1_000);
    scene.lose(name);
  }
  t.same(deletedAfter, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
  scene.see({ name: 'other', owner: { kind: 'Job', name: 'train' }, status: OURS });
  scene.clock.advance(1_000);
  t.ok(scene.removed.includes('other'), 'pods of other owners are not delayed');
  scene.clock.advance(3_600_000);
  scene.see({ name: 'web-x', owner: OWNER, status: OURS });
  scene.clock.advance(1_000);
  t.ok(scene.removed.includes('web-x'), 'the delay is forgotten after an hour');
  t.end();
});

test('failures from before the start of the agent cause no event, but their pods are deleted', (t) => {
  const scene = new Scene(t);
  const status = { ...OURS, startTime: at(NOW - 600_000) };
  scene.see({ name: 'naked', createdAt: at(NOW - 600_000), status });
  scene.see({ name: 'web', createdAt: at(NOW - 600_000), owner: OWNER, status });
  t.same(scene.told, []);
  scene.clock.advance(1_000);
  t.same(scene.removed, ['web']);
  t.end();
});

test('a refused container start is reported at once, and its pod is deleted if the container still waits a minute later', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'web', owner: OWNER, status: refusedStart() });
  scene.see({ name: 'web', owner: OWNER, status: refusedStart() });
  t.same(scene.told, ['web/main PreStartContainerCheckErr: no such ids']);
  scene.clock.advance(59_000);
  scene.see({
    name: 'web',
    owner: OWNER,
    status: {
      phase: 'Pending',
      startTime: at(NOW),
      containerStatuses: [
        { name: 'main', state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } } },
      ],
    },
  });
  t.same(scene.removed, []);
  scene.clock.advance(2_000);
  t.same(scene.removed, ['web']);
  t.end();
});

test('a pod stays if its refused container starts after all', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'web', owner: OWNER, status: refusedStart() });
  scene.see({
    name: 'web',
    owner: OWNER,
    status: { phase: 'Running', containerStatuses: [{ name: 'main', state: { running: {} } }] },
  });
  scene.clock.advance(3_600_000);
  t.same(scene.removed, []);
  t.end();
});

test('a pod without a controller stays when its container start is refused', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'naked', status: refusedStart() });
  scene.clock.advance(3_600_000);
  t.ok(scene.told.every((line) => line === 'naked/main PreStartContainerCheckErr: no such ids'));
  t.same(scene.removed, []);
  t.end();
});

test('the deletion of a pod ends its timers, and stopping the agent ends all timers', (t) => {
  const scene = new Scene(t);
  scene.see({ name: 'web', owner: OWNER, status: refusedStart() });
  scene.lose('web');
  scene.see({ name: 'other', owner: OWNER, status: OURS });
  scene.failedPods.stop();
  scene.clock.advance(3_600_000);
  t.same(scene.removed, []);
  t.end();
});
