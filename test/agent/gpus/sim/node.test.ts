import fc from 'fast-check';
import { test } from 'tap';
import { parseSimNode, printSimNode, type SimNode } from '../../../../src/agent/gpus/sim/node.js';

function node(text: string): SimNode {
  const result = parseSimNode(text);
  if (!result.ok) throw new Error(result.reason);
  return result.node;
}

function refused(document: unknown): string {
  const result = parseSimNode(typeof document === 'string' ? document : JSON.stringify(document));
  return result.ok ? 'read without complaint' : result.reason;
}

test('an empty GPU gets every default', (t) => {
  const { driverVersion, cudaVersion, gpus, topology } = node('{"gpus": [{}, {}]}');
  t.equal(driverVersion, '580.95.05');
  t.equal(cudaVersion, 13000);
  t.match(gpus[1], {
    index: 1,
    minor: 1,
    uuid: 'GPU-00000001-0000-0000-0000-000000000001',
    pciBusId: '00000000:05:00.0',
    model: 'Tesla V100-SXM2-16GB',
    memoryBytes: 16384 * 1024 * 1024,
    multiprocessors: 80,
    computeCapability: '7.0',
    numaNode: null,
  });
  t.same(topology, {
    levels: [
      ['X', 'PHB'],
      ['PHB', 'X'],
    ],
    nvlinks: [
      [0, 0],
      [0, 0],
    ],
  });
  t.end();
});

test('given values are used', (t) => {
  const text = JSON.stringify({
    driverVersion: '550.1',
    cudaVersion: 12040,
    gpus: [
      {
        uuid: 'GPU-aaaaaaaa-0000-0000-0000-00000000000f',
        model: 'NVIDIA H200',
        memoryMiB: 143771,
        minor: 7,
        numaNode: 1,
      },
      { minor: 3, numaNode: 1 },
    ],
    links: [
      ['X', 'NV18'],
      ['NV18', 'X'],
    ],
  });
  const { gpus, topology } = node(text);
  t.match(gpus[0], { minor: 7, model: 'NVIDIA H200', memoryBytes: 143771 * 1024 * 1024, numaNode: 1 });
  t.same(topology, {
    levels: [
      ['X', 'NODE'],
      ['NODE', 'X'],
    ],
    nvlinks: [
      [0, 18],
      [18, 0],
    ],
  });
  t.end();
});

test('a matrix of nvidia-smi becomes a node of default GPUs', (t) => {
  const { gpus, topology } = node('GPU0 GPU3 NUMA Affinity\nGPU0 X PIX 1\nGPU3 PIX X 1\n');
  t.same(
    gpus.map((gpu) => [gpu.index, gpu.minor, gpu.numaNode]),
    [
      [0, 0, 1],
      [1, 1, 1],
    ],
  );
  t.equal(topology.levels[0]?.[1], 'PIX');
  t.end();
});

test('an error is one line that names the place', (t) => {
  t.match(refused('{"gpus": ['), /^not JSON: /);
  t.equal(refused({}), 'gpus: expected a list, got nothing');
  t.equal(refused({ gpus: [] }), 'gpus: expected 1 to 16 GPUs, got []');
  t.equal(refused({ gpus: [3] }), 'gpus[0]: expected an object, got 3');
  t.equal(
    refused({ gpus: [{}, { memoryMiB: 'much' }] }),
    'gpus[1].memoryMiB: expected an integer from 1 to 16777216, got "much"',
  );
  t.match(
    refused({ gpus: [{ uuid: 'GPU-1' }] }),
    /^gpus\[0\].uuid: expected a text like GPU-00000000-.*, got "GPU-1"$/,
  );
  t.match(
    refused({ gpus: [{}, { uuid: 'GPU-00000000-0000-0000-0000-000000000000' }] }),
    /^gpus\[1\].uuid: expected a value of its own, not that of gpus\[0\]/,
  );
  t.match(refused({ gpus: [{}, { minor: 0 }] }), /^gpus\[1\].minor: expected a value of its own/);
  t.equal(refused({ gpus: [{}, {}], links: [['X', 'PIX']] }), 'links: expected 2 rows, got [["X","PIX"]]');
  t.equal(
    refused({
      gpus: [{}, {}],
      links: [
        ['X', 'PIX'],
        ['PXB', 'X'],
      ],
    }),
    'links[0][1]: expected the label of links[1][0], got "PIX"',
  );
  t.equal(
    refused({
      gpus: [{}, {}],
      links: [
        ['X', 'X'],
        ['X', 'X'],
      ],
    }),
    'links[0][1]: expected a connection, X is for the diagonal, got "X"',
  );
  t.equal(
    refused({
      gpus: [{}, {}],
      links: [
        ['X', 'NV0'],
        ['NV0', 'X'],
      ],
    }),
    'links[0][1]: expected X, PIX, PXB, PHB, NODE, SYS or NV<n>, got "NV0"',
  );
  t.equal(refused('what is this'), 'line 1: no line of column names (GPU0 GPU1 ...) found');
  t.match(
    refused(
      `${Array.from({ length: 17 }, (_, at) => `GPU${at}`).join(' ')}\n${Array.from({ length: 17 }, (_, a) => `GPU${a} ${Array.from({ length: 17 }, (_other, b) => (a === b ? 'X' : 'SYS')).join(' ')}`).join('\n')}`,
    ),
    /^17 GPUs/,
  );
  t.end();
});

test('a printed node reads back as itself', (t) => {
  for (const text of [
    '{"gpus":[{}]}',
    '{"gpus":[{"numaNode":0},{"numaNode":1}],"links":[["X","NV2"],["NV2","X"]]}',
    'GPU0 GPU1\nGPU0 X PXB\nGPU1 PXB X',
  ]) {
    t.same(node(printSimNode(node(text))), node(text));
  }
  t.end();
});

test('any document is read, or refused with an error of one line', (t) => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc
          .record({ gpus: fc.array(fc.object({ maxDepth: 2 }), { maxLength: 4 }), links: fc.anything() })
          .map((value) => JSON.stringify(value)),
      ),
      (text) => {
        const result = parseSimNode(text);
        return result.ok || (result.reason !== '' && !result.reason.includes('\n'));
      },
    ),
    { numRuns: 300 },
  );
  t.pass('300 documents');
  t.end();
});
