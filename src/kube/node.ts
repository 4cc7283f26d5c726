import type { Quantities } from '../manifests/quantities.js';
import { readAmounts } from './amounts.js';
import { readCondition } from './condition.js';
import { list, record, text, texts } from './json.js';
import type { Taint } from '../manifests/taint.js';

/** The fields of a node that programs keep. */
export interface Node {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Only annotations of this project: others may be long. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Allocatable amounts without the number of pods; the capacity if the node does not report them. */
  readonly allocatable: Quantities;
  /** Highest number of pods. */
  readonly podSlots: number;
  readonly isCordoned: boolean;
  /** Whether its kubelet reports that it can run pods. */
  readonly isReady: boolean;
  /** False for a node without tenant pods: cordoned, not ready, or part of the control plane. */
  readonly takesPods: boolean;
}

const OWN_ANNOTATIONS = 'tencent.com/';

const CONTROL_PLANES: ReadonlySet<string> = new Set([
  'node-role.kubernetes.io/control-plane',
  'node-role.kubernetes.io/master',
]);

/** Number of pods if the node does not report one. */
const POD_SLOTS = 110;

/** Reads a node's JSON; no other code knows its shape. Null for an object without a name. */
export function readNode(object: unknown): Node | null {
  const { metadata: meta, spec, status } = record(object);
  const metadata = record(meta);
  const name = nameOf(object);
  if (name === '') return null;
  const { unschedulable, taints: written } = record(spec);
  const { allocatable, capacity, conditions } = record(status);
  const annotations = Object.entries(texts(metadata.annotations)).filter(([key]) => key.startsWith(OWN_ANNOTATIONS));
  const taints = list(written).map((taint): Taint => {
    const { key, value, effect } = record(taint);
    return { key: text(key), value: text(value), effect: text(effect) };
  });
  const isCordoned = unschedulable === true;
  const isReady = readCondition(conditions, 'Ready')?.status === 'True';
  const isControlPlane = taints.some(({ key, effect }) => CONTROL_PLANES.has(key) && effect !== 'PreferNoSchedule');
  const isLeaving = (metadata.deletionTimestamp ?? null) !== null;
  const { amounts } = readAmounts(allocatable ?? capacity, 'down');
  return {
    name,
    labels: texts(metadata.labels),
    annotations: Object.fromEntries(annotations),
    taints,
    allocatable: new Map([...amounts].filter(([resource]) => resource !== 'pods')),
    podSlots: amounts.get('pods') ?? POD_SLOTS,
    isCordoned,
    isReady,
    takesPods: !isCordoned && isReady && !isControlPlane && !isLeaving,
  };
}

/** The name of an object; empty without one. */
export function nameOf(object: unknown): string {
  return text(record(record(object).metadata).name);
}
