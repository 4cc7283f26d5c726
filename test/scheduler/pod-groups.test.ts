import { test, type Test } from 'tap';
import { generator } from '../generator.js';
import { readPod } from '../../src/kube/pod.js';
import { groupOf } from '../../src/cluster/pod-groups.js';
import { node, pod, type NodeObject, type PodObject } from './objects.js';
import { start, type Rig } from './scheduler.js';

const EIGHT = new Array<number>(8).fill(16);
const nodesOf = (count: number): NodeObject[] => Array.from({ length: count }, (_, at) => node(`n${at}`, EIGHT));

/** A member that needs all eight GPUs of a node. */
function member(group: string, name: string): PodObject {
  return pod(`${group}-${name}`, [[800, 0]], { schedulingGroup: { podGroupName: group } });
}

const membersOf = (group: string, count: number): PodObject[] =>
  Array.from({ length: count }, (_, at) => member(group, String(at)));

/** A wait of a minute would end the test: no member waits for room that its own group holds. */
const PATIENT = { settleTimeoutMs: 60_000 };

async function rigOf(t: Test, nodes: readonly NodeObject[], offer: 'all' | 'best' = 'best'): Promise<Rig> {
  return start(t, nodes, { ...PATIENT, offer });
}

async function offered(rig: Rig, wanted: PodObject): Promise<readonly string[]> {
  rig.api.setPod(wanted);
  return (await rig.scheduler.filter(wanted, [...rig.api.nodes.keys()])).NodeNames ?? [];
}

for (const offer of ['all', 'best'] as const) {
  test(`a group whose members are all filtered before any is bound gets a node each (--offer ${offer})`, async (t) => {
    const rig = await rigOf(t, nodesOf(4), offer);
    const members = membersOf('train', 4);
    const nodes: string[] = [];
    for (const wanted of members) {
      const names = await offered(rig, wanted);
      t.equal(names.length, 1, 'a member is offered one node');
      nodes.push(...names);
    }
    t.equal(new Set(nodes).size, 4);
    for (const [at, wanted] of members.entries())
      t.same(await rig.scheduler.bind(wanted, nodes[at] as string), { Error: '' });
  });
}

const NAMINGS: readonly (readonly [string, 'labels' | 'annotations', string])[] = [
  ['coscheduling', 'labels', 'scheduling.x-k8s.io/pod-group'],
  ['coscheduling before 0.24', 'labels', 'pod-group.scheduling.sigs.k8s.io'],
  ['Kueue', 'labels', 'kueue.x-k8s.io/pod-group-name'],
  ['Volcano', 'annotations', 'scheduling.k8s.io/group-name'],
  ['Volcano for Jobs of others', 'labels', 'scheduling.volcano.sh/group-name'],
];

for (const [who, where, key] of NAMINGS)
  test(`members of a group of ${who} get a node each, and again when they are tried again`, async (t) => {
    const rig = await rigOf(t, nodesOf(4));
    const members = membersOf('job', 4).map(({ metadata }) => {
      const { spec } = pod(metadata?.name ?? '', [[800, 0]]);
      return { metadata: { ...metadata, [where]: { [key]: 'job' } }, spec: spec ?? {} };
    });
    for (let cycle = 0; cycle < 3; cycle++) {
      const nodes: string[] = [];
      for (const wanted of members) nodes.push(...(await offered(rig, wanted)));
      t.equal(nodes.length, 4, 'one node each');
      t.equal(new Set(nodes).size, 4);
    }
  });

test('of two groups that are filtered alternately, the older one gets all its nodes', async (t) => {
  const rig = await rigOf(t, nodesOf(4));
  const [older, younger] = [membersOf('older', 4), membersOf('younger', 4)];
  const got = { older: 0, younger: 0 };
  for (let at = 0; at < 4; at++) {
    got.older += (await offered(rig, older[at] as PodObject)).length;
    if (at < 2) got.younger += (await offered(rig, younger[at] as PodObject)).length;
  }
  t.equal(got.older, 4);
  t.equal(got.younger, 2, 'the younger group had room until the older one needed it');
});

