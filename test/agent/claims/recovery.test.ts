import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { decodeLimits } from '../../../src/abi/limits-file.js';
import type { AgentConfig } from '../../../src/agent/config.js';
import { CHECKPOINT_FILE } from '../../../src/gpu/ledger/checkpoint.js';
import { unitId } from '../../../src/gpu/claims/names.js';
import { ClaimManager } from '../../../src/simulation/kubelet/claim-manager.js';
import { eventually } from '../../harness/eventually.js';
import { NODE_NAME } from '../cluster.js';
import { startedDraNode, type ClaimOptions, type DraNode } from './dra-node.js';

const BLOCK = 268_435_456;
const SHARE = { cores: 30, memory: '4Gi' };

const refOf = (name: string) => ({ uid: `uid-${name}`, namespace: 'team', name });

/** A node and its kubelet; `run` starts a pod whose container uses claims together. */
interface ClaimNode {
  readonly node: DraNode;
  readonly kubelet: ClaimManager;
  run(pod: string, claims: Readonly<Record<string, ClaimOptions>>): Promise<void>;
}

async function claimNode(t: Test, config?: Partial<AgentConfig>): Promise<ClaimNode> {
  const node = await startedDraNode(t, 2, {}, config);
  const kubelet = new ClaimManager(node.node.config.pluginRegistryPath);
  await kubelet.register();
  return {
    node,
    kubelet,
    async run(pod, claims) {
      const names = Object.keys(claims);
      for (const [name, options] of Object.entries(claims)) node.allocate(name, { ...options, pods: [pod] });
      node.cluster.server.seed('pods', {
        metadata: { name: pod, namespace: 'team', uid: pod },
        spec: {
          nodeName: NODE_NAME,
          resourceClaims: names.map((name) => ({ name, resourceClaimName: name })),
          containers: [{ name: 'main', resources: { claims: names.map((name) => ({ name })) } }],
        },
        status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' },
      });
      const answers = await kubelet.prepare(pod, names.map(refOf));
      t.ok(
        [...answers.values()].every(({ ok }) => ok),
        `${pod} is prepared`,
      );
    },
  };
}

interface Shown {
  readonly units: readonly string[];
  readonly slices: readonly string[];
}

/** The ledger's units, and what the running containers have: each slice's limits file with its inode. */
async function shown({ node }: ClaimNode): Promise<Shown> {
  const base = node.node.config.virtualManagerPath;
  const names = (await readdir(base)).filter((name) => /^[0-9a-f]{16}$/.test(name)).sort();
  const slices = await Promise.all(
    names.map(async (name) => {
      const path = join(base, name, 'vgpu.limits');
      const decoded = decodeLimits(await readFile(path));
      const limits = decoded.ok
        ? decoded.limits.devices.map(
            ({ share, memoryBytes }) => `${share}/${memoryBytes === null ? 'all' : memoryBytes / BLOCK}`,
          )
        : [decoded.reason];
      return `${name} inode ${(await stat(path)).ino}: ${limits.join()}`;
    }),
  );
  const units = [...node.agent.allocator.state.units.values()].map(
    ({ claim, slice, devices, consumers, phase, softLimit, isAssumed }) =>
      `${claim.name} of ${consumers.map(({ podUid, container }) => `${podUid}/${container}`).join()} in ${slice}: ${phase}, ${devices
        .map(({ cores, memoryBlocks }) => `${cores}/${memoryBlocks}`)
        .join()}, soft ${softLimit}${isAssumed === true ? ', assumed' : ''}`,
  );
  return { units: units.sort(), slices };
}

/** Stops the agent, loses its checkpoint, and starts it again. */
async function startWithoutCheckpoint({ node }: ClaimNode, lose: () => Promise<void> = async () => {}): Promise<void> {
  await node.node.stopAgent();
  await node.loseCheckpoint();
  await lose();
  await node.node.startAgent();
}

