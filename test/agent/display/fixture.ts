import { History } from '../../../src/agent/display/history.js';
import { HttpServer, type HttpServerOptions } from '../../../src/agent/display/http-server.js';
import { Journal } from '../../../src/agent/node/journal.js';
import { LiveFeed } from '../../../src/agent/display/live-feed.js';
import { nodeMetrics } from '../../../src/agent/display/metrics.js';
import { CallTimes } from '../../../src/agent/node/call-times.js';
import { NODE_PAGE } from '../../../src/agent/display/node-page.js';
import { readPageFiles } from '../../../src/page/page-files.js';
import type {
  AllocationSnapshot,
  GpuSnapshot,
  NodeSnapshot,
  NodeView,
  SliceSnapshot,
} from '../../../src/agent/node/view.js';
import { momentOf } from '../../../src/agent/node/use-record.js';
import { DENIED_APIS } from '../../../src/abi/usage-file.js';
import { parseMatrix } from '../../../src/gpu/topology/matrix-text.js';
import { buildTree } from '../../../src/gpu/topology/tree.js';
import type { Topology } from '../../../src/gpu/topology/topology.js';
import { systemClock, type Clock } from '../../../src/host/clock.js';
import { silentLog, type Log } from '../../../src/host/log.js';

export const GIB = 2 ** 30;

export function gpu(index: number, changes: Partial<GpuSnapshot> = {}): GpuSnapshot {
  return {
    index,
    uuid: `GPU-${String(index).padStart(8, '0')}-0000-0000-0000-000000000000`,
    model: 'NVIDIA H200',
    pciBusId: `00000000:${(4 + index).toString(16).toUpperCase().padStart(2, '0')}:00.0`,
    numaNode: null,
    memoryBytes: 16 * GIB,
    usable: true,
    health: { status: 'healthy', reason: null, sinceMs: 0 },
    allocatedCores: 0,
    allocatedMemoryBytes: 0,
    usedPercent: 0,
    usedMemoryBytes: 0,
    temperatureCelsius: 40,
    powerWatts: 75,
    foreignPids: [],
    samples: 10,
    failedSamples: 0,
    ...changes,
  };
}

export function slice(of: GpuSnapshot, changes: Partial<SliceSnapshot> = {}): SliceSnapshot {
  return {
    gpuUuid: of.uuid,
    gpuIndex: of.index,
    pciBusId: of.pciBusId,
    gpuMemoryBytes: of.memoryBytes,
    allocatedCores: 30,
    allocatedMemoryBytes: 4 * GIB,
    share: 30,
    softLimit: null,
    memoryLimitBytes: 4 * GIB,
    usedPercent: 0,
    usedMemoryBytes: 0,
    driverMemoryBytes: 0,
    hostBackedLimitBytes: 0,
    hostBackedBytes: 0,
    peakMemoryBytes: null,
    pids: [],
    lastUsedMs: null,
    counters: {
      launches: 0,
      waits: 0,
      throttledSeconds: 0,
      chargedSeconds: 0,
      deniedBytes: 0,
      denied: Object.fromEntries(DENIED_APIS.map((api) => [api, 0])) as NonNullable<
        SliceSnapshot['counters']
      >['denied'],
    },
    controlError: null,
    correction: 1,
    timeDrift: null,
    memoryDriftBytes: null,
    ...changes,
  };
}

export function allocation(
  name: string,
  slices: readonly SliceSnapshot[],
  changes: Partial<AllocationSnapshot> = {},
): AllocationSnapshot {
  const bytes = slices.map((one) => one.allocatedMemoryBytes);
  return {
    id: Buffer.from(name).toString('hex').padEnd(16, '0').slice(-16),
    phase: 'started',
    unenforced: false,
    owners: [{ podUid: `uid-${name}`, namespace: 'default', pod: name, container: 'main' }],
    allocatedAtMs: 1_700_000_000_000,
    cores: slices.reduce((sum, one) => sum + one.allocatedCores, 0),
    memoryBytes: bytes.includes(null) ? null : bytes.reduce((sum: number, value) => sum + (value ?? 0), 0),
    processes: 1,
    findings: [],
    refusedConnections: 0,
    socketFloods: 0,
    slices,
    ...changes,
  };
}

