import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { nativeSkipReason, PROBE, simulatedHost } from '../containers/simulated-host.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { importImage } from './image.js';
import { podManifest } from './pods.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';

const IMAGE = 'docker.io/local/probe:1';
const CORES = 30;
const BLOCKS = 4;
const LIMIT_MIB = BLOCKS * 256;

const cluster = new TestCluster();

tap.setTimeout(timeLimit(900_000));

/** Runs the probe in every way in which an application may start it. */
const COMMAND = [
  `echo FIRST; ${PROBE} total; ${PROBE} memory; ${PROBE} share 400`,
  `echo EMPTY; env -i ${PROBE} total; env -i ${PROBE} memory; env -i ${PROBE} share 400`,
  'echo DONE; exec sleep 100000',
].join('; ');

interface Found {
  readonly totalMib: number;
  readonly allocatedMib: number;
  readonly refusal: number;
  readonly sharePercent: number;
}

function read(text: string): Found {
  const number = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? NaN);
  return {
    totalMib: number(/^total (\d+)$/m),
    allocatedMib: number(/^memory (\d+) result/m),
    refusal: number(/^memory \d+ result (\d+)$/m),
    sharePercent: number(/^share (\d+)$/m),
  };
}

test('a CUDA program in a pod is limited to its slice', { skip: nativeSkipReason() }, async (t) => {
  const scratch = mkdtempSync(join(tmpdir(), 'gm-'));
  t.teardown(() => rmSync(scratch, { recursive: true, force: true }));
  const { files, config } = await simulatedHost(scratch);
  importImage(cluster.containerdSocket, IMAGE, files);
  const agent = new AgentProcess(cluster, '{"gpus":[{},{}]}', [
    `--volume-config=${config.volumeConfigPath}`,
    `--host-root=${config.hostRoot}`,
    `--native-path=${config.nativePath}`,
  ]);
  t.teardown(() => agent.stop());
  await agent.start();

  for (const { name, user, readOnlyRoot } of [
    { name: 'as-root', user: 0, readOnlyRoot: false },
    { name: 'as-user', user: 1000, readOnlyRoot: true },
  ]) {
    const gpu = join(scratch, name);
    mkdirSync(gpu);
    chmodSync(gpu, 0o1777);
    const container = {
      name: 'main',
      cores: CORES,
      memoryBlocks: BLOCKS,
      command: COMMAND,
      image: IMAGE,
      user,
      readOnlyRoot,
    };
    await cluster.apply(podManifest(name, [{ ...container, directories: { [`/dev/shm/gpu-sim-${user}`]: gpu } }]));
    const log = await until(`${name} to have ended`, async () => {
      const text = await cluster.kubectl('logs', name);
      return /^DONE$/m.test(text) && text;
    });
    const second = await cluster.kubectl(
      'exec',
      name,
      '--',
      'sh',
      '-c',
      `${PROBE} total; ${PROBE} memory; ${PROBE} share 400`,
    );
    const [, first = '', empty = ''] = log.split(/^(?:FIRST|EMPTY)$/m);
    for (const [way, text] of [
      ['as the first process', first],
      ['with an empty environment', empty],
      ['started by exec', second],
    ] as const) {
      const found = read(text);
      t.equal(found.totalMib, LIMIT_MIB, `${name}, ${way}: sees its slice`);
      t.equal(found.refusal, 2, `${name}, ${way}: is refused memory over its limit`);
      t.ok(found.allocatedMib > 0 && found.allocatedMib <= LIMIT_MIB, `${name}, ${way}: got ${found.allocatedMib} MiB`);
      t.ok(
        found.sharePercent > 0 && found.sharePercent < 1.5 * CORES,
        `${name}, ${way}: used ${found.sharePercent} % of the GPU`,
      );
    }
    await cluster.removePods(name);
  }
});
