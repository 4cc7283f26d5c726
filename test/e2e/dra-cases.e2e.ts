import tap, { test } from 'tap';
import { deviceName } from '../../src/gpu/claims/names.js';
import { place } from '../../src/gpu/placement/place.js';
import { parseMatrix } from '../../src/gpu/topology/matrix-text.js';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { slotsOf } from '../gpu/topology/machines.js';
import { AgentProcess } from './agent-process.js';
import { ClaimPods, claimPod, share, sharing, single, specFiles, template, type ClaimRequest } from './claims.js';
import { TestCluster } from './cluster.js';

/** Sixteen GPUs: two boards of eight, every pair of a board linked through NVSwitch. */
const BOARDS = [
  ['', ...Array.from({ length: 16 }, (_, at) => `GPU${at}`)].join('\t'),
  ...Array.from({ length: 16 }, (_, a) =>
    [
      `GPU${a}`,
      ...Array.from({ length: 16 }, (__, b) =>
        a === b ? 'X' : Math.floor(a / 8) === Math.floor(b / 8) ? 'NV18' : 'SYS',
      ),
    ].join('\t'),
  ),
  '',
].join('\n');

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, BOARDS, ['--allocation=dra']);
const { gpuNodes, isUnschedulable, limitsOnDisk, phase, remove, slices } = new ClaimPods(cluster, agent);
const skip = cluster.version.atLeast(36) ? false : 'shares by claims need Kubernetes 1.36';

tap.setTimeout(900_000);
tap.teardown(() => agent.stop());

const gpusOf = async (name: string, container?: string): Promise<number[]> =>
  (await gpuNodes(name, container)).map((path) => Number(/\d+$/.exec(path)?.[0])).sort((a, b) => a - b);

const allFree = (): Promise<unknown> =>
  until('all allocations to be released', async () => limitsOnDisk().length === 0 && specFiles().length === 0, 60_000);

const whole = (count: number, name = 'gpus'): ClaimRequest => ({
  name,
  exactly: { deviceClassName: 'gpu.tencent.com', allocationMode: 'ExactCount', count },
});

test('claims of one pod in every form get the GPUs and limits that they name', { skip }, async (t) => {
  await agent.start();
  await cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
  await cluster.kubectl('apply', '-f', packageFile('etc/dra/claims.yaml'));
  await until('the ResourceSlice', async () => (await slices())[0]?.spec.devices.length === 16);
  const distinct = { constraints: [{ requests: ['a', 'b'], distinctAttribute: 'gpu.tencent.com/uuid' }] };
  await cluster.apply(
    template('third', [share(30, '2Gi')]),
    template('fifth', [share(20, '1Gi')]),
    template('two-requests', [share(30, '2Gi', 'a'), share(20, '1Gi', 'b')], distinct),
    template('count', [share(25, '1Gi', 'gpu', { allocationMode: 'ExactCount', count: 2 })]),
  );
  const claim = (name: string, from: string): object => ({ name, resourceClaimTemplateName: from });

  // An init container and two containers use one claim.
  await cluster.apply(
    claimPod(
      'together',
      [claim('g', 'third')],
      [
        { name: 'main', claims: [{ name: 'g' }] },
        { name: 'other', claims: [{ name: 'g' }] },
      ],
      [{ name: 'warm-up', claims: [{ name: 'g' }], command: 'ls /dev/nvidia* > /dev/termination-log; true' }],
    ),
  );
  await phase('together', 'Running');
  t.same(limitsOnDisk(), ['30/8'], 'one slice for all containers of the claim');
  t.same(await gpusOf('together', 'main'), await gpusOf('together', 'other'));
  await remove('together');
  await allFree();

  // One container uses two claims, which land on one GPU: the scheduler fills a GPU before the next.
  await cluster.apply(
    claimPod(
      'sum',
      [claim('a', 'third'), claim('b', 'fifth')],
      [{ name: 'main', claims: [{ name: 'a' }, { name: 'b' }] }],
    ),
  );
  await phase('sum', 'Running');
  t.same(limitsOnDisk(), ['50/12'], 'the limits of both claims are added up');
  t.equal((await gpusOf('sum')).length, 1);
  await remove('sum');
  await allFree();

  // Two requests of one claim: on different GPUs by a constraint, for one container or one request for each of two.
  await cluster.apply(
    claimPod('distinct', [claim('g', 'two-requests')], [{ name: 'main', claims: [{ name: 'g' }] }]),
    claimPod(
      'apart',
      [claim('g', 'two-requests')],
      [
        { name: 'main', claims: [{ name: 'g', request: 'a' }] },
        { name: 'other', claims: [{ name: 'g', request: 'b' }] },
      ],
    ),
  );
  await phase('distinct', 'Running');
  await phase('apart', 'Running');
  t.same(limitsOnDisk().sort(), ['20/4', '30/8', limitsOnDisk().find((line) => line.includes('+'))]);
  t.same(
    limitsOnDisk()
      .filter((line) => line.includes('+'))
      .flatMap((line) => line.split('+').sort()),
    ['20/4', '30/8'],
    'one slice with both GPUs',
  );
  t.equal((await gpusOf('distinct')).length, 2);
  t.not((await gpusOf('apart', 'main')).join(), (await gpusOf('apart', 'other')).join());
  await remove('distinct', 'apart');
  await allFree();

  // `count` takes as many different GPUs.
  await cluster.apply(single('count', 'count'));
  await phase('count', 'Running');
  t.same(limitsOnDisk(), ['25/4+25/4']);
  t.equal((await gpusOf('count')).length, 2);
  await remove('count');
  await allFree();
});

