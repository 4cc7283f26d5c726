import { test } from 'tap';
import { readDisruptionBudget, type DisruptionBudget } from '../../src/kube/disruption-budget.js';
import { readGroupMinimum, type GroupMinimum } from '../../src/cluster/pod-groups.js';
import type { PreemptionResult } from '../../src/scheduler/results.js';
import type { PodObject } from './objects.js';
import { node, pod } from './objects.js';
import { post, settle, start, type Rig } from './scheduler.js';

/** Two GPUs: GPU 0 with low-a (60) and low-b (40), GPU 1 with mid (50). */
async function busy(rig: Rig): Promise<void> {
  const rows: [string, number, number, number][] = [
    ['low-a', 60, 1, 0],
    ['low-b', 40, 2, 0],
    ['mid', 50, 5, 1],
  ];
  for (const [name, cores, priority, index] of rows) {
    const there = pod(name, [[cores, 4]], { nodeName: 'n', priority });
    rig.api.setPod({
      ...there,
      metadata: { ...there.metadata, annotations: { 'tencent.com/predicate-gpu-idx-0': String(index) } },
    });
  }
}

function preempt(rig: Rig, cores: number, priority: number, victims: readonly string[]): Promise<PreemptionResult> {
  const body = {
    Pod: pod('vip', [[cores, cores < 100 ? 4 : 0]], { priority }),
    NodeNameToVictims: null,
    NodeNameToMetaVictims: { n: { Pods: victims.map((name) => ({ UID: `uid-${name}` })), NumPDBViolations: 1 } },
  };
  return post(`${rig.url}/scheduler/preempt`, body);
}

function uids({ NodeNameToMetaVictims }: PreemptionResult): string[] | undefined {
  return NodeNameToMetaVictims.n?.Pods.map(({ UID }) => UID.replace('uid-', ''));
}

test('the extender keeps victims that free the right GPU', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await busy(rig);
  rig.api.budgets = null;
  const result = await preempt(rig, 100, 10, ['mid']);
  t.same(result, { NodeNameToMetaVictims: { n: { Pods: [{ UID: 'uid-mid' }], NumPDBViolations: 1 } } });
});

test('where the proposal frees half of each GPU, the extender adds the least important victims, and no more than needed', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await busy(rig);
  t.same(uids(await preempt(rig, 100, 10, ['low-b'])), ['low-b', 'low-a']);
  t.same(uids(await preempt(rig, 100, 10, ['low-a'])), ['low-a', 'low-b']);
});

test('the extender spares a victim that is not needed, whichever component proposed it', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const on = (name: string, cores: number, priority: number, gpu: number, cpu = '1') => {
    const there = pod(name, [[cores, 4]], { nodeName: 'n', priority });
    const [container] = there.spec?.containers ?? [];
    const resources = { ...container?.resources, requests: { ...container?.resources?.requests, cpu } };
    rig.api.setPod({
      ...there,
      metadata: { ...there.metadata, annotations: { 'tencent.com/predicate-gpu-idx-0': String(gpu) } },
      spec: { ...there.spec, containers: [{ ...container, resources }] },
    });
  };
  on('l0', 60, 1, 0);
  on('l1', 100, 1, 1);
  on('high', 40, 20, 0);
  t.same(uids(await preempt(rig, 100, 10, ['l0'])), ['l1'], 'l0 frees only the wrong GPU, and l1 only the right one');
  t.same(uids(await preempt(rig, 100, 10, ['l0', 'l1'])), ['l1']);
  t.same(
    uids(await preempt(rig, 50, 10, ['l0', 'l1'])),
    ['l1'],
    'the extender chooses one of two pods, each of which would be enough',
  );
  rig.api.deletePod('high');
  on('l2', 40, 1, 0);
  t.same(
    uids(await preempt(rig, 100, 10, ['l0'])),
    ['l1'],
    'the extender chooses one pod, not the two pods of the other GPU',
  );
  on('l1', 100, 2, 1);
  t.same(
    uids(await preempt(rig, 100, 10, ['l1'])),
    ['l1'],
    'the scheduler proposes no other victim, and none is needed',
  );
  t.same(uids(await preempt(rig, 50, 10, ['l0', 'l1'])), ['l0'], 'the extender spares the more important pod first');
});

