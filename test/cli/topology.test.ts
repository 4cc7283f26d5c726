import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { scratchDirectory } from '../scratch.js';
import { command as order, noCompiler, oddLibrary } from '../agent/gpus/nvidia/odd-library.js';
import { MAIN } from '../harness/programs.js';
import { Commands, type Ended } from './commands.js';

const commands = new Commands();

tap.teardown(() => commands.close());

const run = (args: readonly string[], input = ''): Promise<Ended> =>
  commands.gpuManager(['topology', ...args], { input });

/** In a process of its own, which loads a library of the driver. */
async function runApart(...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, 'topology', ...args]);
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, out, err };
}

const PAIRS = ` GPU0 GPU1 GPU2 GPU3
GPU0 X NV4 SYS SYS
GPU1 NV4 X SYS SYS
GPU2 SYS SYS X PIX
GPU3 SYS SYS PIX X
`;

test('topology shows a matrix with its levels, its tree and the result of each request', async (t) => {
  const { code, out } = await run(['-'], PAIRS);
  t.equal(code, 0);
  t.equal(
    out,
    `      GPU0  GPU1  GPU2  GPU3
GPU0   X    NV4   SYS   SYS
GPU1  NV4    X    SYS   SYS
GPU2  SYS   SYS    X    PIX
GPU3  SYS   SYS   PIX    X
PIX   one PCIe bridge between them
SYS   the link between NUMA nodes
NV#   # NVLinks; the PCIe level below them is in the tree

|---SYS
|   |---GPU0
|   |---GPU1
|   |---PIX
|   |   |---GPU2
|   |   |---GPU3

free: 0, 1, 2, 3
1 of them: GPU 2
2 of them: GPU 0, 1, score 400 (GPU0-GPU1 NV4)
3 of them: GPU 0, 1, 2, score 420 (GPU0-GPU1 NV4, GPU0-GPU2 SYS, GPU1-GPU2 SYS)
4 of them: GPU 0, 1, 2, 3, score 490 (GPU0-GPU1 NV4, GPU0-GPU2 SYS, GPU0-GPU3 SYS, GPU1-GPU2 SYS, GPU1-GPU3 SYS, GPU2-GPU3 PIX)
`,
  );
});

test('topology answers what-if questions about GPUs in use and one count, also as JSON', async (t) => {
  const { code, out } = await run(['-', '--free', '0,2,3', '-k', '2', '-o', 'json'], PAIRS);
  t.equal(code, 0);
  t.match(JSON.parse(out), {
    gpus: [{ index: 0, numaNode: null }, { index: 1 }, { index: 2 }, { index: 3 }],
    free: [0, 2, 3],
    chosen: [{ count: 2, gpus: [2, 3], score: 50, pairs: ['GPU2-GPU3 PIX'] }],
    notes: [],
  });
});

test('topology makes the description of a simulated node from a matrix, and shows it', async (t) => {
  const made = await run(['-', '--as-node'], PAIRS);
  t.equal(made.code, 0);
  const node = parseSimNode(made.out);
  t.ok(node.ok && node.node.gpus.length === 4);
  const file = join(await scratchDirectory(t), 'node.json');
  writeFileSync(file, made.out);
  const shown = await run([file]);
  t.equal(shown.code, 0);
  t.match(shown.out, '|---GPU0 Tesla V100-SXM2-16GB 00000000:04:00.0');
});

test('a request that cannot be met fails, and unreadable input is a usage error', async (t) => {
  const tooMany = await run(['-', '-k', '5'], PAIRS);
  t.same([tooMany.code, tooMany.err], [1, 'gpu-manager: 5 GPUs are not available: 4 are free\n']);
  const noMatrix = await run(['-'], 'No devices were found\n');
  t.same(
    [noMatrix.code, noMatrix.err],
    [2, 'gpu-manager: topology: -: line 1: no line of column names (GPU0 GPU1 ...) found\n'],
  );
  const noFile = await run(['/nowhere/matrix.txt']);
  t.same(
    [noFile.code, noFile.err],
    [2, 'gpu-manager: topology: /nowhere/matrix.txt: there is no such file or directory\n'],
  );
  const noGpu = await run(['-', '--free', '1,7'], PAIRS);
  t.same([noGpu.code, noGpu.err], [2, 'gpu-manager: topology: --free: there is no GPU 7, only 0, 1, 2, 3\n']);
  for (const wrong of [
    ['--free', 'all'],
    ['-k', '0'],
    ['-o', 'xml'],
  ]) {
    t.equal((await run(['-', ...wrong], PAIRS)).code, 2, wrong.join(' '));
  }
  t.match(await run(['--as-node']), { code: 2, err: 'gpu-manager: topology: --as-node needs a file\n' });
});

test('without a file, topology reads this machine through its driver', { skip: noCompiler }, async (t) => {
  order('cards 2');
  const { code, out } = await runApart('--nvml-library', oddLibrary, '-o', 'json');
  t.equal(code, 0);
  t.match(JSON.parse(out), {
    gpus: [{ index: 0, model: 'Odd GPU', pciBusId: '00000000:3A:00.0' }, { index: 1 }],
    links: [
      ['X', 'NV2'],
      ['NV2', 'X'],
    ],
  });
});

test(
  'a GPU whose calls never return delays neither the answer nor the end of the command',
  { skip: noCompiler },
  async (t) => {
    order('cards 2', 'hang 1');
    const { code, out, err } = await runApart('--nvml-library', oddLibrary, '-o', 'json');
    order();
    t.same([code, err], [0, '']);
    t.match(JSON.parse(out), { gpus: [{ index: 0 }], free: [0] });
    t.match(out, 'GPU 1 does not answer and is excluded: GPU 1 does not answer within 5000 ms');
  },
);

test('topology reports that a machine has no driver', async (t) => {
  const { code, err } = await runApart('--nvml-library', '/nowhere/libnvidia-ml.so.1');
  t.equal(code, 1);
  t.match(err, /^gpu-manager: the NVIDIA management library cannot be opened \(\/nowhere\/libnvidia-ml.so.1: /);
});
