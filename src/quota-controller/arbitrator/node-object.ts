import type { Quantities } from '../../quota/arbitrator/index.js';
import type { KubeObject } from '../object.js';
import { readAmounts } from '../../kube/amounts.js';

/** What is kept of a node. */
export interface NodeObject {
  readonly name: string;
  /** What it has for pods. */
  readonly allocatable: Quantities;
  /** False while no pod of a tenant can come: it is cordoned, not ready, or a control plane's. */
  readonly takesPods: boolean;
}

interface NodeSpec {
  readonly unschedulable?: boolean;
  readonly taints?: readonly { readonly key: string; readonly effect: string }[];
}

interface NodeStatus {
  readonly allocatable?: unknown;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

const CONTROL_PLANES: ReadonlySet<string> = new Set([
  'node-role.kubernetes.io/control-plane',
  'node-role.kubernetes.io/master',
]);

/**
 * Reads a node. Other taints than those of control planes are not looked at: GPU nodes have them to keep all but GPU
 * pods away.
 */
export function readNodeCapacity(object: unknown): NodeObject | null {
  const { metadata, spec, status } = object as KubeObject;
  if (metadata?.name === undefined) return null;
  const { unschedulable = false, taints = [] } = (spec ?? {}) as NodeSpec;
  const { allocatable, conditions = [] } = (status ?? {}) as NodeStatus;
  const isReady = conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True');
  const isControlPlane = taints.some(({ key, effect }) => CONTROL_PLANES.has(key) && effect !== 'PreferNoSchedule');
  // Not a resource that is asked for: how many pods the node can hold.
  const amounts = new Map([...readAmounts(allocatable, 'down').amounts].filter(([resource]) => resource !== 'pods'));
  return {
    name: metadata.name,
    allocatable: amounts,
    takesPods: !unschedulable && isReady && !isControlPlane && metadata.deletionTimestamp === undefined,
  };
}
