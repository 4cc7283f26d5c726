import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { decideAffinity, type AffinityQuestion } from '../../../src/agent/nri/cpu-affinity.js';
import { formatCpuList, parseCpuList } from '../../../src/agent/nri/cpu-list.js';
import { readCpuManagerPolicy } from '../../../src/agent/nri/cpu-manager.js';
import { readCpuTopology } from '../../../src/agent/nri/cpu-topology.js';
import { scratchDirectory } from '../../scratch.js';

const list = (text: string): ReadonlySet<number> => parseCpuList(text) ?? new Set();

const QUESTION: AffinityQuestion = {
  standard: 'prefer',
  podAnnotations: {},
  policy: 'none',
  cpus: '',
  numaNodes: [1],
  topology: {
    usable: list('0-15'),
    byNode: new Map([
      [0, list('0-7')],
      [1, list('8-15')],
    ]),
  },
};
const ask = (change: Partial<AffinityQuestion> = {}) => decideAffinity({ ...QUESTION, ...change });
const NUMA = 'tencent.com/gpu-numa';

test('lists of CPUs are read and written in the format of Linux', (t) => {
  for (const text of ['', '0', '0-3', '0-3,8', '0,2,4-5,127'])
    t.equal(formatCpuList(parseCpuList(text) ?? new Set([-1])), text);
  t.equal(formatCpuList(list('3,1,2,0\n')), '0-3');
  for (const text of ['x', '-1', '3-1', '0-', ',', '0,,1', '0-99999999', '1-65536', '0x1'])
    t.equal(parseCpuList(text), null, text);
  t.end();
});

test('a container is bound to the CPUs of the NUMA nodes of its GPUs', (t) => {
  t.same(ask(), { kind: 'bind', cpus: '8-15', mems: '' });
  t.same(ask({ standard: 'strict' }), { kind: 'bind', cpus: '8-15', mems: '1' });
  t.match(ask({ numaNodes: [0, 1, 1] }), { kind: 'none', reason: /every CPU/ });
  t.match(ask({ numaNodes: [] }), { kind: 'none', reason: /does not report/ });
  t.end();
});

test('CPUs that the system excludes are left out, and without any CPU left strict mode refuses', (t) => {
  const topology = { usable: list('0-9'), byNode: QUESTION.topology?.byNode ?? new Map() };
  t.match(ask({ topology }), { kind: 'bind', cpus: '8-9' });
  const none = { ...topology, usable: list('0-7') };
  t.match(ask({ topology: none }), { kind: 'none', reason: 'no CPU of NUMA node 1 is free for it' });
  t.match(ask({ topology: none, standard: 'strict' }), { kind: 'refuse', reason: /NUMA node 1/ });
  t.end();
});

test('the CPU manager of the kubelet is never overruled', (t) => {
  for (const standard of ['prefer', 'strict'] as const) {
    t.match(ask({ standard, policy: 'static' }), { kind: 'none', reason: /policy static/ });
    t.match(ask({ standard, policy: null }), { kind: 'none', reason: /cannot be read/ });
  }
  t.end();
});

test('a binding by others stays, and strict mode refuses it if it is far from the GPUs', (t) => {
  t.match(ask({ cpus: '0-3' }), { kind: 'none' });
  t.match(ask({ cpus: '8', standard: 'strict' }), { kind: 'none', reason: /already bound to CPUs/ });
  t.match(ask({ cpus: '0-3', standard: 'strict' }), { kind: 'refuse' });
  t.match(ask({ cpus: 'unreadable', standard: 'strict' }), { kind: 'none' });
  t.end();
});

test('a pod chooses its binding by annotation, except where the node binds nothing', (t) => {
  t.match(ask({ podAnnotations: { [NUMA]: 'off' } }), { kind: 'none', reason: 'off' });
  t.match(ask({ podAnnotations: { [NUMA]: 'strict' } }), { kind: 'bind', mems: '1' });
  t.match(ask({ podAnnotations: { [NUMA]: 'sometimes' } }), { kind: 'bind', mems: '' });
  t.match(ask({ standard: 'off', podAnnotations: { [NUMA]: 'strict' } }), { kind: 'none', reason: 'off' });
  t.end();
});

test('a machine with one NUMA node, or without readable ones, binds nothing', (t) => {
  t.match(ask({ topology: { usable: list('0-7'), byNode: new Map([[1, list('0-7')]]) } }), { kind: 'none' });
  t.match(ask({ topology: null }), { kind: 'none' });
  t.end();
});

test('CPUs, isolated CPUs and NUMA nodes are read from sysfs', async (t) => {
  const directory = await scratchDirectory(t);
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(directory, path, '..'), { recursive: true });
    await writeFile(join(directory, path), text);
  };
  t.equal(await readCpuTopology(directory), null);
  await write('cpu/online', '0-7\n');
  await write('cpu/isolated', '7\n');
  await write('node/node0/cpulist', '0-3\n');
  await write('node/node1/cpulist', '4-7\n');
  await write('node/possible', '0-1\n');
  const topology = await readCpuTopology(directory);
  t.equal(formatCpuList(topology?.usable ?? new Set()), '0-6');
  t.same([...(topology?.byNode ?? [])].map(([node, cpus]) => [node, formatCpuList(cpus)]).sort(), [
    [0, '0-3'],
    [1, '4-7'],
  ]);
  await write('node/node1/cpulist', 'garbage');
  t.equal(await readCpuTopology(directory), null);
});

test('the policy of the CPU manager is read from the state of the kubelet', async (t) => {
  const path = join(await scratchDirectory(t), 'cpu_manager_state');
  t.equal(await readCpuManagerPolicy(path), null);
  for (const [text, policy] of [
    ['{"policyName":"none","defaultCpuSet":"","checksum":1353318690}', 'none'],
    ['{"policyName":"static","defaultCpuSet":"0-1","entries":{},"checksum":1}', 'static'],
    ['{"policyName":""}', null],
    ['{"policyName":', null],
    ['[]', null],
  ] as const) {
    await writeFile(path, text);
    t.equal(await readCpuManagerPolicy(path), policy, text);
  }
});