const loseRecords = ({ node }: ClaimNode): Promise<void> =>
  rm(join(node.node.config.virtualManagerPath, '.claims'), { recursive: true });

const soft = [
  {
    source: 'FromClaim',
    requests: [],
    opaque: {
      driver: 'gpu.tencent.com',
      parameters: { apiVersion: 'gpu.tencent.com/v1', kind: 'SliceConfig', softLimit: 60 },
    },
  },
];

for (const away of [true, false])
  test(`without a checkpoint every unit keeps its amounts, slice and containers while the API server is ${away ? 'away' : 'there'}`, async (t) => {
    const claims = await claimNode(t);
    await claims.run('joined', { a: { ...SHARE, configs: soft }, b: { ...SHARE, cores: 20, device: 1 } });
    await claims.run('same-gpu', { c: { cores: 10, memory: '1Gi' }, d: { cores: 5, memory: '1Gi' } });
    const before = await shown(claims);
    t.equal(before.slices.length, 2, 'a container has one slice');
    const { server } = claims.node.cluster;
    if (away) await server.stop();
    await startWithoutCheckpoint(claims);
    t.same(await shown(claims), before, 'after the start');
    await claims.node.agent.allocator.reconcile();
    t.same(await shown(claims), before, 'after the ledger was compared');
    if (away) await server.start();
    claims.kubelet.restart();
    await claims.kubelet.register();
    for (const [pod, ...names] of [
      ['joined', 'a', 'b'],
      ['same-gpu', 'c', 'd'],
    ] as const)
      t.ok([...(await claims.kubelet.prepare(pod, names.map(refOf))).values()].every(({ ok }) => ok));
    t.same(await shown(claims), before, 'after the kubelet prepared the claims again');
    await claims.kubelet.unprepare('joined');
    await claims.kubelet.unprepare('same-gpu');
    t.same(await shown(claims), { units: [], slices: [] });
    t.same(await readdir(join(claims.node.node.config.virtualManagerPath, '.claims')), []);
  });

test('without checkpoint and records the API server names amounts, containers and joined slices', async (t) => {
  const claims = await claimNode(t);
  await claims.run('joined', { a: SHARE, b: { ...SHARE, cores: 20, device: 1 } });
  const before = await shown(claims);
  await startWithoutCheckpoint(claims, () => loseRecords(claims));
  t.same(await shown(claims), before);
});

test('with the kubelet and the limits of the slice alone, a unit has what enforces it until the API server answers', async (t) => {
  const claims = await claimNode(t, { allocationCheckPeriodMs: 200 });
  await claims.run('joined', { a: SHARE, b: { ...SHARE, cores: 20 } });
  const before = await shown(claims);
  const { server } = claims.node.cluster;
  await server.stop();
  await startWithoutCheckpoint(claims, () => loseRecords(claims));
  const assumed = await shown(claims);
  t.same(assumed.slices, before.slices, 'the containers keep slice and limits');
  t.match(assumed.units.join('\n'), /prepared, 50\/32, soft null, assumed\n.*prepared, 0\/0, soft null, assumed/);
  await server.start();
  await eventually(async () => (await shown(claims)).units.join() === before.units.join(), 'the amounts to be known');
  t.same(await shown(claims), before);
});

test('a claim whose limits file is lost too is booked as whole GPUs until the API server answers', async (t) => {
  const claims = await claimNode(t, { allocationCheckPeriodMs: 200 });
  await claims.run('pod', { a: SHARE });
  const { server } = claims.node.cluster;
  await server.stop();
  await startWithoutCheckpoint(claims, () =>
    rm(claims.node.node.config.virtualManagerPath, { recursive: true, force: true }),
  );
  t.same(claims.node.booked(), ['100/64']);
  await server.start();
  await eventually(() => claims.node.booked().join() === '30/16', 'the amounts to be known');
  await eventually(async () => / 30\/16$/.test((await shown(claims)).slices.join()), 'the limits to follow');
});