test('a group that cannot start keeps no other pod waiting', async (t) => {
  const rig = await rigOf(t, nodesOf(4));
  const answers: number[] = [];
  for (const wanted of membersOf('large', 5)) answers.push((await offered(rig, wanted)).length);
  t.same(answers, [1, 1, 1, 1, 0], 'the fifth member finds no node, and does not wait');
  t.not((await offered(rig, pod('other', [[50, 2]]))).length, 0);
});

test('a group that the scheduler gives up before it asks about all members keeps no other pod waiting', async (t) => {
  const rig = await rigOf(t, nodesOf(4));
  rig.api.minimums = [{ keys: ['default/large'], minimum: 5 }];
  for (let cycle = 0; cycle < 2; cycle++) {
    for (const wanted of membersOf('large', 4)) t.equal((await offered(rig, wanted)).length, 1);
    // For the fifth member the scheduler's own plugins find no node.
    t.not((await offered(rig, pod(`other-${cycle}`, [[50, 2]]))).length, 0);
  }
});

test('a group of which enough members passed keeps its room until they are bound', async (t) => {
  const rig = await rigOf(t, nodesOf(4));
  rig.api.minimums = [{ keys: ['default/enough'], minimum: 4 }];
  const members = membersOf('enough', 5);
  for (const wanted of members) rig.api.setPod(wanted);
  const nodes: string[] = [];
  for (const wanted of members.slice(0, 4)) nodes.push(...(await offered(rig, wanted)));
  t.equal(nodes.length, 4);
  t.same(await offered(rig, pod('other', [[50, 2]])), []);
  for (const [at, wanted] of members.slice(0, 4).entries())
    t.same(await rig.scheduler.bind(wanted, nodes[at] as string), { Error: '' });
});

test('a member that is filtered again begins its group anew', async (t) => {
  const rig = await rigOf(t, nodesOf(2));
  const [first, second] = membersOf('train', 2) as [PodObject, PodObject];
  for (let cycle = 0; cycle < 5; cycle++) {
    const nodes = [...(await offered(rig, first)), ...(await offered(rig, second))];
    t.same(nodes.sort(), ['n0', 'n1']);
  }
});

test('room of a pod is free as soon as the scheduler writes that it found no node, or names one', async (t) => {
  const rig = await rigOf(t, [node('a', [16]), node('b', [16])], 'all');
  const stored = (of: PodObject, version: string, status: PodObject['status'] = {}): PodObject => ({
    ...of,
    metadata: { ...of.metadata, resourceVersion: version },
    status: { ...of.status, ...status },
  });
  const wanted = pod('p', [[100, 0]]);
  const other = pod('q', [[100, 0]]);
  t.same(await offered(rig, stored(wanted, '1')), ['a', 'b']);
  rig.api.setPod(stored(wanted, '2', { nominatedNodeName: 'a' }));
  t.same(await offered(rig, stored(other, '3')), ['b']);
  const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'waits for others' }];
  rig.api.setPod(stored(wanted, '4', { conditions }));
  t.same(await offered(rig, stored(other, '3')), ['a', 'b']);
});

test('members go to nodes that are close to each other', async (t) => {
  const clique = ['x', 'y', 'z', 'x', 'y', 'x'];
  const nodes = clique.map((value, at) =>
    node(`n${at}`, EIGHT, { labels: { 'nvidia.com/gpu.clique': value, 'topology.kubernetes.io/zone': 'one' } }),
  );
  const rig = await rigOf(t, nodes);
  const got: string[] = [];
  for (const wanted of membersOf('train', 3)) got.push(...(await offered(rig, wanted)));
  t.same(got.sort(), ['n0', 'n3', 'n5'], 'all of them fit in clique x');
  got.push(...(await offered(rig, member('train', 'more'))));
  t.equal(got.length, 4, 'a member that fits in no clique of its group is placed elsewhere');
});

