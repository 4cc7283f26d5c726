import { clusterShapes, readClusterNode } from '../cluster/shapes/cluster-shapes.js';
import { shapedPod } from '../cluster/shapes/shaped-pod.js';
import type { Clock } from '../host/clock.js';
import { Turn } from '../host/turn.js';
import { ALL_NODES, ALL_PODS } from '../kube/api-path.js';
import type { KubeApi } from '../kube/client.js';
import { listKept } from '../kube/list-all.js';
import { readPod } from '../kube/pod.js';
import type { FittingShape, GroupStatus, Quota } from '../quota/index.js';
import { statusesOf } from '../quota-command/replay.js';
import { ShapeCounts, type TopShape } from '../quota-command/top.js';
import { subtreeOf } from '../quota-command/tree-order.js';
import { KeptReading } from './kept-reading.js';
import { LargestWorkloads, type WorkloadRow } from './largest-workloads.js';

/** A request of pods or workloads, and how often it still fits. */
export interface ShapeRow {
  /** The quota group; absent for the nodes of the cluster. */
  readonly group?: string;
  readonly request: string;
  /** How many pods or workloads have this request. */
  readonly count: number;
  readonly fits: number;
  /** The places where it fits most often, and how many places there are. */
  readonly where: readonly { readonly name: string; readonly fits: number }[];
  readonly places: number;
  /** What the next one lacks, and in how many places. */
  readonly blockedBy: readonly { readonly key: string; readonly places: number }[];
}

export type ShapesAnswer =
  | {
      readonly ok: true;
      readonly atMs: number;
      readonly shapes: readonly ShapeRow[];
      readonly more: number;
      /** Of a group: its workloads, and those of the groups below it; those that take most of a limit first. */
      readonly workloads?: readonly WorkloadRow[];
      /** How many workloads are not among them. */
      readonly moreWorkloads?: number;
    }
  | { readonly ok: false; readonly reason: string };

/** The ledger from which the shapes of groups are read. */
export type GroupLedger = Pick<Quota, 'groups' | 'status' | 'eachCharge'>;

export interface ShapesOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** Reads the quota ledgers, which are larger than all else that the console reads. */
  readonly readLedger: (api: KubeApi, clock: Clock) => Promise<GroupLedger>;
}

const CLUSTER_MS = 10_000;
const LEDGER_MS = 30_000;
/** Requests of the cluster, as many as the metrics have. */
const MOST_OF_CLUSTER = 20;
const MOST_OF_GROUP = 100;
const MOST_PLACES = 5;

interface Kept<T> {
  readonly atMs: number;
  readonly value: T;
}

/** How often requests still fit, and what blocks the next, as `quota top shapes` and the arbitrator's metrics tell. */
export class Shapes {
  readonly #cluster: KeptReading<Kept<readonly FittingShape[]>>;
  readonly #groups: KeptReading<Kept<GroupShapes>>;

  constructor({ api, clock, readLedger }: ShapesOptions) {
    const dated = async <T>(value: Promise<T>): Promise<Kept<T>> => ({ atMs: clock.now(), value: await value });
    this.#cluster = new KeptReading(() => dated(readCluster(api)), clock, CLUSTER_MS);
    this.#groups = new KeptReading(
      () => dated(readLedger(api, clock).then((ledger) => groupShapes(ledger, clock.now()))),
      clock,
      LEDGER_MS,
    );
  }

  /** The requests of pods on the nodes of the cluster. Never rejects. */
  ofCluster(): Promise<ShapesAnswer> {
    return answered(this.#cluster, (shapes) =>
      shapesAnswer(
        shapes.map((fitting) => shapeRow(fitting)),
        MOST_OF_CLUSTER,
      ),
    );
  }

  /**
   * The requests of the workloads of a group and of the groups below it, the scarcest first, and the workloads in
   * namespaces that the reader sees. Never rejects.
   */
  ofGroup(root: string, seesNamespace: (namespace: string) => boolean): Promise<ShapesAnswer> {
    return answered(this.#groups, ({ statuses, shapes, largest }) => {
      const below = subtreeOf(statuses, root);
      const names = new Set(below.map(({ name }) => name));
      const rows = shapes
        .filter(({ group }) => names.has(group))
        .map(({ group, fitting }) => ({ group, ...shapeRow(fitting) }));
      const all = below.reduce((sum, { workloads }) => sum + workloads, 0);
      const workloads = below
        .flatMap(({ name }) => largest.of(name))
        .filter(({ namespace }) => seesNamespace(namespace))
        .slice(0, MOST_OF_GROUP);
      const moreWorkloads = Math.max(0, all - workloads.filter(({ isReserved }) => !isReserved).length);
      return { ...shapesAnswer(rows, MOST_OF_GROUP), workloads, moreWorkloads };
    });
  }
}

interface GroupShapes {
  readonly statuses: readonly GroupStatus[];
  readonly shapes: readonly TopShape[];
  readonly largest: LargestWorkloads;
}

/** Takes a second for 100,000 workloads, in short turns of the event loop. */
async function groupShapes(ledger: GroupLedger, now: number): Promise<GroupShapes> {
  const statuses = statusesOf(ledger, null, now);
  const counts = new ShapeCounts(null);
  const largest = new LargestWorkloads(statuses);
  const turn = new Turn();
  for (const { name } of statuses)
    for (const charge of ledger.eachCharge(name)) {
      counts.add(charge);
      largest.add(charge);
      if (turn.isOver()) await turn.pass();
    }
  return { statuses, shapes: counts.top(statuses), largest };
}

async function readCluster(api: KubeApi): Promise<readonly FittingShape[]> {
  const [nodes, pods] = await Promise.all([
    listKept(api, 'the nodes', ALL_NODES, readClusterNode),
    listKept(api, 'the pods', ALL_PODS, (object) => shapedPod(readPod(object))),
  ]);
  return clusterShapes(
    nodes.flatMap((node) => node ?? []),
    pods.flatMap((pod) => pod ?? []),
    MOST_OF_CLUSTER,
  );
}

type Told = Omit<Extract<ShapesAnswer, { readonly ok: true }>, 'ok' | 'atMs'>;

function shapesAnswer(rows: readonly ShapeRow[], most: number): Told {
  return { shapes: rows.slice(0, most), more: Math.max(0, rows.length - most) };
}

async function answered<T>(reading: KeptReading<Kept<T>>, tell: (value: T) => Told): Promise<ShapesAnswer> {
  try {
    const { atMs, value } = await reading.read();
    return { ok: true, atMs, ...tell(value) };
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  }
}

function shapeRow({ shape, fits, where, blockedBy }: FittingShape): ShapeRow {
  const best = [...where].sort(([, a], [, b]) => b - a).slice(0, MOST_PLACES);
  return {
    ...{ request: shape.name, count: shape.count, fits, places: where.size },
    where: best.map(([name, copies]) => ({ name, fits: copies })),
    blockedBy: [...blockedBy].sort(([, a], [, b]) => b - a).map(([key, places]) => ({ key, places })),
  };
}
