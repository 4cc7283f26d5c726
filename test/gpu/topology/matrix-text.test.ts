import fc from 'fast-check';
import { test } from 'tap';
import { LEVELS } from '../../../src/gpu/topology/level.js';
import { parseMatrix, type MatrixResult } from '../../../src/gpu/topology/matrix-text.js';
import { levelBetween, linksBetween, topologyOfPairs, type Topology } from '../../../src/gpu/topology/topology.js';
import { CUBE_MESH, T6 } from './machines.js';

type Parsed = Extract<MatrixResult, { ok: true }>;

function parsed(text: string): Parsed {
  const result = parseMatrix(text);
  if (!result.ok) throw new Error(result.reason);
  return result;
}

function refused(text: string): string {
  const result = parseMatrix(text);
  return result.ok ? 'read without complaint' : result.reason;
}

/** A matrix in the layout of `nvidia-smi topo -m`. */
function render(topology: Topology, separator = '\t'): string {
  const positions = [...topology.levels.keys()];
  const label = (a: number, b: number) => {
    const links = linksBetween(topology, a, b);
    return links > 0 ? `NV${links}` : a === b ? ' X ' : levelBetween(topology, a, b);
  };
  const header = ['', ...positions.map((position) => `GPU${position}`)].join(separator);
  return [header, ...positions.map((a) => [`GPU${a}`, ...positions.map((b) => label(a, b))].join(separator))].join(
    '\n',
  );
}

const BRIDGED_PAIR = `
\t\u001b[4mGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u001b[0m
GPU0\t X \tNV4\tSYS\tPXB\tSYS\t0-23,48-71\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tPXB\tSYS\t0-23,48-71\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tSYS\tPIX\t24-47,72-95\t1-3\t\tN/A
NIC0\tPXB\tPXB\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tSYS\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
`;

test('the reader accepts tabs, NICs, affinities, an underlined header and legends', (t) => {
  const { gpus, topology } = parsed(BRIDGED_PAIR);
  t.same(gpus, [
    { index: 0, cpuAffinity: '0-23,48-71', numaNode: 0 },
    { index: 1, cpuAffinity: '0-23,48-71', numaNode: 0 },
    { index: 2, cpuAffinity: '24-47,72-95', numaNode: 1 },
  ]);
  t.same(topology.nvlinks, [
    [0, 4, 0],
    [4, 0, 0],
    [0, 0, 0],
  ]);
  t.equal(topology.levels[0]?.[2], 'SYS');
  t.end();
});

test('the PCIe level hidden by NVLink is inferred from the devices near both GPUs', (t) => {
  t.equal(parsed(BRIDGED_PAIR).topology.levels[0]?.[1], 'PXB', 'both GPUs are PXB from NIC0');
  const [header, ...rows] = ['     GPU0  GPU1  CPU Affinity', 'GPU0  X  NV2  0-7', 'GPU1  NV2  X  0-7'];
  t.equal(parsed([header, ...rows].join('\n')).topology.levels[0]?.[1], 'NODE', 'both GPUs are on one socket');
  const apart = [header, rows[0], 'GPU1  NV2  X  8-15'].join('\n');
  t.equal(parsed(apart).topology.levels[0]?.[1], 'SYS', 'the GPUs are on two sockets');
  t.equal(parsed(' GPU0 GPU1\nGPU0 X NV2\nGPU1 NV2 X').topology.levels[0]?.[1], 'SYS', 'the matrix has no hint');
  t.end();
});

test('the reader accepts irregular blanks, a preceding prompt and trailing blanks', (t) => {
  const text =
    '$ nvidia-smi topo -m\n\n  GPU0    GPU1  mlx5_0 CPU Affinity  \nGPU0   X  PHB    NODE    0-7   \n GPU1  PHB X SYS 0-7\nmlx5_0 NODE SYS X\n';
  const { gpus, topology } = parsed(text);
  t.equal(gpus.length, 2);
  t.equal(topology.levels[1]?.[0], 'PHB');
  t.equal(gpus[1]?.cpuAffinity, '0-7');
  t.end();
});