test('two claims on one GPU that another container also uses are refused, with what to do', { skip }, async (t) => {
  await cluster.apply(
    claimPod(
      'twice',
      [
        { name: 'a', resourceClaimTemplateName: 'third' },
        { name: 'b', resourceClaimTemplateName: 'fifth' },
      ],
      [
        { name: 'main', claims: [{ name: 'a' }, { name: 'b' }] },
        { name: 'other', claims: [{ name: 'b' }] },
      ],
    ),
  );
  const message = await until(
    'the event',
    async () =>
      (await cluster.kubectl('get', 'events', '-o', 'jsonpath={range .items[*]}{.message}{"\\n"}{end}'))
        .split('\n')
        .find((line) => line.includes('would get GPU')) ?? null,
    60_000,
  );
  t.match(
    message,
    /container main would get GPU GPU-\S+ from claim .* and claim .*: use one request, or the constraint distinctAttribute/,
  );
  await remove('twice');
  await allFree();
});

test('allocationMode All gets every GPU of the node, and none of which a share is held', { skip }, async (t) => {
  await cluster.apply(
    template('all', [{ name: 'gpus', exactly: { deviceClassName: 'gpu.tencent.com', allocationMode: 'All' } }]),
    single('holder', 'third'),
  );
  await phase('holder', 'Running');
  await cluster.apply(single('all', 'all'));
  if (cluster.version.atLeast(37)) {
    await isUnschedulable('all');
    await remove('holder');
  } else {
    // The scheduler of 1.36 takes what is wholly free instead of waiting.
    await phase('all', 'Running');
    const [held = -1] = await gpusOf('holder');
    t.same(
      await gpusOf('all'),
      Array.from({ length: 16 }, (_, at) => at).filter((at) => at !== held),
    );
    await remove('holder', 'all');
    await allFree();
    await cluster.apply(single('all', 'all'));
  }
  await phase('all', 'Running');
  t.same(
    await gpusOf('all'),
    Array.from({ length: 16 }, (_, at) => at),
  );
  t.same(limitsOnDisk(), [new Array(16).fill('100/all').join('+')]);
  await remove('all');
  await allFree();
});

test('firstAvailable takes the first alternative that fits', { skip }, async (t) => {
  const alternative = (name: string, cores: string): object => ({
    name,
    deviceClassName: 'vgpu.tencent.com',
    capacity: { requests: { cores, memory: '1Gi' } },
    selectors: [{ cel: { expression: `device.attributes['gpu.tencent.com'].index == 0` } }],
  });
  await cluster.apply(
    template('prefer', [{ name: 'gpu', firstAvailable: [alternative('large', '60'), alternative('small', '25')] }]),
  );
  for (const name of ['first', 'second']) {
    await cluster.apply(single(name, 'prefer'));
    await phase(name, 'Running');
  }
  t.same(limitsOnDisk(), ['25/4', '60/4']);
  t.same(await gpusOf('first'), await gpusOf('second'));
  await cluster.apply(single('third-pod', 'prefer'));
  await isUnschedulable('third-pod');
  await remove('first', 'second', 'third-pod');
  await allFree();
});

test('admin access sees GPUs that others use, and takes nothing of them', { skip }, async (t) => {
  await cluster.kubectl('label', 'namespace', 'default', 'resource.kubernetes.io/admin-access=true');
  // The scheduler checks the capacity of shared devices for administrators too: the least amounts fit beside shares.
  const least = { capacity: { requests: { cores: '1', memory: '256Mi' } } };
  await cluster.apply(
    template('monitor', [
      {
        name: 'gpus',
        exactly: { deviceClassName: 'gpu.tencent.com', allocationMode: 'All', adminAccess: true, ...least },
      },
    ]),
    template('all-but-one', [whole(15)]),
    single('worker', 'third'),
  );
  await phase('worker', 'Running');
  await cluster.apply(
    single(
      'monitor',
      'monitor',
      'for d in /dev/nvidia*; do test -c $d && echo DEV=$d; done; echo READABLE; sleep 100000',
    ),
  );
  await phase('monitor', 'Running');
  t.equal((await gpusOf('monitor')).length, 16);
  t.same(limitsOnDisk(), ['30/8'], 'no slice');
  await cluster.apply(single('rest', 'all-but-one'));
  await phase('rest', 'Running');
  t.equal((await gpusOf('rest')).length, 15, 'the GPUs beside the worker can still be allocated whole');
  await remove('monitor', 'worker', 'rest');
  await cluster.kubectl('label', 'namespace', 'default', 'resource.kubernetes.io/admin-access-');
  await allFree();
});

