import type { Quantities } from '../quota/arbitrator/index.js';
import { readAmounts } from '../kube/amounts.js';
import { list, record, text, texts } from '../kube/json.js';

/** What is kept of a node. */
export interface NodeObject {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** What it has for pods, without their number. */
  readonly allocatable: Quantities;
  /** How many pods it can hold. */
  readonly podSlots: number;
  /** False while no pod of a tenant can come: it is cordoned, not ready, or a control plane's. */
  readonly takesPods: boolean;
}

/** What keeps pods away that do not tolerate it. */
export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

const CONTROL_PLANES: ReadonlySet<string> = new Set([
  'node-role.kubernetes.io/control-plane',
  'node-role.kubernetes.io/master',
]);

/** Where a node does not say how many pods it can hold. */
const POD_SLOTS = 110;

/** Reads a node; null for what has no name. */
export function readNodeObject(object: unknown): NodeObject | null {
  const { metadata: meta, spec, status } = record(object);
  const metadata = record(meta);
  const name = text(metadata.name);
  if (name === '') return null;
  const { unschedulable, taints: written } = record(spec);
  const { allocatable, conditions } = record(status);
  const taints = list(written).map((taint): Taint => {
    const { key, value, effect } = record(taint);
    return { key: text(key), value: text(value), effect: text(effect) };
  });
  const isReady = list(conditions).some((condition) => {
    const { type, status: is } = record(condition);
    return type === 'Ready' && is === 'True';
  });
  const isControlPlane = taints.some(({ key, effect }) => CONTROL_PLANES.has(key) && effect !== 'PreferNoSchedule');
  const { amounts } = readAmounts(allocatable, 'down');
  return {
    name,
    labels: texts(metadata.labels),
    taints,
    allocatable: new Map([...amounts].filter(([resource]) => resource !== 'pods')),
    podSlots: amounts.get('pods') ?? POD_SLOTS,
    takesPods: unschedulable !== true && isReady && !isControlPlane && (metadata.deletionTimestamp ?? null) === null,
  };
}