test('the reader accepts Windows line ends', (t) => {
  t.same(parsed(render(T6).replaceAll('\n', '\r\n')).topology, T6);
  t.end();
});

test('the reader reads SOC of old drivers as the link between sockets', (t) => {
  t.equal(parsed('\tGPU0\tGPU1\nGPU0\t X \tSOC\nGPU1\tSOC\t X \n').topology.levels[0]?.[1], 'SYS');
  t.end();
});

test('the reader knows every level name', (t) => {
  for (const level of LEVELS.slice(1)) {
    const { topology } = parsed(` GPU0 GPU1\nGPU0 X ${level}\nGPU1 ${level} X`);
    t.equal(topology.levels[0]?.[1], level);
  }
  t.end();
});

test('the reader accepts a matrix of one GPU', (t) => {
  const { gpus, topology } = parsed('\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\tN/A\t\tN/A\n');
  t.same(gpus, [{ index: 0, cpuAffinity: '0-15', numaNode: null }]);
  t.same(topology, { levels: [['X']], nvlinks: [[0]] });
  t.end();
});

test('GPU names may have gaps', (t) => {
  const { gpus, topology } = parsed(' GPU1 GPU4 GPU6\nGPU1 X PIX SYS\nGPU4 PIX X SYS\nGPU6 SYS SYS X');
  t.same(
    gpus.map((gpu) => gpu.index),
    [1, 4, 6],
  );
  t.equal(topology.levels[0]?.[1], 'PIX');
  t.end();
});

test('NICs between GPU columns are recognised by name', (t) => {
  const { topology } = parsed(' GPU0 mlx5_0 GPU1\nGPU0 X PIX PXB\nmlx5_0 PIX X PXB\nGPU1 PXB PXB X');
  t.same(topology.levels, [
    ['X', 'PXB'],
    ['PXB', 'X'],
  ]);
  t.end();
});

test('an empty CPU affinity does not shift the NUMA column', (t) => {
  const { gpus } = parsed('\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t3\t\n');
  t.same(gpus, [{ index: 0, cpuAffinity: null, numaNode: 3 }]);
  t.end();
});

test('an error names its line', (t) => {
  t.equal(refused(''), 'line 1: no line of column names (GPU0 GPU1 ...) found');
  t.equal(refused('No devices were found'), 'line 1: no line of column names (GPU0 GPU1 ...) found');
  t.equal(refused(' GPU0 GPU1\nGPU0 X PIX'), 'line 1: column GPU1 has no row');
  t.equal(refused(' GPU0 GPU0\n'), 'line 1: column GPU0 appears twice');
  t.equal(refused(' GPU0 GPU1\nGPU0 X PIX\nGPU0 X PIX'), 'line 3: row GPU0 appears twice');
  t.equal(refused(' GPU0 GPU1\nGPU0 X\n'), 'line 2: GPU0 has 1 cells for 2 columns');
  t.equal(refused(' GPU0 GPU1\nGPU0 X QPI\n'), 'line 2: GPU0 to GPU1 is "QPI", which is not a known connection');
  t.equal(refused(' GPU0 GPU1\nGPU0 X NV0\n'), 'line 2: GPU0 to GPU1 is "NV0", which is not a known connection');
  t.equal(refused(' GPU0 GPU1\nGPU0 PIX X\n'), 'line 2: GPU0 to GPU0 is "PIX"');
  t.equal(refused(' GPU0 GPU1\nGPU0 X PIX\nGPU1 PXB X'), 'line 3: GPU1 to GPU0 is PXB, but PIX in line 2');
  t.equal(refused(' GPU0 GPU1\nGPU0 X NV2\nGPU1 NV3 X'), 'line 3: GPU1 to GPU0 is NV3, but NV2 in line 2');
  t.equal(refused(' GPU0\nGPU0 X\nGPU7 SYS'), 'line 3: row GPU7 has no column');
  t.match(refused(` ${Array.from({ length: 300 }, (_, at) => `GPU${at}`).join(' ')}`), /^line 1: 300 columns/);
  t.end();
});

