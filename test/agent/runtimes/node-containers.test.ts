import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { cgroupProcesses } from '../../../src/agent/runtimes/cgroup-processes.js';
import {
  RuntimeError,
  type Container,
  type ContainerRuntime,
  type InspectedContainer,
} from '../../../src/agent/runtimes/container.js';
import { NodeContainers } from '../../../src/agent/runtimes/node-containers.js';
import { scratchDirectory } from '../../scratch.js';

const id = (digit: string) => digit.repeat(64);

function container(digit: string, changes: Partial<InspectedContainer> = {}): InspectedContainer {
  return {
    id: id(digit),
    name: 'c',
    pod: { uid: 'u', namespace: 'n', name: 'p' },
    labels: {},
    state: 'running',
    attempt: 0,
    createdAtMs: 1,
    pid: 100,
    ...changes,
  };
}

/** A runtime in memory; the next calls throw `failures`. */
function fakeRuntime(
  containers: readonly InspectedContainer[],
  failures: RuntimeError[] = [],
): ContainerRuntime & { closed: boolean } {
  const ask = async <T>(answer: T): Promise<T> => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    return answer;
  };
  return {
    endpoint: '/fake.sock',
    closed: false,
    version: () => ask({ name: 'fake', version: '1', protocol: 'fake' }),
    inspect: (wanted) => ask(containers.find((known) => known.id === wanted) ?? null),
    list: () => ask<Container[]>([...containers]),
    close() {
      this.closed = true;
    },
  };
}

test('of several containers with one name, the running one counts, otherwise the latest', async (t) => {
  const cases: readonly [readonly InspectedContainer[], string][] = [
    [[container('a', { state: 'exited', attempt: 0 }), container('b', { state: 'running', attempt: 1 })], 'b'],
    [[container('a', { state: 'exited', attempt: 2 }), container('b', { state: 'running', attempt: 1 })], 'b'],
    [[container('a', { state: 'exited', attempt: 2 }), container('b', { state: 'exited', attempt: 10 })], 'b'],
    [[container('a', { state: 'created', createdAtMs: 1 }), container('b', { state: 'created', createdAtMs: 2 })], 'b'],
  ];
  for (const [containers, expected] of cases) {
    const node = new NodeContainers({ connect: async () => fakeRuntime(containers) });
    t.match(await node.ofPod({ podUid: 'u', containerName: 'c' }), { id: id(expected) });
  }
});

test('the agent looks once more for a runtime that disappeared, and passes other failures on', async (t) => {
  const gone = new RuntimeError('unavailable', '/fake.sock', 'gone');
  const first = fakeRuntime([], []);
  const failures: RuntimeError[] = [];
  const runtimes = [first, fakeRuntime([container('a')], failures)];
  let connections = 0;
  const node = new NodeContainers({ connect: async () => runtimes[connections++] ?? Promise.reject(gone) });
  t.equal(await node.inspect(id('a')), null);
  first.inspect = () => Promise.reject(gone);
  t.match(await node.inspect(id('a')), { id: id('a') });
  t.equal(first.closed, true);
  t.equal(connections, 2);

  failures.push(new RuntimeError('refused', '/fake.sock', 'no'));
  await t.rejects(node.list(), { code: 'refused' });
  failures.push(gone);
  await t.rejects(node.list(), { code: 'unavailable' });
  t.equal(connections, 3, 'the agent looked for the runtime');
  node.close();
});

test('a runtime that starts later is found later', async (t) => {
  let there = false;
  const node = new NodeContainers({
    connect: async () =>
      there ? fakeRuntime([container('a')]) : Promise.reject(new RuntimeError('unavailable', '/x', 'absent')),
  });
  await t.rejects(node.version(), { code: 'unavailable' });
  there = true;
  t.match(await node.version(), { name: 'fake' });
});

test('concurrent calls share one connection', async (t) => {
  let connections = 0;
  const node = new NodeContainers({
    connect: async () => {
      connections += 1;
      return fakeRuntime([container('a')]);
    },
  });
  await Promise.all([node.list(), node.version(), node.inspect(id('a'))]);
  t.equal(connections, 1);
});

test('a process does not belong to a container whose first process has moved to another cgroup', async (t) => {
  const processes = await scratchDirectory(t);
  mkdirSync(join(processes, '100'));
  writeFileSync(join(processes, '100/cgroup'), `0::/docker/${id('b')}\n`);
  const node = new NodeContainers({ connect: async () => fakeRuntime([container('a')]), processes });
  t.same(await node.pids(id('a')), []);
  t.same(await node.pids(id('b')), []);
});

test('the processes of a container are those of its control group and all groups below', async (t) => {
  const cgroups = await scratchDirectory(t);
  const group = (path: string, pids: readonly number[]) => {
    mkdirSync(join(cgroups, path), { recursive: true });
    writeFileSync(join(cgroups, path, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''));
  };
  group('kubepods/podx/a', [10, 12]);
  group('kubepods/podx/a/child', []);
  group('kubepods/podx/a/child/deep', [11, 10]);
  mkdirSync(join(cgroups, 'kubepods/podx/a/no-group'), { recursive: true });
  group('memory/docker/a', [20]);
  group('cpu,cpuacct/docker/b', [30, 0]);
  group('unified/docker/c', [40]);
  t.same(await cgroupProcesses(cgroups, { path: '/kubepods/podx/a', controllers: null }), [10, 11, 12]);
  t.same(await cgroupProcesses(cgroups, { path: '/docker/a', controllers: ['memory'] }), [20]);
  t.same(
    await cgroupProcesses(cgroups, { path: '/docker/b', controllers: ['cpu', 'cpuacct'] }),
    [30],
    'a process of another namespace appears as 0',
  );
  t.same(await cgroupProcesses(cgroups, { path: '/docker/c', controllers: null }), [40]);
  t.equal(await cgroupProcesses(cgroups, { path: '/docker/absent', controllers: null }), null);
});