/** Places all members of a group that exist together; the nodes that they were offered. */
async function placedTogether(rig: Rig, members: readonly PodObject[]): Promise<readonly string[]> {
  for (const wanted of members) rig.api.setPod(wanted);
  const nodes: string[] = [];
  for (const wanted of members) nodes.push(...(await offered(rig, wanted)));
  return nodes;
}

test('a group goes to the smallest rack that holds it, else to the smallest block', async (t) => {
  const rack = (block: string, name: string) => ({
    labels: { 'topology.kubernetes.io/block': block, 'topology.kubernetes.io/rack': name },
  });
  const places = ['a1', 'b1', 'a1', 'b1', 'a2', 'b1', 'a2', 'c1', 'c1'].map((name) => rack(name.charAt(0), name));
  const nodes = places.map((place, at) => node(`n${at}`, EIGHT, place));
  const inRacks = async (group: string, count: number): Promise<string> => {
    const rig = await rigOf(t, nodes);
    const got = await placedTogether(rig, membersOf(group, count));
    return got
      .map((name) => places[Number(name.slice(1))]?.labels['topology.kubernetes.io/rack'] ?? '')
      .sort()
      .join();
  };
  t.match(await inRacks('two', 2), /^(a1,a1|a2,a2|c1,c1)$/);
  t.equal(await inRacks('three', 3), 'b1,b1,b1');
  t.equal(await inRacks('four', 4), 'a1,a1,a2,a2', 'no rack has four nodes, and block a has');
  t.match(await inRacks('five', 5), /^a1,a1,a2,a2,|b1,b1,b1$/, 'no block has five');
});

test('members that share nodes are counted by what fits on these', async (t) => {
  const halves = (group: string, count: number): PodObject[] =>
    Array.from({ length: count }, (_, at) =>
      pod(`${group}-${at}`, [[400, 0]], { schedulingGroup: { podGroupName: group } }),
    );
  const labels = (clique: string) => ({ labels: { 'nvidia.com/gpu.clique': clique } });
  const rig = await rigOf(t, [
    node('n0', EIGHT, labels('x')),
    node('n1', EIGHT, labels('y')),
    node('n2', EIGHT, labels('y')),
  ]);
  t.same(await placedTogether(rig, halves('two', 2)), ['n0', 'n0'], 'one node of clique x holds both');
  t.same((await placedTogether(rig, halves('four', 4))).toSorted(), ['n1', 'n1', 'n2', 'n2']);
});

test('a group is in one domain of the closest level that has one with room, in random topologies', async (t) => {
  const random = generator(7);
  const pick = (values: number): number => Math.floor(random() * values);
  for (let run = 0; run < 25; run++) {
    const nodes = Array.from({ length: 6 + pick(10) }, (_, at) => {
      const [block, rack] = [pick(3), pick(3)];
      const labels = {
        'topology.kubernetes.io/block': `${block}`,
        'topology.kubernetes.io/rack': `${block}-${rack}`,
        'nvidia.com/gpu.clique': `${block}-${rack}-${pick(2)}`,
      };
      return node(`n${at}`, EIGHT, { labels });
    });
    const count = 2 + pick(4);
    const rig = await rigOf(t, nodes);
    const got = await placedTogether(rig, membersOf('group', count));
    const labelOf = (level: string, name: string): string =>
      nodes.find(({ metadata }) => metadata?.name === name)?.metadata?.labels?.[level] ?? '';
    const level = ['nvidia.com/gpu.clique', 'topology.kubernetes.io/rack', 'topology.kubernetes.io/block'].find(
      (each) =>
        nodes.some(({ metadata }) => {
          const value = metadata?.labels?.[each];
          return nodes.filter((other) => other.metadata?.labels?.[each] === value).length >= count;
        }),
    );
    t.equal(got.length, count);
    if (level !== undefined)
      t.equal(new Set(got.map((name) => labelOf(level, name))).size, 1, `${count} in one ${level}`);
  }
});