test('the reader returns any matrix that was printed', (t) => {
  const machine = fc.integer({ min: 1, max: 9 }).chain((count) =>
    fc
      .array(fc.record({ level: fc.constantFrom(...LEVELS.slice(1)), nvlinks: fc.constant(0) }), {
        minLength: 81,
        maxLength: 81,
      })
      .map((pairs) => topologyOfPairs(count, (a, b) => pairs[a * 9 + b] ?? { level: 'SYS', nvlinks: 0 })),
  );
  fc.assert(
    fc.property(machine, fc.constantFrom('\t', '   ', ' \t '), (topology, separator) => {
      t.same(parsed(render(topology, separator)).topology, topology);
    }),
    { numRuns: 100 },
  );
  t.same(parsed(render(CUBE_MESH)).topology.nvlinks, CUBE_MESH.nvlinks);
  t.end();
});

test('the reader refuses foreign text without an unexpected exception', (t) => {
  const base = BRIDGED_PAIR;
  const damaged = fc
    .tuple(fc.nat(base.length), fc.nat(base.length), fc.string({ maxLength: 20 }))
    .map(([from, to, noise]) => base.slice(0, Math.min(from, to)) + noise + base.slice(Math.max(from, to)));
  fc.assert(
    fc.property(fc.oneof(damaged, fc.string({ maxLength: 400 })), (text) => {
      const result = parseMatrix(text);
      if (!result.ok) return result.reason.startsWith(`line ${result.line}: `) && !result.reason.includes('\n');
      return result.gpus.length === result.topology.levels.length;
    }),
    { numRuns: 500 },
  );
  t.pass('the test covers 500 texts');
  t.end();
});

/** A matrix without NICs, so that the text ends with the rows of GPUs. */
const GPUS_LAST = [
  '\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID',
  'NIC0\tPXB\tPXB\tSYS\tSYS\t X \t\t\t\t',
  'GPU0\t X \tNV4\tSYS\tSYS\tPXB\t0-23,48-71\t0\t\tN/A',
  'GPU1\tNV4\t X \tSYS\tSYS\tPXB\t0-23,48-71\t0\t\tN/A',
  'GPU2\tSYS\tSYS\t X \tNV4\tSYS\t24-47,72-95\t10\t\tN/A',
  'GPU3\tSYS\tSYS\tNV4\t X \tSYS\t24-47,72-95\t10\t\tN/A',
].join('\n');

test('a matrix that is truncated anywhere is refused or has the same content', (t) => {
  const legend = '\n\nLegend:\n\n  X    = Self\n';
  const texts = [
    GPUS_LAST + legend,
    GPUS_LAST.replaceAll('\t\t', '\t').replaceAll('\t', '    ') + legend,
    BRIDGED_PAIR,
    '     GPU0  GPU1  CPU Affinity\nGPU0  X  NV2  0-7,16-23\nGPU1  NV2  X  0-7,16-23\n',
    '\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\tN/A\t\tN/A\n',
  ];
  for (const text of texts) {
    const whole = parsed(text);
    const wrong: string[] = [];
    for (let length = 0; length < text.length; length++) {
      const part = parseMatrix(text.slice(0, length));
      if (part.ok && JSON.stringify(part) !== JSON.stringify(whole)) wrong.push(text.slice(length - 12, length));
    }
    t.same(wrong, []);
  }
  t.end();
});

test('the error names what is missing', (t) => {
  const cut = (bytes: number) => refused(GPUS_LAST.slice(0, -bytes));
  t.match(
    cut(1),
    /^line 6: the text ends within the row of GPU3: "N\/" is only the beginning of a cell such as "N\/A"$/,
  );
  t.match(cut(5), /the row of GPU3: 2 of 3 cells follow its connections/);
  t.match(cut(9), /the row of GPU3: 1 of 3 cells/);
  t.equal(parsed(GPUS_LAST).gpus.length, 4, 'the line end is missing, and all cells are present');
  t.match(
    refused(' GPU0 GPU1 CPU Affinity\nGPU0 X SYS 0-31\nGPU1 SYS X 32-6'),
    /"32-6" is not a list of CPUs, a NUMA node or N\/A/,
  );
  t.end();
});