test('victims that free CPU or memory of the host stay, and victims without GPUs stay unchanged', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const heavy = pod('heavy', [null], { nodeName: 'n', priority: 1 });
  rig.api.setPod({
    ...heavy,
    spec: { ...heavy.spec, containers: [{ name: 'c0', resources: { requests: { cpu: '90' } } }] },
  });
  rig.api.setPod(pod('low', [[100, 0]], { nodeName: 'n', priority: 1 }));
  const vip = (cores: number) => {
    const asked = pod('vip', [[cores, 0]], { priority: 10 });
    const [container] = asked.spec?.containers ?? [];
    const resources = { ...container?.resources, requests: { ...container?.resources?.requests, cpu: '50' } };
    return { ...asked, spec: { ...asked.spec, containers: [{ ...container, resources }] } };
  };
  const ask = async (cores: number, victims: readonly string[]) =>
    uids(
      await post<PreemptionResult>(`${rig.url}/scheduler/preempt`, {
        Pod: vip(cores),
        NodeNameToMetaVictims: { n: { Pods: victims.map((name) => ({ UID: `uid-${name}` })), NumPDBViolations: 0 } },
      }),
    );
  t.same(await ask(200, ['heavy', 'low']), ['heavy', 'low']);
  t.same(
    await ask(100, ['heavy', 'low']),
    ['heavy', 'low'],
    'a GPU is free: the extender does not know the reason for these victims',
  );
});

test('pods as important as the new pod stay, and the extender drops the node', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await busy(rig);
  t.same(uids(await preempt(rig, 100, 2, ['low-a'])), undefined);
  t.same(
    uids(await preempt(rig, 300, 10, ['low-a', 'low-b', 'mid'])),
    undefined,
    'an empty node would not help either',
  );
});

test('the extender reads whole pods as well as UIDs, with keys in any case', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await busy(rig);
  const body = {
    pod: pod('vip', [[100, 0]], { priority: 10 }),
    nodenametovictims: { n: { pods: [rig.api.pod('mid')], numPDBViolations: 0 }, unknown: { pods: [] } },
  };
  t.same(await post(`${rig.url}/scheduler/preempt`, body), {
    NodeNameToMetaVictims: { n: { Pods: [{ UID: 'uid-mid' }], NumPDBViolations: 0 } },
  });
});

test('the extender does not change the victims of a pod without GPUs', async (t) => {
  const rig = await start(t, [node('n', [16])]);
  const body = {
    Pod: pod('web', [null], { priority: 10 }),
    NodeNameToMetaVictims: { other: { Pods: [{ UID: 'x' }], NumPDBViolations: 0 } },
  };
  t.same(await post(`${rig.url}/scheduler/preempt`, body), {
    NodeNameToMetaVictims: { other: { Pods: [{ UID: 'x' }], NumPDBViolations: 0 } },
  });
});

/** A pod for which the scheduler evicts other pods from n, and these other pods, which take time to end. */
async function makingRoom(rig: Rig): Promise<PodObject> {
  await busy(rig);
  for (const name of ['low-a', 'low-b']) {
    const there = rig.api.pod(name);
    rig.api.setPod({ ...there, metadata: { ...there.metadata, deletionTimestamp: '2026-11-21T08:00:00Z' } });
  }
  const vip = { ...pod('vip', [[100, 0]], { priority: 10 }), status: { phase: 'Pending', nominatedNodeName: 'n' } };
  rig.api.setPod(vip);
  return vip;
}

test('the GPU that is being emptied for a pod is reserved for it', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const vip = await makingRoom(rig);
  rig.api.deletePod('low-a');
  t.same(
    (await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames,
    [],
    'the free part of this GPU is not available to other pods',
  );
  t.same((await rig.scheduler.filter(pod('other', [[50, 4]]), ['n'])).NodeNames, ['n'], 'other GPUs are available');
  t.same((await rig.scheduler.filter(vip, ['n'])).NodeNames, [], 'the GPU is not empty yet');
  t.same((await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames, [], 'the reservation remains');
  rig.api.deletePod('low-b');
  t.equal(await settle(rig, vip), 'n: 0');
});

test('the room of a nominated pod is kept whatever happens to the object of its node', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const vip = await makingRoom(rig);
  rig.api.deletePod('low-a');
  const thief = async (): Promise<readonly string[] | null> =>
    (await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames;
  t.same(await thief(), []);
  rig.api.deleteNode('n');
  rig.api.setNode(node('n', [16, 16]));
  t.same(await thief(), [], 'it went and came back');
  rig.api.deleteNode('n');
  rig.api.deletePod('vip');
  rig.api.setPod(vip);
  rig.api.setNode(node('n', [16, 16]));
  t.same(await thief(), [], 'it came after the nomination');
  rig.api.setNode(node('n', [16]));
  t.same(await thief(), [], 'another GPU was taken out');
});

test('room that was offered to a pod is kept when the GPUs of the node change', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const [first, second] = [pod('first', [[60, 4]]), pod('second', [[60, 4]])];
  rig.api.setPod(first);
  t.same((await rig.scheduler.filter(first, ['n'])).NodeNames, ['n']);
  rig.api.setNode(node('n', [16]));
  rig.api.setPod(second);
  t.same((await rig.scheduler.filter(second, ['n'])).NodeNames, []);
  t.same(await rig.scheduler.bind(first, 'n'), { Error: '' });
});