/** Pods on a node that ask for these cores, on GPU after GPU. */
function occupy(rig: Rig, on: string, cores: readonly number[], priority: number): readonly string[] {
  return cores.map((amount, at) => {
    const name = `${on}-${priority}-${at}`;
    const there = pod(name, [[amount, amount < 100 ? 2 : 0]], { nodeName: on, priority });
    const count = Math.max(1, amount / 100);
    const gpus = Array.from({ length: count }, (_, index) => at * count + index).join();
    rig.api.setPod({
      ...there,
      metadata: { ...there.metadata, annotations: { 'tencent.com/predicate-gpu-idx-0': gpus } },
    });
    return name;
  });
}

const important = (name: string, cores: number): PodObject =>
  pod(name, [[cores, 0]], { priority: 10, schedulingGroup: { podGroupName: 'vip' } });

/** One filter call with the nodes that the scheduler offers while it assumes that victims are gone. */
async function offeredOf(rig: Rig, wanted: PodObject, names: readonly string[]): Promise<readonly string[]> {
  rig.api.setPod(wanted);
  return (await rig.scheduler.filter(wanted, names)).NodeNames ?? [];
}

test('while the scheduler searches victims for a group, members get nodes that evictions empty', async (t) => {
  const rig = await rigOf(t, nodesOf(4));
  occupy(rig, 'n0', [800], 20);
  occupy(rig, 'n1', [800], 5);
  const low = [...occupy(rig, 'n2', [800], 1), ...occupy(rig, 'n3', [400, 400], 1)];
  const members = [important('vip-0', 800), important('vip-1', 800)] as const;
  t.same(await offeredOf(rig, members[0], ['n0', 'n1', 'n2', 'n3']), ['n2'], 'the fewest of the least important');
  t.same(await offeredOf(rig, members[1], ['n0', 'n1', 'n3']), ['n3'], 'n0 has a more important pod');
  t.same(await offeredOf(rig, important('vip-2', 800), ['n0']), []);
  for (const name of low) rig.api.deletePod(name);
  t.same(await offeredOf(rig, members[0], ['n2', 'n3']), ['n2']);
  t.same(await rig.scheduler.bind(members[0], 'n2'), { Error: '' }, 'after the evictions');
});

test('several members of a group get the room of one node that evictions empty, and no more than that', async (t) => {
  const rig = await rigOf(t, nodesOf(1));
  occupy(rig, 'n0', new Array<number>(8).fill(100), 1);
  for (const [name, nodes] of [
    ['a', ['n0']],
    ['b', ['n0']],
    ['c', []],
  ] as const)
    t.same(await offeredOf(rig, important(name, 400), ['n0']), nodes, name);
});

test('a node is not offered where the scheduler could spare the wrong victims', async (t) => {
  const rig = await rigOf(t, nodesOf(1));
  occupy(rig, 'n0', new Array<number>(8).fill(100), 1);
  t.same(await offeredOf(rig, important('whole', 100), ['n0']), ['n0'], 'every victim frees a whole GPU');
  const parts = await rigOf(t, nodesOf(1));
  occupy(parts, 'n0', new Array<number>(8).fill(95), 1);
  t.same(
    await offeredOf(parts, important('one', 100), ['n0']),
    [],
    'by sums one of 95 suffices, with the rest of others',
  );
  t.same(await offeredOf(parts, important('all', 800), ['n0']), ['n0'], 'all of them have to go');
});

test('a pod names its group as Kubernetes, coscheduling, Kueue and Volcano do', (t) => {
  const base = pod('p', [[10, 1]]);
  const labelled = (labels: Record<string, string>, annotations: Record<string, string> = {}) =>
    groupOf(readPod({ ...base, metadata: { ...base.metadata, labels, annotations } }));
  t.equal(groupOf(readPod(base)), null);
  t.equal(groupOf(readPod(member('g', '0'))), 'default/g');
  t.match(labelled({ 'scheduling.x-k8s.io/pod-group': 'g' }), /\/g$/);
  t.match(labelled({ 'kueue.x-k8s.io/pod-group-name': 'g' }), /\/g$/);
  t.match(labelled({}, { 'scheduling.k8s.io/group-name': 'g' }), /\/g$/);
  t.end();
});
