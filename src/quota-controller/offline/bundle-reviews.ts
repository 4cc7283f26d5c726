import type { BundleReviewer } from '../../quota-command/bundle.js';
import {
  apiGroupOf,
  evaluatorOf,
  KNOWN_KINDS,
  type Evaluation,
  type EvaluationOptions,
  type Evaluator,
} from '../../quota/internal.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { selectsLabels, type LabelSelector } from '../../manifests/label-selector.js';
import { NamespaceAccess, namespaceLabels } from '../policy/namespace-access.js';
import { withReplicas, type ServedKind } from '../workloads/kinds.js';
import type { KubeObject } from '../../kube/object.js';
import { isKind, unknownScale, WorkloadReader } from '../workloads/workload-reader.js';

export interface BundleReviewsOptions {
  /** Serves the objects of the bundle, and the objects of the cluster if there is one. */
  readonly api: KubeApi;
  readonly evaluation: EvaluationOptions;
  readonly kinds: readonly ServedKind[];
  /** Namespaces whose workloads must name a group; null for none. */
  readonly requireLabel: LabelSelector | null;
  /** Result for an autoscaler if the replica field of its target's kind is unknown. */
  readonly unknownScale: 'refused' | 'untested';
  /** Called for objects that the caller may not read; the reviews do without them. */
  readonly missing: (reason: string) => void;
}

/** Namespace that is exempt from the required label. */
const SYSTEM_NAMESPACE = 'kube-system';

/** Reviews the objects of a bundle as the webhooks would: the same reader evaluates workloads. */
export class BundleReviews implements BundleReviewer {
  readonly reader: WorkloadReader;
  readonly #options: BundleReviewsOptions;
  readonly #access: NamespaceAccess;

  constructor(options: BundleReviewsOptions) {
    this.#options = options;
    const { api, evaluation, kinds } = options;
    this.reader = new WorkloadReader({ api, evaluation: () => evaluation, kinds: () => kinds });
    this.#access = new NamespaceAccess({ api, observed: () => null, isOpenByDefault: true });
  }

  get groupLabel(): string {
    return this.#options.evaluation.groupLabel ?? GROUP_LABEL;
  }

  defaultGroup(namespace: string): string {
    return this.#options.evaluation.defaultGroup?.(namespace) ?? '';
  }

  evaluatorOf(apiVersion: string, kind: string): Evaluator | undefined {
    return evaluatorOf([...(this.#options.evaluation.kinds ?? []), ...KNOWN_KINDS], apiVersion, kind);
  }

  evaluate(manifest: unknown): Promise<Evaluation> {
    return this.reader.evaluate(manifest as KubeObject);
  }

  /** The requirement applies only in selected namespaces, as in the webhook configuration. */
  async missingGroup(manifest: unknown): Promise<string | null> {
    const { api, requireLabel } = this.#options;
    const object = manifest as KubeObject;
    const namespace = object.metadata?.namespace ?? '';
    if (requireLabel === null || namespace === SYSTEM_NAMESPACE) return null;
    const labels = await this.#readable(() => namespaceLabels(api, namespace));
    return labels === null || !selectsLabels(requireLabel, labels) ? null : this.reader.missingGroup(object);
  }

  refusal(group: string, namespace: string): Promise<string | null> {
    return this.#readable(() => this.#access.refusal(group, namespace));
  }

  async target(apiVersion: string, kind: string, namespace: string, name: string): Promise<unknown> {
    const found = await this.reader.live(apiGroupOf(apiVersion), isKind(apiVersion, kind), namespace, name);
    return found?.object ?? null;
  }

  scaled(target: unknown, replicas: number): ReturnType<BundleReviewer['scaled']> {
    const object = target as KubeObject;
    const { apiVersion = '', kind = '' } = object;
    const served = this.reader.kindOf(apiGroupOf(apiVersion), isKind(apiVersion, kind));
    if (served === null) return { ok: false, isRefused: false, reason: `${kind} is not a kind of workload` };
    const scaled = withReplicas(object, served, replicas);
    if (scaled !== null) return { ok: true, manifest: scaled };
    if (this.#options.unknownScale === 'refused') return { ok: false, isRefused: true, reason: unknownScale(served) };
    const reason = `the replica field of ${kind} is unknown: add its CustomResourceDefinition to the manifests`;
    return { ok: false, isRefused: false, reason };
  }

  async #readable<T>(read: () => Promise<T>): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 'forbidden') throw error;
      this.#options.missing(error.message);
      return null;
    }
  }
}