test('a more important pod may take the room, and a pod without a nomination has no reservation', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const vip = await makingRoom(rig);
  rig.api.deletePod('low-a');
  t.same((await rig.scheduler.filter(pod('boss', [[60, 4]], { priority: 11 }), ['n'])).NodeNames, ['n']);
  rig.api.deletePod('boss');
  rig.api.setPod(vip);
  t.same((await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames, []);
  rig.api.setPod({ ...vip, status: { phase: 'Pending' } });
  t.same((await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames, ['n']);
});

test('the room is reserved if the nomination is seen before its victims are deleted', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await busy(rig);
  const vip = pod('vip', [[100, 0]], { priority: 10 });
  rig.api.setPod(vip);
  t.same(uids(await preempt(rig, 100, 10, ['mid'])), ['mid'], 'the scheduler gets this result');
  rig.api.setPod({ ...vip, status: { phase: 'Pending', nominatedNodeName: 'n' } });
  t.same(
    (await rig.scheduler.filter(pod('early', [[50, 4]]), ['n'])).NodeNames,
    [],
    'the free half of GPU 1 is reserved',
  );
  rig.api.deletePod('mid');
  t.same((await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames, []);
  t.equal(await settle(rig, { ...vip, status: { phase: 'Pending', nominatedNodeName: 'n' } }), 'n: 1');
});

test('the room is reserved as soon as victims leave that another extender named', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await busy(rig);
  const vip = { ...pod('vip', [[100, 0]], { priority: 10 }), status: { phase: 'Pending', nominatedNodeName: 'n' } };
  rig.api.setPod(vip);
  const there = rig.api.pod('mid');
  rig.api.setPod({ ...there, metadata: { ...there.metadata, deletionTimestamp: '2026-11-21T08:00:00Z' } });
  t.same(
    (await rig.scheduler.filter(pod('early', [[50, 4]]), ['n'])).NodeNames,
    [],
    'the free half of GPU 1 is reserved',
  );
  rig.api.deletePod('mid');
  t.same((await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames, []);
  t.equal(await settle(rig, vip), 'n: 1');
});

test('a victim that is deleted without a deletion timestamp leaves its room to the nominated pod', async (t) => {
  const rig = await start(t, [node('n', [16])]);
  rig.api.setPod(pod('low', [[100, 0]], { nodeName: 'n' }));
  const vip = { ...pod('vip', [[100, 0]], { priority: 10 }), status: { phase: 'Pending', nominatedNodeName: 'n' } };
  rig.api.setPod(vip);
  rig.api.deletePod('low');
  t.same((await rig.scheduler.filter(pod('thief', [[60, 4]]), ['n'])).NodeNames, []);
  t.equal(await settle(rig, vip), 'n: 0');
});

/** A disruption budget of the default namespace for pods with the label `app: NAME`. */
function budget(app: string, allowed: number): DisruptionBudget {
  const object = {
    metadata: { namespace: 'default', name: app },
    spec: { selector: { matchLabels: { app } } },
    status: { disruptionsAllowed: allowed },
  };
  const read = readDisruptionBudget(object, 'v1');
  if (read === null) throw new Error('the budget cannot be read');
  return read;
}

/** A pod that fills one GPU. */
function filling(rig: Rig, name: string, gpu: number, priority: number, metadata: PodObject['metadata'] = {}): void {
  const there = pod(name, [[100, 0]], { nodeName: 'n', priority });
  const annotations = { 'tencent.com/predicate-gpu-idx-0': String(gpu), ...metadata.annotations };
  rig.api.setPod({ ...there, metadata: { ...there.metadata, ...metadata, annotations } });
}

test('the extender evicts a pod within its disruption budget instead of a less important one beyond it', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  filling(rig, 'guarded', 0, 1, { labels: { app: 'guarded' } });
  filling(rig, 'other', 1, 5);
  rig.api.budgets = [budget('guarded', 0)];
  const expected = { NodeNameToMetaVictims: { n: { Pods: [{ UID: 'uid-other' }], NumPDBViolations: 0 } } };
  t.same(await preempt(rig, 100, 10, ['guarded']), expected, 'the scheduler proposed the guarded pod');
  t.same(await preempt(rig, 100, 10, ['other']), expected);
  rig.api.budgets = [budget('guarded', 1)];
  t.same(uids(await preempt(rig, 100, 10, ['guarded'])), ['guarded'], 'within the budget the lower priority decides');
});