test('several pods hold one claim until the last of them ends', { skip }, async (t) => {
  const names = ['one', 'two', 'three'];
  for (const name of names) await cluster.apply(sharing(name, 'gpu-shared'));
  for (const name of names) await phase(name, 'Running');
  t.same(limitsOnDisk(), ['40/32']);
  t.equal(new Set((await Promise.all(names.map((name) => gpusOf(name)))).map(String)).size, 1);
  await agent.restart('SIGKILL');
  await remove('one', 'two');
  t.same(limitsOnDisk(), ['40/32'], 'the third pod still uses it');
  t.equal((await phase('three', 'Running')).status.phase, 'Running');
  await remove('three');
  await allFree();
});

test('32 pods with 3 cores each run on one GPU at once', { skip }, async (t) => {
  await cluster.apply(template('sliver', [share(3, '256Mi')]));
  const names = Array.from({ length: 32 }, (_, at) => `sliver-${at}`);
  const start = performance.now();
  await cluster.apply(...names.map((name) => single(name, 'sliver')));
  await until(
    'all to run',
    async () =>
      (await cluster.kubectl('get', 'pods', '-o', 'jsonpath={.items[*].status.phase}')).split(' ').join() ===
      names.map(() => 'Running').join(),
    240_000,
  );
  t.comment(`32 pods run after ${Math.round(performance.now() - start)} ms`);
  t.same(
    limitsOnDisk(),
    names.map(() => '3/1'),
  );
  const gpus = await Promise.all(names.map((name) => gpusOf(name)));
  t.equal(new Set(gpus.map(String)).size, 1, 'all on one GPU');
  await cluster.kubectl('delete', 'pods', ...names, '--wait=true', '--timeout=120s');
  await allFree();
});

test('a claim for eight GPUs lands on the best set that is free, as the exact search finds it', { skip }, async (t) => {
  const parsed = parseMatrix(BOARDS);
  if (!parsed.ok) throw new Error(parsed.reason);
  const { topology } = parsed;
  const held = new Map<string, readonly number[]>();
  /** What the exact search of the device plugin would choose of the GPUs that are free now. */
  const exact = (count: number): number[] => {
    const taken = new Set([...held.values()].flat());
    const slots = slotsOf(16).map((slot, at) => ({ ...slot, freeCores: taken.has(at) ? 0 : 100 }));
    const placed = place(topology, slots, { cores: count * 100, memoryBytes: 0 });
    return placed.ok ? placed.gpus.map(({ index }) => index).sort((a, b) => a - b) : [];
  };
  const board = (gpus: readonly number[]): string => [...new Set(gpus.map((gpu) => Math.floor(gpu / 8)))].join('+');
  const run = async (name: string, from: string, count: number): Promise<readonly number[]> => {
    const best = exact(count);
    await cluster.apply(single(name, from));
    await phase(name, 'Running');
    const gpus = await gpusOf(name);
    held.set(name, gpus);
    t.equal(gpus.length, count, name);
    t.equal(board(gpus), board(best), `${name}: ${gpus.join()} is connected like ${best.join()}, the exact answer`);
    return gpus;
  };
  const end = async (name: string): Promise<void> => {
    await remove(name);
    held.delete(name);
  };
  await run('first-pair', 'gpu-pair', 2);
  await run('eight', 'gpu-eight', 8);
  await run('second-pair', 'gpu-pair', 2);
  t.equal(
    board([...(held.get('first-pair') ?? []), ...(held.get('second-pair') ?? [])]).length,
    1,
    'one board is whole',
  );
  await end('eight');
  await run('next-eight', 'gpu-eight', 8);
  await end('first-pair');
  await end('second-pair');
  await run('last-eight', 'gpu-eight', 8);
  t.same(
    [...held.values()].flat().sort((a, b) => a - b),
    Array.from({ length: 16 }, (_, at) => at),
  );
  await end('next-eight');
  await run('single', 'gpu-whole', 1);
  await end('last-eight');
  await run('again', 'gpu-eight', 8);
  await end('again');
  // Neither board is whole now: the last alternative takes any eight.
  const taken = held.get('single')?.[0] ?? 0;
  const other = taken < 8 ? 15 : 0;
  const uuid = (await slices())[0]?.spec.devices.find(({ attributes }) => attributes.index?.int === other);
  t.ok(uuid?.name.startsWith(deviceName('GPU-')), 'a GPU of the other board');
  const selectors = [{ cel: { expression: `device.attributes['gpu.tencent.com'].index == ${other}` } }];
  await cluster.apply(
    template('that-one', [{ name: 'gpu', exactly: { deviceClassName: 'gpu.tencent.com', selectors } }]),
    single('that-one', 'that-one'),
  );
  await phase('that-one', 'Running');
  await cluster.apply(single('any-eight', 'gpu-eight'));
  await phase('any-eight', 'Running');
  t.equal((await gpusOf('any-eight')).length, 8);
  await remove('single', 'that-one', 'any-eight');
  await allFree();
});
