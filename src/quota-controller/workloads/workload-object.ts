import {
  kindName,
  type Demand,
  ManifestReader,
  refKey,
  refOfKey,
  evaluateAlone,
  type EvaluationOptions,
  type Owner,
  type Types,
} from '../../quota/internal.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { hasReferences, type ServedKind } from './kinds.js';
import { QUEUE_LABEL } from './kueue-workload.js';
import { versionOf, type KubeObject } from '../../kube/object.js';

/** The group and the types that an object is charged with. */
export interface Account {
  readonly group: string;
  readonly types: Types;
}

/** The fields of a workload that the reconciler needs. */
export interface WorkloadObject {
  readonly kind: ServedKind;
  /** Key by `refKey`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly version: number;
  /** Value of the group label, or the group that pays for objects of the namespace without it; empty for none. */
  readonly group: string;
  /** Whether the object names its group itself. */
  readonly isLabelled: boolean;
  /** Null if the object itself is not charged. */
  readonly demand: Demand | null;
  /** The demand without the workload's name; equal ones are mostly the same object. */
  readonly charge: Charge | null;
  /** The controller named by the object, not verified yet. */
  readonly owner: Owner | null;
  /** Labels of an object in a queue of Kueue, or with an owner and no pod; empty for others. */
  readonly labels: Readonly<Record<string, string>>;
  readonly terminating: boolean;
  /** Whether it names no group any more, and keeps its charge. */
  readonly isHeld: boolean;
  /** Why the demand cannot be read; null if it can. */
  readonly problem: string | null;
  /** Whether another object holds a part of the demand. */
  readonly refers: boolean;
}

/**
 * Workloads on a page of a list: few enough to be garbage before the next page comes. The objects of larger pages are
 * moved to the old generation, and collecting them there takes several times as long.
 */
export const WORKLOADS_PER_PAGE = 100;

/** Selects the objects of a kind that may be charged. */
export function selectorOf(
  { evaluator }: ServedKind,
  { groupLabel, defaultGroup }: EvaluationOptions,
): string | undefined {
  return evaluator.labels === undefined && defaultGroup === undefined ? (groupLabel ?? GROUP_LABEL) : undefined;
}

/** Reads a workload; null for one that no group pays for, unless one may begin to. */
export function readWorkloadObject(
  kind: ServedKind,
  object: unknown,
  options: EvaluationOptions,
): WorkloadObject | null {
  const read = readOwnedObject(kind, object, options, false);
  const mayBeDefault = kind.evaluator.labels === undefined && options.defaultGroup !== undefined;
  return read === null || (read.group === '' && !read.isHeld && !mayBeDefault) ? null : read;
}

/** Whether objects of a kind are pods. */
export function isPodKind({ evaluator: { apiGroup, kind } }: ServedKind): boolean {
  return apiGroup === '' && kind === 'Pod';
}

/** The object as one of this account, for one that names no group. */
export function inAccount(object: WorkloadObject, { group, types }: Account): WorkloadObject {
  const charge =
    object.charge === null ? null : { ...object.charge, group, types: { ...types, ...object.charge.types } };
  return new CompactWorkload({ ...object, group, charge });
}

/** The account that a workload is charged to. */
export function accountOf({ group, charge }: WorkloadObject): Account {
  return { group, types: charge?.types ?? {} };
}

/** Whether a workload runs: it is not held back, and has not ended. */
export function isRunning({ charge }: WorkloadObject): boolean {
  return charge?.podSets.some(({ count }) => count > 0) === true;
}

/**
 * Reads an object that may be charged with another one: it need not name a group. With `evaluatesAll` its demand is
 * read although no group pays for it.
 */