test('the extender counts the budgets that its victims violate, whatever the scheduler counted', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  for (const [at, name] of ['one', 'two'].entries()) filling(rig, name, at, 1, { labels: { app: 'guarded' } });
  const violations = async (allowed: number, cores: number): Promise<number | undefined> => {
    rig.api.budgets = [budget('guarded', allowed)];
    return (await preempt(rig, cores, 10, ['one'])).NodeNameToMetaVictims.n?.NumPDBViolations;
  };
  t.equal(await violations(0, 200), 2);
  t.equal(await violations(1, 200), 1);
  t.equal(await violations(2, 200), 0);
  t.equal(await violations(1, 100), 0, 'one eviction is within the budget');
  rig.api.budgets = null;
  t.equal(
    (await preempt(rig, 100, 10, ['one'])).NodeNameToMetaVictims.n?.NumPDBViolations,
    1,
    'while the budgets are not known, the scheduler counts',
  );
});

test('a violation that only the scheduler can count stays with a victim that only it knows', async (t) => {
  const rig = await start(t, [node('n', [16])]);
  filling(rig, 'low', 0, 1);
  const web = pod('web', [null], { nodeName: 'n', priority: 1 });
  rig.api.setPod({ ...web, spec: { ...web.spec, containers: [{ resources: { requests: { cpu: '90' } } }] } });
  const vip = pod('vip', [[100, 0]], { priority: 10 });
  const asked = { ...vip, spec: { ...vip.spec, overhead: { cpu: '50' } } };
  const ask = (victims: readonly string[]): Promise<PreemptionResult> =>
    post(`${rig.url}/scheduler/preempt`, {
      Pod: asked,
      NodeNameToMetaVictims: { n: { Pods: victims.map((name) => ({ UID: `uid-${name}` })), NumPDBViolations: 1 } },
    });
  const expected = [{ UID: 'uid-web' }, { UID: 'uid-low' }];
  t.same((await ask(['web', 'low'])).NodeNameToMetaVictims.n, { Pods: expected, NumPDBViolations: 1 });
});

test('a pod group keeps its minimum where another victim suffices', async (t) => {
  const rig = await start(t, [node('n', [16, 16, 16])]);
  const member = { labels: { 'scheduling.x-k8s.io/pod-group': 'train' } };
  filling(rig, 'train-0', 0, 1, member);
  filling(rig, 'train-1', 1, 1, member);
  filling(rig, 'other', 2, 5);
  t.same(uids(await preempt(rig, 100, 10, ['train-0'])), ['other'], 'without a known minimum the group needs all');
  rig.api.minimums = [groupMinimum('train', 1)];
  t.same(uids(await preempt(rig, 100, 10, ['train-0'])), ['train-0'], 'one more than the minimum runs');
  rig.api.minimums = [groupMinimum('train', 2)];
  t.same(uids(await preempt(rig, 100, 10, ['train-0'])), ['other']);
  const both = await preempt(rig, 200, 10, ['train-0', 'train-1']);
  t.same(both.NodeNameToMetaVictims.n?.NumPDBViolations, 1, 'the scheduler prefers nodes without such victims');
});

function groupMinimum(name: string, minMember: number): GroupMinimum {
  const read = readGroupMinimum({ metadata: { namespace: 'default', name }, spec: { minMember } });
  if (read === null) throw new Error('the PodGroup cannot be read');
  return read;
}

test('a pod that is about to end is waited for, and no other is evicted', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const deleted = (inMs: number) => ({ deletionTimestamp: new Date(Date.now() + inMs).toISOString() });
  filling(rig, 'low', 0, 1);
  filling(rig, 'ending', 1, 20, deleted(20_000));
  t.same(uids(await preempt(rig, 100, 10, ['low'])), ['ending']);
  filling(rig, 'ending', 1, 20, deleted(3_600_000));
  t.same(uids(await preempt(rig, 100, 10, ['low'])), ['low'], 'its grace period lasts an hour');
  filling(rig, 'ending', 1, 20, deleted(-3_600_000));
  t.same(uids(await preempt(rig, 100, 10, ['low'])), ['low'], 'its node has not removed it for an hour');
});