test('after a change to plugin mode without a checkpoint, claims keep their GPUs and no pod of the device plugin gets one', async (t) => {
  const claims = await claimNode(t);
  await claims.run('pod', { a: SHARE });
  const before = await shown(claims);
  const { node } = claims;
  await startWithoutCheckpoint(claims, async () => {
    Object.assign(node.node.config, { allocation: 'plugin' });
  });
  t.same(await shown(claims), before);
  t.same(node.agent.allocator.devices('core'), [], 'the device plugin offers no GPU before all claims are known');
  await claims.kubelet.register();
  await claims.kubelet.unprepare('pod');
  t.same(await shown(claims), { units: [], slices: [] });
});

test('after the kubelet lost its claims, units stay while their claims are allocated, with and without a checkpoint', async (t) => {
  const claims = await claimNode(t);
  await claims.run('stays', { a: SHARE });
  await claims.run('gone', { b: SHARE });
  const { node } = claims;
  const before = await shown(claims);
  const loseKubelet = (): Promise<void> =>
    writeFile(join(node.directory, 'k/dra_manager_state'), '{"Data":"{\\"ClaimInfoStateList\\":[]}","Checksum":1}');
  await node.node.stopAgent();
  await loseKubelet();
  await node.node.startAgent();
  t.same(await shown(claims), before, 'with the checkpoint');
  node.cluster.server.remove('resourceclaims', 'team', 'b');
  await startWithoutCheckpoint(claims, loseKubelet);
  t.same(node.booked(), ['30/16'], 'a claim that is deleted leaves the ledger, the other one stays');
  t.notOk(existsSync(join(node.node.config.virtualManagerPath, unitId('uid-b', 'gpu'))));
  t.same(await readdir(join(node.node.config.virtualManagerPath, '.claims')), [
    unitId('uid-a', 'gpu'),
    `${unitId('uid-a', 'gpu')}.metadata.json`,
  ]);
});

test('records that are damaged, or of an earlier allocation, count as lost', async (t) => {
  const claims = await claimNode(t);
  await claims.run('pod', { a: SHARE });
  await claims.run('other', { b: { ...SHARE, device: 1 } });
  const before = await shown(claims);
  const path = (name: string): string =>
    join(claims.node.node.config.virtualManagerPath, '.claims', unitId(`uid-${name}`, 'gpu'));
  await startWithoutCheckpoint(claims, async () => {
    await writeFile(path('a'), (await readFile(path('a'), 'utf8')).replace('"cores":30', '"cores":10'));
    await writeFile(path('b'), await readFile(path('a'), 'utf8'));
  });
  t.same(await shown(claims), before);
});

test('a release that the checkpoint lacks is made up for after a start, once two answers agree', async (t) => {
  const claims = await claimNode(t, { allocationCheckPeriodMs: 200 });
  await claims.run('pod', { a: SHARE });
  const { node } = claims;
  const checkpoint = join(node.node.config.checkpointPath, CHECKPOINT_FILE);
  const old = await readFile(checkpoint);
  await claims.kubelet.unprepare('pod');
  node.cluster.server.remove('resourceclaims', 'team', 'a');
  await node.node.stopAgent();
  await writeFile(checkpoint, old);
  await node.node.startAgent();
  const directory = join(node.node.config.virtualManagerPath, unitId('uid-a', 'gpu'));
  await eventually(() => node.booked().length === 0 && !existsSync(directory), 'the claim to be freed');
});

test('a start removes specifications that a killed agent was writing, and no file of another program', async (t) => {
  const { node } = await claimNode(t);
  const { cdiPath } = node.node.config;
  await node.node.stopAgent();
  await mkdir(cdiPath, { recursive: true });
  for (const name of ['.tencent.com-vcuda_f95ba2f2b0329f36.json.7.tmp', '.nvidia.com-gpu.json.7.tmp'])
    await writeFile(join(cdiPath, name), '{');
  await node.node.startAgent();
  t.same(await readdir(cdiPath), ['.nvidia.com-gpu.json.7.tmp']);
});