/** A node with the given fields; the sums of each GPU follow from the allocations. */
export function node(
  parts: {
    readonly gpus: readonly GpuSnapshot[];
    readonly allocations?: readonly AllocationSnapshot[];
    readonly topology?: Topology;
  } & Partial<NodeSnapshot>,
): NodeSnapshot {
  const { topology, gpus, ...rest } = parts;
  const allocations = parts.allocations ?? [];
  const sum = (uuid: string, of: (one: SliceSnapshot) => number): number =>
    allocations
      .flatMap(({ slices }) => slices)
      .filter(({ gpuUuid }) => gpuUuid === uuid)
      .reduce((total, one) => total + of(one), 0);
  return {
    atMs: 1_700_000_000_000,
    node: 'node1',
    version: '1.2.3',
    driverVersion: '580.95.05',
    driverOutage: null,
    notReady: [],
    tree:
      topology === undefined
        ? [
            {
              level: 'SYS',
              positions: gpus.map((_, at) => at),
              children: gpus.map((_, at) => ({ level: 'X' as const, positions: [at], children: [] })),
            },
          ]
        : buildTree(topology),
    nvlinks:
      topology === undefined
        ? []
        : topology.nvlinks.flatMap((row, a) =>
            row.flatMap((links, b) => (b > a && links > 0 ? [[a, b, links] as const] : [])),
          ),
    ...rest,
    gpus: gpus.map((one) => ({
      ...one,
      allocatedCores: sum(one.uuid, ({ allocatedCores }) => allocatedCores),
      allocatedMemoryBytes: sum(one.uuid, ({ allocatedMemoryBytes }) => allocatedMemoryBytes ?? one.memoryBytes),
    })),
    allocations,
  };
}

/** A topology parsed from the text of `nvidia-smi topo -m`. */
export function topologyOf(matrix: string): Topology {
  const parsed = parseMatrix(matrix);
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.topology;
}

/** A view of the current snapshot. */
export function viewOf(snapshot: () => NodeSnapshot, changes: Partial<NodeView> = {}): NodeView {
  return {
    nodeName: 'node1',
    version: '1.2.3',
    snapshot,
    use: () => momentOf(snapshot()),
    graph: ({ extended = false } = {}) => (extended ? 'ROOT:1 extended\n' : 'ROOT:1\n'),
    pod: () => null,
    counts: () => ({ refusals: new Map(), errors: new Map(), findings: new Map(), evictions: 0, nri: null, dra: null }),
    notReady: () => [],
    ...changes,
  };
}

type Teardown = { teardown(action: () => Promise<void>): void };

interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly headers: Headers;
  readonly text: string;
}

/** An HTTP server of that view on its own port, with everything that it needs. */
export async function served(
  t: Teardown,
  view: NodeView,
  changes: Partial<HttpServerOptions> & { readonly clock?: Clock; readonly log?: Log } = {},
) {
  const clock = changes.clock ?? systemClock;
  const log = changes.log ?? silentLog();
  const journal = changes.journal ?? new Journal(clock);
  const history = changes.history ?? new History();
  const times = new CallTimes();
  const feed = changes.feed ?? new LiveFeed({ view, history, use: { add: () => undefined }, journal, clock, log });
  const server = new HttpServer({
    address: '127.0.0.1',
    port: 0,
    view,
    metrics: nodeMetrics(view, times),
    history,
    journal,
    feed,
    use: { hours: async (fromMs) => ({ fromMs, containers: [] }), minutes: () => [] },
    page: () => readPageFiles(NODE_PAGE),
    certificate: null,
    access: null,
    log,
    ...changes,
  });
  await server.start();
  t.teardown(() => server.stop());
  const base = `http://127.0.0.1:${server.port}`;
  const get = async (path: string, init?: RequestInit): Promise<Answer> => {
    const answer = await fetch(`${base}${path}`, init);
    return {
      status: answer.status,
      type: answer.headers.get('content-type'),
      headers: answer.headers,
      text: await answer.text(),
    };
  };
  return { server, base, get, journal, history, feed, times };
}
