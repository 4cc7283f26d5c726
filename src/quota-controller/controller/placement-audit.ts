import { familyOf, type Types, knownType, typeOfNode, typesOf } from '../../quota/internal.js';
import type { QuotaPolicy } from '../policy/policy-object.js';
import type { PodObject } from '../workloads/pod-object.js';

/** The group of a pod, and the types that its workload declares. */
export interface DeclaredPlacement {
  readonly group: string;
  readonly types: Types;
}

export interface PlacementAuditOptions {
  readonly policy: () => QuotaPolicy;
  readonly labelsOf: (node: string) => Readonly<Record<string, string>> | null;
  /** Whether a group limits a type; a pod that declares no type is a finding only there. */
  readonly limits: (group: string, type: string) => boolean;
  /** Called with each group whose findings changed. */
  readonly found: (group: string) => void;
}

/** Compares the types that workloads declare with the nodes that their pods run on. */
export class PlacementAudit {
  readonly #options: PlacementAuditOptions;
  /** Descriptions of findings, by group and uid of the pod. */
  readonly #findings = new Map<string, Map<string, string>>();
  readonly #groupOf = new Map<string, string>();

  constructor(options: PlacementAuditOptions) {
    this.#options = options;
  }

  /** Descriptions of pods that run on another type than declared; null where no policy names types of nodes. */
  misplaced(group: string): readonly string[] | null {
    if (this.#options.policy().placement.length === 0) return null;
    return [...(this.#findings.get(group)?.values() ?? [])].sort();
  }

  /** Compares the current state of a pod with the declared types. */
  audit(pod: PodObject, { group, types }: DeclaredPlacement): void {
    const finding = this.#findingOf(pod, group, types);
    if (finding === null) return this.forget(pod.uid);
    if (this.#groupOf.get(pod.uid) !== group) this.forget(pod.uid);
    const findings = this.#findings.get(group) ?? new Map<string, string>();
    if (findings.get(pod.uid) === finding) return;
    this.#findings.set(group, findings.set(pod.uid, finding));
    this.#groupOf.set(pod.uid, group);
    this.#options.found(group);
  }

  forget(uid: string): void {
    const group = this.#groupOf.get(uid);
    if (group === undefined) return;
    this.#groupOf.delete(uid);
    this.#findings.get(group)?.delete(uid);
    this.#options.found(group);
  }

  #findingOf(pod: PodObject, group: string, types: Types): string | null {
    const { policy, labelsOf, limits } = this.#options;
    const { placement, families } = policy();
    const labels = pod.node === null || pod.endedAt !== null ? null : labelsOf(pod.node);
    if (labels === null) return null;
    for (const family of new Set(placement.map((rule) => rule.family))) {
      const actual = typeOfNode(placement, family, labels);
      const declared = types[family] ?? '';
      if (actual === null || knownType(typesOf(placement, family), declared) === actual) continue;
      if (declared === '' && !limits(group, actual)) continue;
      const requests = pod.needs(declared)?.requests ?? {};
      if (!Object.keys(requests).some((resource) => familyOf(families, resource) === family)) continue;
      return `pod ${pod.namespace}/${pod.name} runs on ${family}-type ${actual} (node ${pod.node}), but declares ${declared === '' ? 'no type' : declared}`;
    }
    return null;
  }
}