export function readOwnedObject(
  kind: ServedKind,
  object: unknown,
  options: EvaluationOptions,
  evaluatesAll = true,
): WorkloadObject | null {
  const { apiGroup, kind: name } = kind.evaluator;
  // Items of lists have no apiVersion and kind.
  const apiVersion = kind.path.startsWith('/apis/') ? kind.path.split('/').slice(2, 4).join('/') : 'v1';
  const manifest = { ...(object as KubeObject), apiVersion, kind: name };
  const { metadata } = manifest;
  const groupLabel = options.groupLabel ?? GROUP_LABEL;
  const labels = kind.evaluator.labels?.(new ManifestReader(), manifest);
  const named = (labels === undefined ? metadata?.labels?.[groupLabel] : labels.get(groupLabel)) ?? '';
  if (metadata?.uid === undefined || metadata.name === undefined) return null;
  const { namespace = '', uid } = metadata;
  const group = named === '' && labels === undefined ? (options.defaultGroup?.(namespace) ?? '') : named;
  const { evaluation, owner } = group === '' && !evaluatesAll ? UNCHARGED : evaluateAlone(manifest, options);
  const version = versionOf(manifest);
  const ref = { kind: kindName({ apiGroup, kind: name }), namespace, name: metadata.name };
  const demand = evaluation.ok ? evaluation.demand : null;
  return new CompactWorkload({
    kind,
    key: refKey(ref),
    uid,
    version,
    group,
    isLabelled: named !== '',
    charge: demand === null ? null : shared(demand),
    owner,
    labels:
      (owner === null || isPodKind(kind)) && metadata.labels?.[QUEUE_LABEL] === undefined
        ? NO_LABELS
        : (metadata.labels ?? NO_LABELS),
    isHeld: group === '' && kind.evaluator.isHeld?.(new ManifestReader(), manifest) === true,
    terminating: metadata.deletionTimestamp !== undefined,
    refers: group !== '' && hasReferences(manifest) && options.lookup === undefined,
    problem: evaluation.ok ? null : `${evaluation.code}: ${evaluation.reason}`,
  });
}

/** The parts of a demand that do not name the workload. */
type Charge = Omit<Demand, 'workload'>;

/** The evaluation of an object that no group pays for. */
const UNCHARGED: ReturnType<typeof evaluateAlone> = {
  evaluation: { ok: true, demand: null, reason: 'no group pays for it' },
  owner: null,
};

const NO_LABELS: Readonly<Record<string, string>> = {};

/** Number of charges that are kept for sharing. */
const MOST_SHARED = 4096;

const known = new Map<string, Charge>();

/** A charge that equals one that is in use is this one: most workloads of a cluster have one of a few requests. */
function shared({ workload: _, ...charge }: Demand): Charge {
  const content = JSON.stringify(charge, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
  const same = known.get(content);
  if (same !== undefined) return same;
  // Clearing the table is harmless: workloads keep their charges, and equal ones are just not shared.
  if (known.size >= MOST_SHARED) known.clear();
  known.set(content, charge);
  return charge;
}

/** A process has as many of these as the cluster has workloads: what follows from other fields is not stored. */
class CompactWorkload implements WorkloadObject {
  readonly kind: ServedKind;
  readonly key: string;
  readonly uid: string;
  readonly version: number;
  readonly group: string;
  readonly isLabelled: boolean;
  readonly charge: Charge | null;
  readonly owner: Owner | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly terminating: boolean;
  readonly isHeld: boolean;
  readonly refers: boolean;
  readonly problem: string | null;

  constructor(fields: Omit<WorkloadObject, 'namespace' | 'name' | 'demand'>) {
    this.kind = fields.kind;
    this.key = fields.key;
    this.uid = fields.uid;
    this.version = fields.version;
    this.group = fields.group;
    this.isLabelled = fields.isLabelled;
    this.charge = fields.charge;
    this.owner = fields.owner;
    this.labels = fields.labels;
    this.terminating = fields.terminating;
    this.isHeld = fields.isHeld;
    this.refers = fields.refers;
    this.problem = fields.problem;
  }

  get namespace(): string {
    return refOfKey(this.key).namespace ?? '';
  }

  get name(): string {
    return refOfKey(this.key).name;
  }

  get demand(): Demand | null {
    if (this.charge === null) return null;
    const { uid, version } = this;
    return { workload: { ...refOfKey(this.key), uid, version }, ...this.charge };
  }
}
